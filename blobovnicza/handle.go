package blobovnicza

import (
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/granary-store/granary/internal/durable"
)

// errDropped is what a look-up meets that still knew a file which compaction has removed: a newer version of the
// leaf has all of it elsewhere.
var errDropped = errors.New("file was dropped")

// handles bounds how many files of a tree are open. A file is opened when it is needed, and stays open until
// another needs its place: one that was not used since the clock's hand last passed it.
type handles struct {
	max       int
	evictions atomic.Int64

	mu   sync.Mutex // guards what is below and when a handle's file changes; never held across I/O
	open []*handle
	hand int
}

// handle is a file of a leaf, open or not.
type handle struct {
	f       atomic.Pointer[durable.File]
	used    atomic.Bool  // since the clock's hand passed
	dropped atomic.Bool  // it is not opened again
	pins    atomic.Int32 // above zero: it stays open

	leaf    *leaf
	name    string
	opening sync.Mutex
}

// ReadAt is as in [io.ReaderAt].
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	for {
		f, err := h.get()
		if err != nil {
			return 0, err
		}
		n, err := f.ReadAt(p, off)
		if h.dropped.Load() { // its space may be in use again
			return 0, errDropped
		}
		if !errors.Is(err, os.ErrClosed) {
			return n, err
		}
		// It was closed to make room for another, or dropped.
	}
}

// get returns the open file. Another call may close it at any time unless the handle is pinned.
func (h *handle) get() (*durable.File, error) {
	if f := h.f.Load(); f != nil {
		if !h.used.Load() {
			h.used.Store(true)
		}
		return f, nil
	}
	return h.reopen()
}

// tooManyTries is how often, a millisecond apart, an open is tried again while the process has too many files open.
const tooManyTries = 1000

func (h *handle) reopen() (*durable.File, error) {
	h.opening.Lock()
	defer h.opening.Unlock()
	if f := h.f.Load(); f != nil {
		return f, nil
	}
	all := &h.leaf.tree.handles
	all.makeRoom()
	for try := 0; ; try++ {
		if h.dropped.Load() {
			return nil, errDropped
		}
		f, err := h.leaf.openFile(h.name)
		if err == nil {
			all.add(h, f)
			return f, nil
		}
		if !tooManyFiles(err) || try == tooManyTries {
			return nil, err
		}
		if !all.evict() {
			time.Sleep(time.Millisecond)
		}
	}
}

func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// adopt takes over a file that is open already.
func (h *handle) adopt(f *durable.File) {
	h.leaf.tree.handles.makeRoom()
	h.leaf.tree.handles.add(h, f)
}

// pin keeps the file open until unpin, opening it if need be.
func (h *handle) pin() (*durable.File, error) {
	h.pins.Add(1)
	all := &h.leaf.tree.handles
	all.mu.Lock() // whoever is about to close it has not seen the pin
	f := h.f.Load()
	all.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := h.reopen()
	if err != nil {
		h.pins.Add(-1)
	}
	return f, err
}

func (h *handle) unpin() { h.pins.Add(-1) }

// close closes the file if it is open.
func (h *handle) close() error {
	all := &h.leaf.tree.handles
	all.mu.Lock()
	f := h.f.Swap(nil)
	if i := slices.Index(all.open, h); i >= 0 {
		all.open = slices.Delete(all.open, i, i+1)
	}
	all.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Close()
}

// drop closes the file for good.
func (h *handle) drop() error {
	h.opening.Lock()
	h.dropped.Store(true)
	h.opening.Unlock()
	return h.close()
}

// close closes all files that are still open, also those that no version of a leaf has.
func (s *handles) close() (err error) {
	s.mu.Lock()
	open := slices.Clone(s.open)
	s.mu.Unlock()
	for _, h := range open {
		err = errors.Join(err, h.close())
	}
	return err
}

func (s *handles) add(h *handle, f *durable.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.used.Store(true)
	h.f.Store(f)
	s.open = append(s.open, h)
}

// makeRoom closes files until there is room for one more, as far as it can.
func (s *handles) makeRoom() {
	for s.len() >= s.max && s.evict() {
	}
}

// evict closes a file that nobody uses, and reports whether there was one. What was written to it is synced: only
// committers write, and they pin.
func (s *handles) evict() bool {
	f := s.victim()
	if f == nil {
		return false
	}
	s.evictions.Add(1)
	f.Close() // It was only read, or is synced.
	return true
}

// victim takes the next file out that was not used since the hand passed it. In the second round all that are
// neither pinned nor in use qualify.
func (s *handles) victim() *durable.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 * len(s.open) {
		s.hand %= len(s.open)
		h := s.open[s.hand]
		f := h.f.Load()
		if h.pins.Load() > 0 || h.used.Swap(false) || f.Busy() {
			s.hand++
			continue
		}
		h.f.Store(nil)
		s.open[s.hand] = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		return f
	}
	return nil
}

// len returns how many files are open.
func (s *handles) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
