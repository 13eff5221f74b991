package fstree

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// sweeper removes the temporaries of an open that did not end with Close, in the background. After a Close there
// are none.
type sweeper struct {
	needed atomic.Bool

	mu     sync.Mutex
	cancel context.CancelFunc // of the run, nil if there is none
	done   chan struct{}      // closed when the run has ended
}

// start begins to sweep, unless all is swept already.
func (s *sweeper) start(t *Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.needed.Load() || s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go func() {
		defer close(s.done)
		if t.sweepAll(ctx) {
			s.needed.Store(false)
		}
	}()
}

// stop ends the run and waits for that.
func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		return
	}
	s.cancel()
	<-s.done
	s.cancel = nil
}

// wait waits for a run that was started.
func (s *sweeper) wait(ctx context.Context, closing <-chan struct{}) error {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-closing:
		return blobstor.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweepAll sweeps the root, where streams are written, and all directories that hold blobs. It reports whether it came
// to the end.
func (t *Tree) sweepAll(ctx context.Context) bool {
	t.sweepDir(rootKey)
	for _, depth := range t.layout.Load().depths() {
		for key, err := range leaves(rootKey, depth, 0, t.list) {
			if ctx.Err() != nil {
				return false
			}
			if err == nil && key != rootKey {
				t.sweepDir(key)
			}
		}
	}
	return true
}

func (t *Tree) sweepDir(key dirKey) {
	dir, err := t.dirs.get(key, false)
	if err != nil {
		return // Whoever looks for a blob there is told.
	}
	defer t.dirs.put(dir)
	n, err := dir.Sweep()
	t.count.swept.Add(uint64(n))
	if err != nil {
		t.log.Warn("fstree: sweep", "error", err)
	}
}
