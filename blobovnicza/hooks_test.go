package blobovnicza

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// closingHook returns a Fault hook that closes a store when it is told of that operation first, and a channel that is
// closed when that was done.
func closingHook(want string, s *atomic.Pointer[Tree]) (func(string, error), chan struct{}) {
	done := make(chan struct{})
	var once sync.Once
	return func(op string, _ error) {
		if op == want {
			once.Do(func() { s.Load().Close(); close(done) })
		}
	}, done
}

// A hook that is told of lost addresses when a call opens their leaf is not inside that call.
func TestFaultHookOfLostAddresses(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{Width: 2, Depth: 1})
	check(t, s.Close())
	for _, path := range []string{filepath.Join(dir, treeDir, "0", dataName(1)), filepath.Join(dir, treeDir, "1", dataName(1))} {
		check(t, os.Truncate(path, 0))
	}
	var tree atomic.Pointer[Tree]
	hook, done := closingHook("open", &tree)
	tree.Store(mustOpen(t, dir, Options{Hooks: blobstor.Hooks{Fault: hook}}))
	if _, err := tree.Load().Get(ctx, addrOf(1), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("get: %v", err)
	}
	<-done
}

// A hook that is told of a failure in the background is not inside the background, which Close waits for.
func TestFaultHookOfUpkeep(t *testing.T) {
	var tree atomic.Pointer[Tree]
	hook, done := closingHook("upkeep", &tree)
	s, st := faulty(t, Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}, Hooks: blobstor.Hooks{Fault: hook}})
	tree.Store(s)
	check(t, s.upkeep(ctx))
	st.faults.Add(crashtest.Fault{Op: durable.OpRename, Path: indexSuffix, Forever: true, Err: syscall.EIO})
	for n := range 10 { // a file that is full gets its index
		if _, err := s.Put(ctx, addrOf(n), dataOf(n, 500)); err != nil && !errors.Is(err, blobstor.ErrClosed) {
			t.Error(err)
		}
	}
	<-done
}

// A hook that is told of what Compact met is outside it.
func TestHookOfCompact(t *testing.T) {
	dir := t.TempDir()
	all := fileStore(t, dir)
	_, p, _ := parseLocation(all[0].at)
	flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off+headerSize)
	var tree atomic.Pointer[Tree]
	hook, done := closingHook("compact", &tree)
	tree.Store(mustOpen(t, dir, Options{Compact: CompactOptions{Off: true, DeadRatio: 0.01}, Hooks: blobstor.Hooks{Fault: hook}}))
	if err := tree.Load().Compact(ctx); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("compact: %v", err)
	}
	<-done
}

// Stats opens no leaf of a closed store: its directory may be another's by then.
func TestStatsAfterClose(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Width: 2, Depth: 1})
	check(t, s.Close())
	if st := s.Stats(); st.Open != 0 || st.Files != 0 {
		t.Errorf("stats %+v", st)
	}
}
