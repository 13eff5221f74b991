package blobovnicza

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// TestUnreadableIsNotDamaged: after an unclean stop reads of the disk fail while the store is opened and used, one or all
// from some moment on. Nobody takes that for damage: all that was acknowledged is there, and nothing of it is cut off.
func TestUnreadableIsNotDamaged(t *testing.T) {
	for _, size := range []int64{4 << 10, 64 << 10} {
		dead := filepath.Join(t.TempDir(), "dead")
		s := mustOpen(t, t.TempDir(), Options{Create: true, FileSize: size, Compact: CompactOptions{Off: true}})
		for n := range unreadableBlobs {
			_, err := s.Put(ctx, addrOf(n), dataOf(n, 100*n))
			check(t, err)
		}
		check(t, os.CopyFS(dead, os.DirFS(s.store.Dir.Path())))
		for _, forever := range []bool{false, true} {
			n := 0
			for failedRead(t, copyStore(t, dead), crashtest.Fault{Op: durable.OpRead, N: n, Forever: forever, Err: syscall.EIO}) {
				n++
			}
			if n < 5 {
				t.Errorf("files of %d bytes: only %d reads", size, n)
			}
		}
	}
}

const unreadableBlobs = 20

// failedRead opens and uses a store while reads fail, verifies it when they do not any more, and reports whether any did.
func failedRead(t *testing.T, dir string, fault crashtest.Fault) bool {
	t.Helper()
	bad := func(err error, want error) bool { return !errors.Is(err, want) && !errors.Is(err, syscall.EIO) }
	faults := &crashtest.Faults{}
	faults.Add(fault)
	s, err := open(dir, &Options{Compact: CompactOptions{Off: true}}, faults)
	if bad(err, nil) {
		t.Fatalf("%+v: open: %v", fault, err)
	}
	if err == nil {
		if _, err = s.Put(ctx, addrOf(unreadableBlobs), nil); bad(err, nil) {
			t.Errorf("%+v: put: %v", fault, err)
		}
		if _, err = s.Get(ctx, addrOf(unreadableBlobs+1), "", nil); bad(err, blobstor.ErrNotFound) {
			t.Errorf("%+v: get of what was never put: %v", fault, err)
		}
		if err = s.Close(); bad(err, nil) {
			t.Errorf("%+v: close: %v", fault, err)
		}
	}
	hits := faults.Hits()
	s = mustOpen(t, dir, Options{Compact: CompactOptions{Off: true}})
	for n := range unreadableBlobs {
		expect(t, s, n, dataOf(n, 100*n))
	}
	if st := s.Stats(); st.Lost > 0 || st.Torn > 0 {
		t.Errorf("%+v: stats %+v", fault, st)
	}
	check(t, s.Close())
	return hits > 0
}

// TestUnreadableIsNotReplaced: where nobody can tell what a record would replace none is written, or the replaced one
// would never be counted as dead.
func TestUnreadableIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	all := smallStore(t, dir, 30)
	faults := &crashtest.Faults{}
	s, err := open(dir, &Options{Compact: CompactOptions{Off: true}}, faults)
	check(t, err)
	defer s.Close()
	faults.Add(crashtest.Fault{Op: durable.OpRead, Forever: true, Err: syscall.EIO}) // or an index would be made again from the data
	refused := 0
	for n := range all {
		if err := s.Delete(ctx, addrOf(n), ""); errors.Is(err, syscall.EIO) {
			refused++
		} else if err != nil && !all[n].deleted {
			t.Errorf("delete %d: %v", n, err)
		}
	}
	if refused == 0 {
		t.Error("no delete had to read an index")
	}
	faults.Clear()
	r, err := s.Check(ctx)
	check(t, err)
	if !r.OK() {
		t.Errorf("check: %+v", r.Files)
	}
	for n := range all {
		if err := s.Delete(ctx, addrOf(n), ""); err != nil && !errors.Is(err, blobstor.ErrNotFound) {
			t.Errorf("delete %d: %v", n, err)
		}
		expect(t, s, n, nil)
	}
}
