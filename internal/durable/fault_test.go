package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func watched(t *testing.T) (*durable.Dir, *crashtest.Faults, *crashtest.Recorder) {
	t.Helper()
	power, err := crashtest.NewRecorder(t.TempDir())
	check(t, err)
	faults := &crashtest.Faults{Next: power}
	d, err := durable.OpenDir(t.TempDir(), faults)
	check(t, err)
	t.Cleanup(func() { d.Close() })
	return d, faults, power
}

// TestFailedDatasyncStays: a failed sync is never repeated, and the file gets no name.
func TestFailedDatasyncStays(t *testing.T) {
	d, faults, _ := watched(t)
	f, err := d.Temp()
	check(t, err)
	defer f.Discard()
	faults.Add(crashtest.Fault{Op: durable.OpSync, Err: syscall.EIO})
	for range 2 {
		if err := f.Datasync(); !errors.Is(err, blobstor.ErrFailed) || !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	if faults.Hits() != 1 {
		t.Fatalf("%d syncs", faults.Hits())
	}
	for _, err := range []error{f.Link("a"), f.Replace("a")} {
		if !errors.Is(err, blobstor.ErrFailed) {
			t.Fatal(err)
		}
	}
}

func TestFailedSyncStays(t *testing.T) {
	d, faults, _ := watched(t)
	faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Err: syscall.ENOSPC})
	_, err := d.Mkdir("sub")
	for range 2 {
		if !errors.Is(err, blobstor.ErrFailed) || !errors.Is(err, syscall.ENOSPC) || blobstor.IsFault(err) {
			t.Fatal(err)
		}
		err = d.Sync()
	}
	if !errors.Is(d.Err(), blobstor.ErrFailed) {
		t.Fatal(d.Err())
	}
}

// TestMkdirSyncsOnce: levels are synced the first time they are met, whoever made them.
func TestMkdirSyncsOnce(t *testing.T) {
	d, faults, _ := watched(t)
	count := func(names ...string) int {
		before := faults.Hits()
		faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Forever: true, Err: errCounted})
		err := d.MakeDirs(names...)
		faults.Clear()
		if err != nil && !errors.Is(err, errCounted) {
			t.Fatal(err)
		}
		return faults.Hits() - before
	}
	check(t, d.MakeDirs("a", "b"))
	if n := count("a", "b"); n != 0 {
		t.Fatalf("%d syncs for known levels", n)
	}
	if n := count("c"); n != 1 {
		t.Fatalf("%d syncs for a new level", n)
	}
	again, err := durable.OpenDir(d.Path(), nil)
	check(t, err)
	defer again.Close()
	sub, err := again.Mkdir("a")
	check(t, err)
	check(t, sub.Close())
}

// TestMkdirOfAnother: that a level is there does not prove that its name is durable.
func TestMkdirOfAnother(t *testing.T) {
	d, faults, _ := watched(t)
	check(t, d.MakeDirs("a"))
	check(t, os.Mkdir(filepath.Join(d.Path(), "b"), 0o700))
	faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Err: errCounted})
	if err := d.MakeDirs("b"); !errors.Is(err, errCounted) {
		t.Fatalf("no sync for a level that another process has made: %v", err)
	}
}

var errCounted = errors.New("counted")

// TestWriteFileKeepsOneOfTwo fails each step of replacing a file: what is there afterwards is the old content or
// the new, also after a loss of power.
func TestWriteFileKeepsOneOfTwo(t *testing.T) {
	for _, op := range []durable.Op{
		durable.OpCreate, durable.OpWrite, durable.OpSync, durable.OpLink, durable.OpRename, durable.OpSyncDir,
	} {
		root := t.TempDir()
		power, err := crashtest.NewRecorder(root)
		check(t, err)
		faults := &crashtest.Faults{Next: power}
		d, err := durable.OpenDir(root, faults)
		check(t, err)
		check(t, d.WriteFile("f", []byte("old")))
		faults.Add(crashtest.Fault{Op: op, Err: syscall.EIO})
		failed := d.WriteFile("f", []byte("new"))
		if faults.Hits() > 0 && !errors.Is(failed, syscall.EIO) {
			t.Fatalf("%v: %v", op, failed)
		}
		check(t, d.Close())
		after := filepath.Join(t.TempDir(), "after")
		check(t, power.PowerLoss(after))
		for _, dir := range []string{root, after} {
			if got := read(t, dir, "f"); got != "new" && (got != "old" || failed == nil) {
				t.Fatalf("%v: %q", op, got)
			}
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	d, err := durable.OpenDir(dir, nil)
	check(t, err)
	defer d.Close()
	f, err := d.Open(name)
	check(t, err)
	defer f.Close()
	b := make([]byte, f.OpenSize())
	_, err = f.ReadAt(b, 0)
	check(t, err)
	names, err := d.Names()
	check(t, err)
	if len(names) > 2 {
		t.Fatalf("left over: %q", names)
	}
	return string(b)
}

// TestClosedFile: a file that was closed, also by another goroutine, is fs.ErrClosed and never another's file.
func TestClosedFile(t *testing.T) {
	d, _, _ := watched(t)
	check(t, d.WriteFile("f", []byte("x")))
	f, err := d.OpenRW("f")
	check(t, err)
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
					if !errors.Is(err, fs.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	check(t, f.Close())
	for range 4 {
		<-done
	}
	_, err = f.Write(nil)
	for _, err := range []error{err, f.Close(), f.Datasync()} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Fatal(err)
		}
	}
}
