package blobovnicza

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// faulty opens a store whose operations can be made to fail.
func faulty(t *testing.T, opts Options) (*Tree, *site) {
	t.Helper()
	ss := &sites{all: map[blobstor.Storage]*site{}}
	opts.Create = true
	s := ss.open(t, t.TempDir(), opts)
	return s, ss.of(s)
}

// expect fails the test unless a stored blob reads as want, or is missing where want is nil.
func expect(t testing.TB, s *Tree, n int, want []byte) {
	t.Helper()
	got, err := s.Get(ctx, addrOf(n), "", nil)
	if want == nil && !errors.Is(err, blobstor.ErrNotFound) || want != nil && (err != nil || !bytes.Equal(got, want)) {
		t.Errorf("blob %d: %d bytes, %v; want %d", n, len(got), err, len(want))
	}
}

// A failed write or sync: its callers get the error, what was acknowledged stays, the next put works, and nothing
// of the failed commit ever comes true, neither in this store, nor after a reopen, nor after a power loss.
func TestFailedCommitNeverComesTrue(t *testing.T) {
	eio := syscall.EIO
	for _, tc := range []struct {
		name   string
		faults []crashtest.Fault
		is     []error
		files  int // after the next put
	}{
		{"write", []crashtest.Fault{{Op: durable.OpWrite, Err: eio}}, []error{eio}, 1},
		{"write without room", []crashtest.Fault{{Op: durable.OpWrite, Err: syscall.ENOSPC}}, []error{blobstor.ErrNoSpace}, 1},
		{"sync", []crashtest.Fault{{Op: durable.OpSync, Err: eio}}, []error{eio, blobstor.ErrFailed}, 2},
		{"sync without room", []crashtest.Fault{{Op: durable.OpSync, Err: syscall.ENOSPC}},
			[]error{blobstor.ErrNoSpace, blobstor.ErrFailed}, 2},
		{"write and cut", []crashtest.Fault{{Op: durable.OpWrite, Err: eio}, {Op: durable.OpTruncate, Err: eio}},
			[]error{eio, blobstor.ErrFailed}, 2},
		{"write and sync of the cut", []crashtest.Fault{{Op: durable.OpWrite, Err: eio}, {Op: durable.OpSync, Err: eio}},
			[]error{eio, blobstor.ErrFailed}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, st := faulty(t, Options{})
			_, err := s.Put(ctx, addrOf(1), []byte("before"))
			check(t, err)
			for _, f := range tc.faults {
				st.faults.Add(f)
			}
			_, err = s.Put(ctx, addrOf(2), []byte("failed"))
			for _, want := range tc.is {
				if !errors.Is(err, want) {
					t.Errorf("put: %v, want it to match %v", err, want)
				}
			}
			if fault := !errors.Is(err, blobstor.ErrNoSpace); blobstor.IsFault(err) != fault {
				t.Errorf("IsFault(%v) is %v", err, !fault)
			}
			st.faults.Clear()
			verify := func(s *Tree, third []byte) {
				t.Helper()
				expect(t, s, 1, []byte("before"))
				expect(t, s, 2, nil)
				expect(t, s, 3, third)
			}
			verify(s, nil)
			dir := t.TempDir()
			check(t, st.record.PowerLoss(dir))
			verify(mustOpen(t, dir, Options{}), nil)
			verify(mustOpen(t, copyStore(t, st.dir), Options{}), nil)

			_, err = s.Put(ctx, addrOf(3), []byte("after"))
			check(t, err)
			verify(s, []byte("after"))
			if got := s.Stats().Files; got != tc.files {
				t.Errorf("%d files, want %d", got, tc.files)
			}
			check(t, st.record.PowerLoss(filepath.Join(dir, "again")))
			verify(mustOpen(t, filepath.Join(dir, "again"), Options{}), []byte("after"))
			check(t, s.Close())
			s = mustOpen(t, st.dir, Options{})
			verify(s, []byte("after"))
			_, err = s.Put(ctx, addrOf(2), []byte("failed"))
			check(t, err)
			expect(t, s, 2, []byte("failed"))
		})
	}
}

