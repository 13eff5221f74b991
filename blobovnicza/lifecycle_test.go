package blobovnicza

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// Wrong directories are clear errors, and stay as they are.
func TestWrongDirectory(t *testing.T) {
	store := t.TempDir()
	s := mustOpen(t, store, Options{Width: 2, Depth: 1, Owner: []byte("node 1")})
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, []byte("precious"), 0o600))
	full := t.TempDir()
	check(t, os.WriteFile(filepath.Join(full, "other"), nil, 0o600))
	for name, tc := range map[string]struct {
		dir  string
		opts Options
		want error
	}{
		"open twice":           {store, Options{}, blobstor.ErrInUse},
		"open twice read-only": {store, Options{ReadOnly: true}, blobstor.ErrInUse},
		"missing":              {filepath.Join(full, "missing"), Options{}, blobstor.ErrLayout},
		"empty":                {t.TempDir(), Options{}, blobstor.ErrLayout},
		"a file":               {file, Options{Create: true}, blobstor.ErrLayout},
		"foreign directory":    {full, Options{Create: true}, blobstor.ErrLayout},
	} {
		if _, err := Open(tc.dir, &tc.opts); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	check(t, s.Close())
	for name, opts := range map[string]Options{
		"width": {Width: 3, Depth: 1}, "depth": {Width: 2, Depth: 2}, "owner": {Owner: []byte("node 2")},
	} {
		if _, err := Open(store, &opts); !errors.Is(err, blobstor.ErrLayout) {
			t.Errorf("other %s: %v", name, err)
		}
	}
}

// A leaf whose directory is missing has damaged blobs, never missing ones, and the others go on.
func TestMissingLeaf(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{Width: 2, Depth: 1})
	check(t, s.Close())
	check(t, os.RemoveAll(filepath.Join(dir, treeDir, "1")))
	s = mustOpen(t, dir, Options{})
	var gone, served int
	for n := range 50 {
		_, err := s.Put(ctx, addrOf(n), []byte("x"))
		_, getErr := s.Get(ctx, addrOf(n), "", nil)
		switch {
		case errors.Is(err, blobstor.ErrCorrupt) && errors.Is(getErr, blobstor.ErrCorrupt):
			gone++
		case err == nil && getErr == nil:
			served++
		default:
			t.Errorf("put: %v, get: %v", err, getErr)
		}
	}
	if gone == 0 || served == 0 {
		t.Errorf("%d refused, %d served", gone, served)
	}
}

