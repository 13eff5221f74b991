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
		check(t, s.Close())
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
