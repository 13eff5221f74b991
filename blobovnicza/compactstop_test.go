package blobovnicza

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// A paused walk keeps the files that it will come to, and yields each blob that was live when it began once; when it
// ends, or is broken off, they go.
func TestWalkDuringCompact(t *testing.T) {
	for _, breakOff := range []bool{true, false} {
		dir := t.TempDir()
		s := mustOpen(t, dir, byHand())
		putSmall(t, s, 0, 600)
		for n := 1; n < 600; n += 2 {
			remove(t, s, n)
		}
		before, _ := onDisk(t, dir)
		seen := map[blobstor.Address]bool{}
		for info, err := range s.All(ctx, "") {
			check(t, err)
			if seen[info.Address] {
				t.Fatalf("%v comes twice", info.Address)
			}
			if len(seen) == 0 {
				check(t, s.Compact(ctx))
				remove(t, s, 598)
				putSmall(t, s, 700, 710)
				if files, _ := onDisk(t, dir); files < before {
					t.Fatalf("%d of %d files are left for the walk", files, before)
				}
			}
			seen[info.Address] = true
			if breakOff {
				break
			}
		}
		if !breakOff && (len(seen) != 300 || seen[addrOf(700)]) {
			t.Errorf("All yields %d blobs, want 300", len(seen))
		}
		if files, _ := onDisk(t, dir); files != s.Stats().Files || files > before*4/5 {
			t.Errorf("%d of %d files are left, the store has %d", files, before, s.Stats().Files)
		}
	}
}

// A walk that ends after Close touches no disk any more: what it knows of the store's directory may be another store
// by now, for the system gives the numbers of descriptors again.
func TestWalkOutlivesClose(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		s := mustOpen(t, dir, byHand())
		putSmall(t, s, 0, 600)
		check(t, s.Close())
	}
	s := mustOpen(t, dirs[0], byHand())
	for n := range 300 {
		remove(t, s, 2*n)
	}
	var other *Tree
	for _, err := range s.All(ctx, "") {
		check(t, err)
		check(t, s.Compact(ctx))
		kept, _ := onDisk(t, dirs[0])
		check(t, s.Close())
		if left, _ := onDisk(t, dirs[0]); left >= kept || left != s.Stats().Files {
			t.Errorf("%d of %d files are left after Close, the store has %d", left, kept, s.Stats().Files)
		}
		other = mustOpen(t, dirs[1], byHand())
		break
	}
	if n := s.handles.len(); n != 0 {
		t.Errorf("%d files are open after Close", n)
	}
	for n := range 600 {
		expect(t, other, n, smallData(n))
	}
	check(t, other.Close())
	for i, dir := range dirs {
		s = mustOpen(t, dir, byHand())
		if files, _ := onDisk(t, dir); files != s.Stats().Files || s.Stats().Lost != 0 {
			t.Errorf("store %d: %d files on disk, %+v", i, files, s.Stats())
		}
		recount(t, s)
	}
}

// Close, the end of its context and SetReadOnly end a compaction in the middle, and what it has not come to stays.
func TestCompactInterrupted(t *testing.T) {
	for _, tc := range []struct {
		name string
		stop func(s *Tree, cancel func()) error
		want error
	}{
		{"close", func(s *Tree, _ func()) error { return s.Close() }, blobstor.ErrClosed},
		{"cancel", func(_ *Tree, cancel func()) error { cancel(); return nil }, context.Canceled},
		{"read-only", func(s *Tree, _ func()) error { return s.SetReadOnly(ctx, true) }, blobstor.ErrReadOnly},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, st := faulty(t, byHand())
			putSmall(t, s, 0, 300)
			for n := range 100 {
				remove(t, s, 3*n)
			}
			check(t, s.upkeep(ctx))
			before := s.Stats().Files
			hold := newHoldUp(func(op durable.Op, path string) bool { return op == durable.OpRemove })
			st.faults.Next = hold
			hold.armed.Store(true)
			stop, cancel := context.WithCancel(ctx)
			defer cancel()
			compacted, stopped := make(chan error, 1), make(chan error, 1)
			go func() { compacted <- s.Compact(stop) }()
			hold.wait(t, compacted) // the first of many files goes
			go func() { stopped <- tc.stop(s, cancel) }()
			for tc.name == "close" && s.keeper.ctx.Err() == nil || tc.name == "read-only" && !s.readOnly.Load() || tc.name == "cancel" && stop.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			close(hold.release)
			if err := <-compacted; !errors.Is(err, tc.want) {
				t.Errorf("compact: %v, want %v", err, tc.want)
			}
			check(t, <-stopped)
			check(t, s.Close())
			s = mustOpen(t, st.dir, byHand())
			if files := s.Stats().Files; files < before/2 {
				t.Errorf("%d of %d files are left: it went on", files, before)
			}
			for n := range 300 {
				want := smallData(n)
				if n%3 == 0 {
					want = nil
				}
				expect(t, s, n, want)
			}
			recount(t, s)
		})
	}
}

// Compaction in the background starts by itself when enough is dead, and stops when little is.
func TestCompactByItself(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{FileSize: 8 << 10, Compact: CompactOptions{DeadRatio: 0.3}})
	putSmall(t, s, 0, 200)
	for n := range 200 {
		if n%4 != 0 {
			remove(t, s, n)
		}
	}
	dead := func() bool {
		st := s.Stats()
		return float64(st.Dead) > 0.5*float64(st.Live+st.Dead)
	}
	for deadline := time.Now().Add(time.Minute); dead(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing was compacted: %+v", s.Stats())
		}
	}
	for n := range 50 {
		expect(t, s, 4*n, smallData(4*n))
	}
}

// A rate bounds the background. Compact does not wait for it, and waits for nothing beyond its context.
func TestCompactRate(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{FileSize: 8 << 10, Compact: CompactOptions{DeadRatio: 0.1, Rate: 1}})
	putSmall(t, s, 0, 200)
	for n := range 100 {
		remove(t, s, 2*n)
	}
	for deadline := time.Now().Add(time.Minute); s.Stats().Moved == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was moved")
		}
	}
	if n := s.Stats().Compacted; n > 3 { // files without live blobs, at most
		t.Errorf("%d files were compacted at a byte a second", n)
	}
	late, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Compact(late); !errors.Is(err, context.Canceled) {
		t.Errorf("compact: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Compact(ctx) }()
	select {
	case err := <-done:
		check(t, err)
	case <-time.After(time.Minute):
		t.Fatal("Compact waits for the background")
	}
	recount(t, s)
}
