package durable

import "sync"

// sharedSync lets concurrent callers share syncs of one directory. A caller may join only a sync that starts
// after its call, for one that runs already may have missed the caller's name.
type sharedSync struct {
	turn sync.Mutex // held by the sync that runs

	mu     sync.Mutex
	next   *syncRound // the round that callers may join; nil if none is waiting to start
	failed error      // the first failure, for ever
}

type syncRound struct {
	done chan struct{}
	err  error
}

// do returns once a sync that started after the call has ended, with that sync's error.
func (s *sharedSync) do(sync func() error) error {
	r, lead := s.join()
	if !lead {
		<-r.done
		return r.err
	}
	s.turn.Lock()
	s.start()
	if r.err = s.err(); r.err == nil {
		r.err = sync()
		s.fail(r.err)
	}
	s.turn.Unlock()
	close(r.done)
	return r.err
}

// join returns the round to wait for, and whether the caller is to run it.
func (s *sharedSync) join() (r *syncRound, lead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &syncRound{done: make(chan struct{})}
		lead = true
	}
	return s.next, lead
}

// start closes the waiting round to new callers.
func (s *sharedSync) start() {
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
}

func (s *sharedSync) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *sharedSync) fail(err error) {
	s.mu.Lock()
	s.failed = err
	s.mu.Unlock()
}