// While the failed commit cannot be revoked the leaf refuses writes, also puts that have nothing to write; it goes
// on by itself once it can.
func TestUnrevokedLeafRefusesWrites(t *testing.T) {
	s, st := faulty(t, Options{})
	_, err := s.Put(ctx, addrOf(1), []byte("before"))
	check(t, err)
	st.faults.Add(crashtest.Fault{Op: durable.OpSync, Forever: true, Err: syscall.EIO})
	for range 3 {
		if _, err := s.Put(ctx, addrOf(2), []byte("failed")); !errors.Is(err, blobstor.ErrFailed) {
			t.Fatalf("put: %v", err)
		}
		if _, err := s.Put(ctx, addrOf(1), []byte("before")); !errors.Is(err, blobstor.ErrFailed) {
			t.Fatalf("no-op put: %v", err)
		}
		items := []blobstor.Item{{Address: addrOf(1), Data: []byte("before")}}
		if err := s.PutBatch(ctx, items); !errors.Is(err, blobstor.ErrFailed) {
			t.Fatalf("no-op batch: %v", err)
		}
		if err := s.Delete(ctx, addrOf(1), ""); !errors.Is(err, blobstor.ErrFailed) {
			t.Fatalf("delete: %v", err)
		}
	}
	expect(t, s, 1, []byte("before"))
	expect(t, s, 2, nil)
	st.faults.Clear()
	_, err = s.Put(ctx, addrOf(1), []byte("before"))
	check(t, err)
	_, err = s.Put(ctx, addrOf(2), []byte("later"))
	check(t, err)
	check(t, s.Close())
	s = mustOpen(t, st.dir, Options{})
	expect(t, s, 1, []byte("before"))
	expect(t, s, 2, []byte("later"))
}

// Close revokes what could not be revoked before, and says if it cannot either.
func TestCloseRevokes(t *testing.T) {
	for _, healed := range []bool{true, false} {
		s, st := faulty(t, Options{})
		_, err := s.Put(ctx, addrOf(1), []byte("before"))
		check(t, err)
		st.faults.Add(crashtest.Fault{Op: durable.OpSync, Forever: true, Err: syscall.EIO})
		if _, err := s.Put(ctx, addrOf(2), []byte("failed")); !errors.Is(err, blobstor.ErrFailed) {
			t.Fatalf("put: %v", err)
		}
		if healed {
			st.faults.Clear()
		}
		if err := s.Close(); (err == nil) != healed {
			t.Errorf("healed %v: Close: %v", healed, err)
		}
		if healed {
			s = mustOpen(t, st.dir, Options{})
			expect(t, s, 1, []byte("before"))
			expect(t, s, 2, nil)
		}
	}
}

// A file that cannot be made when the active one is full fails the puts that need it, and no others.
func TestNextFileCannotBeMade(t *testing.T) {
	for _, op := range []durable.Op{durable.OpCreate, durable.OpLink} {
		s, st := faulty(t, Options{FileSize: 4 << 10})
		_, err := s.Put(ctx, addrOf(1), dataOf(1, 3500))
		check(t, err)
		st.faults.Add(crashtest.Fault{Op: op, Path: treeDir, Forever: true, Err: syscall.EMFILE})
		_, err = s.Put(ctx, addrOf(2), dataOf(2, 3500))
		if !errors.Is(err, syscall.EMFILE) || blobstor.IsFault(err) {
			t.Errorf("%v: put: %v", op, err)
		}
		check(t, s.Delete(ctx, addrOf(1), "")) // a tombstone still fits
		st.faults.Clear()
		_, err = s.Put(ctx, addrOf(2), dataOf(2, 3500))
		check(t, err)
		expect(t, s, 1, nil)
		expect(t, s, 2, dataOf(2, 3500))
	}
}

