package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

func Example() {
	main()
	// Output:
	// journal: 5 bytes
	// journal: 65536 bytes
	// large: 1048576 bytes
}

// TestLaws holds the journal to the contract, as any storage can be.
func TestLaws(t *testing.T) {
	storagetest.Test(t, storagetest.Harness{
		Limit:     maxBlob,
		NoReserve: true,
		New: func(tb testing.TB) blobstor.Storage {
			return mustOpen(tb, filepath.Join(tb.TempDir(), "journal"))
		},
		Reopen: func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			if err := s.Close(); err != nil {
				tb.Fatal(err)
			}
			return mustOpen(tb, fileOf(s).Name())
		},
		PowerLoss: func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			s.Close()
			if err := os.WriteFile(fileOf(s).Name(), fileOf(s).synced, 0o600); err != nil {
				tb.Fatal(err)
			}
			return mustOpen(tb, fileOf(s).Name())
		},
		Damage: func(tb testing.TB, s blobstor.Storage, addr blobstor.Address) {
			flip(tb, fileOf(s).Name(), s.(*journal).blobs[addr].off+headerSize)
		},
		Full: func(_ testing.TB, s blobstor.Storage) (release func()) {
			fileOf(s).full.Store(true)
			return func() { fileOf(s).full.Store(false) }
		},
		FailSync: func(_ testing.TB, s blobstor.Storage) (heal func()) {
			fileOf(s).failSync.Store(true)
			return func() { fileOf(s).failSync.Store(false) }
		},
	})
}

// faultyFile is a file on a disk that fails on demand, and that knows what a loss of power would leave.
type faultyFile struct {
	*os.File
	full, failSync atomic.Bool
	synced         []byte // content at the last sync
}

func fileOf(s blobstor.Storage) *faultyFile { return s.(*journal).file.(*faultyFile) }

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if f.full.Load() {
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(p, off)
}

func (f *faultyFile) Sync() (err error) {
	if f.failSync.Load() {
		return syscall.EIO
	}
	f.synced, err = os.ReadFile(f.Name()) // a test keeps its disk in memory; a real sync would prove no more
	return err
}

// TestTornTail cuts the file at every byte of its last record: that blob is gone, the one before it is there.
func TestTornTail(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	first, last, ends := fill(t, name)
	for size := ends[0]; size < ends[1]; size++ {
		torn := copyOf(t, name, size)
		j := mustOpen(t, torn)
		wantGet(t, j, first, nil)
		wantGet(t, j, last, blobstor.ErrNotFound)
		if j.end != ends[0] {
			t.Errorf("cut at %d: the journal ends at %d, want %d", size, j.end, ends[0])
		}
	}
}

// TestLostHeader damages the first header: the blob behind it is served, and no miss is called a fact.
func TestLostHeader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	first, last, _ := fill(t, name)
	flip(t, name, 10)
	j := mustOpen(t, name)
	wantGet(t, j, first, blobstor.ErrCorrupt)
	wantGet(t, j, last, nil)
	if err := j.Delete(context.Background(), first, ""); err != nil {
		t.Errorf("Delete of what may be lost: %v", err)
	}
}

// fill puts two blobs and returns their addresses and the ends of their records.
func fill(t *testing.T, name string) (first, last blobstor.Address, ends [2]int64) {
	t.Helper()
	j := mustOpen(t, name)
	for i, addr := range []*blobstor.Address{&first, &last} {
		addr.Object[0] = byte(i + 1)
		if _, err := j.Put(context.Background(), *addr, []byte("some content")); err != nil {
			t.Fatal(err)
		}
		ends[i] = j.end
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return first, last, ends
}

func mustOpen(tb testing.TB, name string) *journal {
	tb.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	j, err := newJournal(&faultyFile{File: f})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { j.Close() })
	return j
}

func wantGet(t *testing.T, j *journal, addr blobstor.Address, want error) {
	t.Helper()
	if _, err := j.Get(context.Background(), addr, "", nil); !errors.Is(err, want) {
		t.Errorf("Get: %v, want %v", err, want)
	}
}

// copyOf copies the first bytes of a file.
func copyOf(t *testing.T, name string, size int64) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn")
	if err := os.WriteFile(torn, data[:size], 0o600); err != nil {
		t.Fatal(err)
	}
	return torn
}

// flip changes one byte of a file.
func flip(tb testing.TB, name string, off int64) {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	data[off] ^= 0xff
	if err := os.WriteFile(name, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}
