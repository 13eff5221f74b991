package blobovnicza

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// holdUp is a tap that holds the first operation that matches until it is released.
type holdUp struct {
	match            func(op durable.Op, path string) bool
	armed            atomic.Bool
	entered, release chan struct{}
}

func newHoldUp(match func(op durable.Op, path string) bool) *holdUp {
	return &holdUp{match: match, entered: make(chan struct{}), release: make(chan struct{})}
}

func (h *holdUp) Before(op durable.Op, path string, f *durable.File) error {
	if h.match(op, path) && h.armed.CompareAndSwap(true, false) {
		close(h.entered)
		<-h.release
	}
	return nil
}

func (h *holdUp) After(durable.Op, string, *durable.File) {}

// wait waits until the operation is held, and fails the test if the call that should come to it ends before.
func (h *holdUp) wait(t *testing.T, call <-chan error) {
	t.Helper()
	select {
	case <-h.entered:
	case err := <-call:
		t.Fatalf("the call ended before: %v", err)
	}
}

// A blob that is deleted, or deleted and put again, between the compactor's look-up and its commit stays so.
func TestCompactUndoesNoDelete(t *testing.T) {
	for _, again := range []bool{false, true} {
		s, st := faulty(t, byHand())
		putSmall(t, s, 0, 80)
		remove(t, s, 0, 1, 2)
		at := where(t, s, 3)
		_, p, _ := parseLocation(at)
		check(t, s.upkeep(ctx)) // then the compactor reads records only to copy them
		hold := newHoldUp(func(op durable.Op, path string) bool {
			return op == durable.OpRead && filepath.Base(path) == dataName(p.file)
		})
		st.faults.Next = hold
		hold.armed.Store(true)
		compacted := make(chan error, 1)
		go func() { compacted <- s.Compact(ctx) }()
		hold.wait(t, compacted)
		remove(t, s, 3)
		var want []byte
		if again {
			putSmall(t, s, 3, 4)
			want = smallData(3)
		}
		close(hold.release)
		check(t, <-compacted)
		verify := func(s *Tree) {
			t.Helper()
			expect(t, s, 3, want)
			if _, err := s.Get(ctx, addrOf(3), at, nil); again != (err == nil) {
				t.Errorf("by location: %v", err)
			}
			expect(t, s, 4, smallData(4))
			if exists(t, s, at) {
				t.Error("the file is still there")
			}
			recount(t, s)
		}
		verify(s)
		check(t, s.Close())
		verify(mustOpen(t, st.dir, byHand()))
	}
}

// Puts, deletes, batches, reads and walks beside a compaction that never rests, each goroutine with a model of its
// own addresses.
func TestCompactBesideAll(t *testing.T) {
	rounds := 120
	if testing.Short() {
		rounds = 30
	}
	dir, opts := t.TempDir(), byHand()
	opts.Width, opts.Depth, opts.NoSync = 2, 1, true
	s := mustOpen(t, dir, opts)
	const workers, own = 4, 30
	final := make([]map[int]bool, workers)
	var wg, background sync.WaitGroup
	stop, cancel := context.WithCancel(ctx)
	for g := range workers {
		final[g] = map[int]bool{}
		wg.Go(func() { beside(t, s, g*own, own, rounds, final[g]) })
	}
	background.Go(func() { compactUntil(t, stop, s) })
	background.Go(func() {
		for stop.Err() == nil {
			seen := map[blobstor.Address]bool{}
			for info, err := range s.All(ctx, "") {
				if err != nil || seen[info.Address] {
					t.Errorf("All: %v, twice: %v", err, seen[info.Address])
				}
				seen[info.Address] = true
			}
		}
	})
	wg.Wait()
	cancel()
	background.Wait()
	for range 2 {
		for g := range final {
			for n := g * own; n < (g+1)*own; n++ {
				var want []byte
				if final[g][n] {
					want = smallData(n)
				}
				expect(t, s, n, want)
			}
		}
		recount(t, s)
		check(t, s.Close())
		s = mustOpen(t, dir, opts)
	}
}

// beside changes and reads its own blobs, and compares with what it knows.
func beside(t *testing.T, s *Tree, from, count, rounds int, stored map[int]bool) {
	hints := map[int]blobstor.Location{}
	for round := range rounds {
		items := make([]blobstor.Item, 0, count)
		for n := from; n < from+count; n++ {
			if (n+round)%3 == 0 {
				items = append(items, blobstor.Item{Address: addrOf(n), Data: smallData(n), Location: hints[n]})
				stored[n] = round%2 == 0
			}
		}
		var err error
		if round%2 == 0 {
			err = s.PutBatch(ctx, items)
		} else if err = s.DeleteBatch(ctx, items); errors.Is(err, blobstor.ErrNotFound) {
			err = nil
		}
		if err != nil {
			t.Error(err)
			return
		}
		n := from + round*7%count
		if stored[n] {
			at, err := s.Put(ctx, addrOf(n), smallData(n)) // nothing to write
			if err != nil {
				t.Error(err)
			}
			hints[n] = at
		}
		for n := from; n < from+count; n++ {
			got, err := s.Get(ctx, addrOf(n), hints[n], nil)
			if stored[n] && string(got) != string(smallData(n)) || !stored[n] && !errors.Is(err, blobstor.ErrNotFound) {
				t.Errorf("round %d: blob %d, stored %v: %d bytes, %v", round, n, stored[n], len(got), err)
				return
			}
		}
	}
}

// A tombstone is in the filter from when it can be found, also if the filter is made anew at that moment.
func TestTombstonesDuringCollect(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{NoSync: true})
	l := s.leaves[0]
	const blobs = 3000
	putSmall(t, s, 0, blobs)
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for stop.Err() == nil {
			if err := l.collectTombs(); err != nil {
				t.Error(err)
			}
		}
	})
	for n := range blobs {
		remove(t, s, n)
		if !l.tombs.has(s.sortKey(addrOf(n))) {
			t.Errorf("tombstone %d is missing in the filter", n)
		}
	}
	cancel()
	wg.Wait()
}

// compactUntil compacts again and again until stop ends.
func compactUntil(t *testing.T, stop context.Context, s *Tree) {
	for stop.Err() == nil {
		if err := s.Compact(stop); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
