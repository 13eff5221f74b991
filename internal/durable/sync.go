package durable

import "sync"

// sharedSync lets concurrent callers share syncs of one directory. A caller may join only a sync that starts
// after its call, for one that runs already may have missed the caller's name.
type sharedSync struct {
	mu     sync.Mutex
	next   *syncRound // the round that callers may join; nil if none is waiting to start
	last   *syncRound // the one that started last; rounds run one after the other
	failed error      // the first failure, for ever
}

type syncRound struct {
	before *syncRound // to wait for
	done   chan struct{}
	err    error
}

// do returns once a sync that started after the call has ended, with that sync's error.
func (s *sharedSync) do(sync func() error) error {
	r, lead := s.join()
	if !lead {
		<-r.done
		return r.err
	}
	if r.before != nil {
		<-r.before.done
	}
	s.start(r)
	if r.err = s.err(); r.err == nil {
		r.err = sync()
		s.fail(r.err)
	}
	close(r.done)
	return r.err
}

// join returns the round to wait for, and whether the caller is to run it.
func (s *sharedSync) join() (r *syncRound, lead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &syncRound{before: s.last, done: make(chan struct{})}
		lead = true
	}
	return s.next, lead
}

// start closes the waiting round to new callers.
func (s *sharedSync) start(r *syncRound) {
	s.mu.Lock()
	s.next, s.last = nil, r
	s.mu.Unlock()
	r.before = nil // or all rounds would stay in memory, one holding the other
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