func TestOptionsValidate(t *testing.T) {
	bad := Options{Create: true, ReadOnly: true, NoSync: true, Owner: make([]byte, 65), Width: -1, Depth: 2,
		MaxBlob: 1 << 30, FileSize: -1}
	_, err := Open(t.TempDir(), &bad)
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) < 7 {
		t.Errorf("%v; want every bad field", err)
	}
	for _, o := range []Options{{Width: 300, Depth: 3}, {Width: 1 << 20, Depth: 1 << 20}, {Depth: 1}} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid", o)
		}
	}
	for _, o := range []Options{{}, {Width: 1, Depth: 1000}, {Width: 256, Depth: 2}, {Width: 70000}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// SetReadOnly returns when the commits that run have ended, refuses writes, and can be lifted.
func TestSetReadOnly(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Width: 2, Depth: 1})
	_, err := s.Put(ctx, addrOf(1), []byte("x")) // below, nobody may come to it in time
	check(t, err)
	var stop atomic.Bool
	var late atomic.Int64 // acknowledged after SetReadOnly returned
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := g; ; n += 8 {
				began := stop.Load()
				_, err := s.Put(ctx, addrOf(n), []byte("x"))
				if err != nil {
					if !errors.Is(err, blobstor.ErrReadOnly) {
						t.Error(err)
					}
					return
				}
				if began {
					late.Add(1)
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	check(t, s.SetReadOnly(ctx, true))
	stop.Store(true)
	wg.Wait()
	if n := late.Load(); n > 0 {
		t.Errorf("%d puts began and succeeded after SetReadOnly", n)
	}
	if err := s.Delete(ctx, addrOf(1), ""); !errors.Is(err, blobstor.ErrReadOnly) {
		t.Errorf("delete: %v", err)
	}
	expect(t, s, 1, []byte("x"))
	check(t, s.SetReadOnly(ctx, false))
	check(t, s.Delete(ctx, addrOf(1), ""))
}

// Close waits for the calls that run; those that come later get ErrClosed.
func TestCloseWhileCallsRun(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{FileSize: 64 << 10})
	var acked sync.Map
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for n := g; ; n += 16 {
				if _, err := s.Put(ctx, addrOf(n), dataOf(n, 1000)); err != nil {
					if !errors.Is(err, blobstor.ErrClosed) {
						t.Error(err)
					}
					return
				}
				acked.Store(n, true)
				if _, err := s.Get(ctx, addrOf(n), "", nil); err != nil && !errors.Is(err, blobstor.ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	check(t, s.Close())
	wg.Wait()
	s = mustOpen(t, dir, Options{})
	acked.Range(func(n, _ any) bool {
		expect(t, s, n.(int), dataOf(n.(int), 1000))
		return true
	})
}

// A file is full at FileRecords, whatever its size.
func TestFileRecords(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{FileRecords: 10})
	for n := range 30 {
		_, err := s.Put(ctx, addrOf(n), []byte("x"))
		check(t, err)
	}
	files := s.leaves[0].version.Load().files
	for _, f := range files {
		if n := f.records.Load(); n > 10 {
			t.Errorf("file %d has %d records", f.number, n)
		}
	}
	if len(files) < 3 {
		t.Errorf("%d files", len(files))
	}
}

// Files and directories have the permissions that were asked for, as far as the process's mask lets them.
func TestPerm(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such permissions")
	}
	like := t.TempDir()
	check(t, os.Mkdir(filepath.Join(like, "dir"), 0o750))
	check(t, os.WriteFile(filepath.Join(like, "file"), nil, 0o640))
	dir := filepath.Join(like, "store")
	s := mustOpen(t, dir, Options{Perm: 0o640, FileSize: 1 << 10, KeepSpare: true})
	for n := range 5 {
		_, err := s.Put(ctx, addrOf(n), make([]byte, 500))
		check(t, err)
	}
	check(t, s.upkeep(ctx))
	check(t, s.Close())
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		check(t, err)
		info, err := e.Info()
		check(t, err)
		want, err := os.Stat(filepath.Join(like, map[bool]string{true: "dir", false: "file"}[e.IsDir()]))
		check(t, err)
		if info.Mode() != want.Mode() {
			t.Errorf("%s: %v, want %v", path, info.Mode(), want.Mode())
		}
		return nil
	}))
}

// When SetReadOnly has returned nothing is written any more, not even by a call that was let in before and had to look
// first; and a leaf whose disk has failed does not keep the store from being read-only.
func TestReadOnlyComesFirst(t *testing.T) {
	opts := byHand()
	opts.Width, opts.Depth = 2, 1
	s, st := faulty(t, opts)
	s.stopKeeper()
	putSmall(t, s, 0, 20)
	hold := newHoldUp(func(op durable.Op, path string) bool { return op == durable.OpRead })
	st.faults.Next = hold
	hold.armed.Store(true)
	deleted := make(chan error, 1)
	go func() { deleted <- s.Delete(ctx, addrOf(3), "") }()
	hold.wait(t, deleted)
	check(t, s.SetReadOnly(ctx, true))
	close(hold.release)
	if err := <-deleted; !errors.Is(err, blobstor.ErrReadOnly) {
		t.Errorf("a delete that was looking: %v", err)
	}
	expect(t, s, 3, smallData(3))
	check(t, s.SetReadOnly(ctx, false))
	st.faults.Add(crashtest.Fault{Op: durable.OpSync, Forever: true, Err: syscall.EIO})
	for n := range 8 {
		if _, err := s.Put(ctx, addrOf(100+n), smallData(n)); !errors.Is(err, blobstor.ErrFailed) {
			t.Errorf("put on a failed disk: %v", err)
		}
	}
	check(t, s.SetReadOnly(ctx, true))
	if _, err := s.Put(ctx, addrOf(200), nil); !errors.Is(err, blobstor.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
	st.faults.Clear()
}