// A full file system refuses puts cleanly, and takes them again once there is room.
func TestFullFileSystem(t *testing.T) {
	dir := smallFS(t, "4m")
	s := mustOpen(t, filepath.Join(dir, "store"), Options{})
	filler := filepath.Join(dir, "filler")
	check(t, os.WriteFile(filler, make([]byte, 1<<20), 0o600))
	full := 0
	for n := 0; full < 5; n++ {
		switch _, err := s.Put(ctx, addrOf(n), dataOf(n, 100<<10)); {
		case errors.Is(err, blobstor.ErrNoSpace) && !blobstor.IsFault(err):
			full++
			expect(t, s, n, nil)
		case err != nil || n > 100:
			t.Fatalf("put %d: %v", n, err)
		}
	}
	verify := func(s *Tree) int {
		count := 0
		for info, err := range s.All(ctx, "") {
			check(t, err)
			_, err = s.Get(ctx, info.Address, info.Location, nil)
			check(t, err)
			count++
		}
		return count
	}
	stored := verify(s)
	check(t, s.Close())
	s = mustOpen(t, filepath.Join(dir, "store"), Options{})
	if got := verify(s); got != stored || got == 0 {
		t.Errorf("%d blobs after a reopen of the full store, want %d", got, stored)
	}
	check(t, os.Remove(filler))
	_, err := s.Put(ctx, addrOf(1000), dataOf(1000, 100<<10))
	check(t, err)
	expect(t, s, 1000, dataOf(1000, 100<<10))
}

// When nothing works any more, because every file operation fails or the store's directory is gone, every call ends
// all the same, and so do Close and what runs in the background.
func TestEveryCallEnds(t *testing.T) {
	allFail := func(err error) func(*testing.T, *site) {
		return func(_ *testing.T, st *site) {
			all := func(durable.Op, string) bool { return true }
			st.faults.Add(crashtest.Fault{Match: all, Forever: true, Err: err})
		}
	}
	for name, hurt := range map[string]func(*testing.T, *site){
		"broken": allFail(syscall.EIO),
		"full":   allFail(syscall.ENOSPC),
		"gone":   func(_ *testing.T, st *site) { _ = os.RemoveAll(st.dir) }, // what is open stays on some systems
	} {
		t.Run(name, func(t *testing.T) {
			s, st := faulty(t, Options{FileSize: 16 << 10, Width: 2, Depth: 1, MaxOpen: 4, Compact: CompactOptions{DeadRatio: 0.01}})
			putSmall(t, s, 0, 300)
			for n := range 100 {
				remove(t, s, 3*n)
			}
			hurt(t, st)
			for _, c := range everyCall(s) {
				late := time.AfterFunc(time.Minute, func() { panic(c.name + " does not end") }) // nor would what cleans up
				c.do()
				late.Stop()
			}
		})
	}
}

type call struct {
	name string
	do   func()
}

// everyCall is a call of each kind, the end of the store last. Nobody looks at what comes of them.
func everyCall(s *Tree) []call {
	return []call{
		{"put", func() { _, _ = s.Put(ctx, addrOf(1000), smallData(1000)) }},
		{"delete", func() { _ = s.Delete(ctx, addrOf(1), "") }},
		{"batch", func() { _ = s.DeleteBatch(ctx, []blobstor.Item{{Address: addrOf(4)}, {Address: addrOf(5)}}) }},
		{"get", func() { _, _ = s.Get(ctx, addrOf(2), "", nil) }},
		{"all", func() {
			for range s.All(ctx, "") {
			}
		}},
		{"check", func() { _, _ = s.Check(ctx) }},
		{"repair", func() { _, _ = s.Repair(ctx) }},
		{"compact", func() { _ = s.Compact(ctx) }},
		{"upkeep", func() { _ = s.upkeep(ctx) }},
		{"read-only", func() { _ = s.SetReadOnly(ctx, true) }},
		{"close", func() { _ = s.Close() }},
	}
}

// A context that ends while the operation is queued withdraws it.
func TestCancelledWhileQueued(t *testing.T) {
	s, st := faulty(t, Options{})
	hold := newHoldUp(func(op durable.Op, _ string) bool { return op == durable.OpSync })
	hold.armed.Store(true)
	st.faults.Next = hold
	first := make(chan error, 1)
	go func() { _, err := s.Put(ctx, addrOf(1), []byte("first")); first <- err }()
	hold.wait(t, first)
	queued, cancel := context.WithCancel(ctx)
	second := make(chan error, 1)
	go func() { _, err := s.Put(queued, addrOf(2), []byte("second")); second <- err }()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("queued put: %v", err)
	}
	close(hold.release)
	check(t, <-first)
	expect(t, s, 1, []byte("first"))
	expect(t, s, 2, nil)
}

func TestHooksAndStats(t *testing.T) {
	var commits, ops, corrupt, faults atomic.Int64
	dir := t.TempDir()
	opts := Options{Hooks: blobstor.Hooks{
		Commit: func(n int, bytes int64, wait, sync time.Duration) {
			if n < 1 || bytes < headerSize || wait < 0 || sync <= 0 {
				t.Errorf("commit of %d, %d bytes, wait %v, sync %v", n, bytes, wait, sync)
			}
			commits.Add(1)
			ops.Add(int64(n))
		},
		Corrupt: func(info blobstor.Info, err error) {
			if info.Address != addrOf(3) || !errors.Is(err, blobstor.ErrCorrupt) {
				t.Errorf("corrupt: %+v, %v", info, err)
			}
			corrupt.Add(1)
		},
		Fault: func(string, error) { faults.Add(1) },
	}}
	s := mustOpen(t, dir, opts)
	for n := range 10 {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, 100))
		check(t, err)
	}
	check(t, s.Delete(ctx, addrOf(0), ""))
	stats := s.Stats()
	if stats.Objects != 9 || stats.Commits != 11 || stats.Records != 11 || stats.SyncTime <= 0 ||
		stats.Live != 9*recordSize(kindPut, 100) || stats.Dead != recordSize(kindPut, 100) {
		t.Errorf("stats %+v", stats)
	}
	if commits.Load() != 11 || ops.Load() != 11 {
		t.Errorf("%d commits of %d operations", commits.Load(), ops.Load())
	}
	info, err := s.Stat(ctx, addrOf(3), "")
	check(t, err)
	_, p, _ := parseLocation(info.Location)
	flip(t, dataPath(dir, s, addrOf(3), p.file), p.off+headerSize)
	if _, err := s.Get(ctx, addrOf(3), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Error(err)
	}
	if corrupt.Load() != 1 || faults.Load() != 1 || s.Stats().Corrupt != 1 {
		t.Errorf("%d corrupt, %d faults", corrupt.Load(), faults.Load())
	}
	expect(t, s, 100, nil) // a miss is neither
	check(t, s.Close())
	if _, err := s.Put(ctx, addrOf(1), make([]byte, 2<<20)); !errors.Is(err, blobstor.ErrClosed) {
		t.Errorf("a large put after Close: %v", err)
	}
	if corrupt.Load() != 1 || faults.Load() != 1 {
		t.Error("a miss was reported")
	}
}

// Hooks are called outside the store: whatever they do, Close included, does not wait for their caller.
func TestHooksMayCallBack(t *testing.T) {
	dir := t.TempDir()
	var s *Tree
	commits := 0
	s = mustOpen(t, dir, Options{Hooks: blobstor.Hooks{
		Commit: func(int, int64, time.Duration, time.Duration) {
			if commits++; commits == 1 {
				_, err := s.Put(ctx, addrOf(2), []byte("from the hook"))
				check(t, err)
			}
		},
		Corrupt: func(blobstor.Info, error) { check(t, s.Close()) },
	}})
	at, err := s.Put(ctx, addrOf(1), []byte("one"))
	check(t, err)
	expect(t, s, 2, []byte("from the hook"))
	_, p, _ := parseLocation(at)
	flip(t, dataPath(dir, s, addrOf(1), p.file), p.off+headerSize)
	if _, err := s.Get(ctx, addrOf(1), at, nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Error(err)
	}
	if _, err := s.Get(ctx, addrOf(2), "", nil); !errors.Is(err, blobstor.ErrClosed) {
		t.Errorf("after the hook closed the store: %v", err)
	}
}
