package blobstor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
	"github.com/granary-store/granary/fstree"
)

// TestCompressMaxSize: a blob above the limit is refused before anything is stored, and so is a frame that claims one.
func TestCompressMaxSize(t *testing.T) {
	m := storagetest.NewMemory(0)
	wide := newCompressed(t, m, blobstor.CompressOptions{})
	s := newCompressed(t, m, blobstor.CompressOptions{MaxSize: 10_000, BlockSize: 4096})
	data := text(10_001, 1)
	_, err := s.Put(ctx, address(1), data)
	wantIs(t, err, blobstor.ErrTooLarge)
	items := []blobstor.Item{{Address: address(1), Data: data}, {Address: address(2), Data: data[:10_000]}}
	wantIs(t, blobstor.PutBatch(ctx, s, items), blobstor.ErrTooLarge)
	must(t, items[1].Err)
	_, err = s.NewWriter(ctx, 10_001)
	wantIs(t, err, blobstor.ErrTooLarge)
	w, err := s.NewWriter(ctx, -1)
	must(t, err)
	_, err = w.Write(data)
	wantIs(t, err, blobstor.ErrTooLarge)
	_, err = w.Commit(address(1))
	wantIs(t, err, blobstor.ErrTooLarge)
	if n := count(t, m); n != 1 {
		t.Errorf("%d blobs are stored, want 1", n)
	}
	mustPut(t, wide, address(3), data)
	_, err = s.Get(ctx, address(3), "", nil)
	wantIs(t, err, blobstor.ErrCorrupt)
	wantGet(t, wide, address(3), data)
}

// TestCompressTellsOfDamage: what is no frame is damage that the storage below cannot see.
func TestCompressTellsOfDamage(t *testing.T) {
	var told []blobstor.Info
	s, m := compressed(t, blobstor.CompressOptions{Hooks: blobstor.Hooks{
		Corrupt: func(info blobstor.Info, err error) {
			wantIs(t, err, blobstor.ErrCorrupt)
			told = append(told, info)
		},
	}})
	at := mustPut(t, m, address(1), text(200_000, 1))
	_, err := s.Get(ctx, address(1), at, nil)
	wantIs(t, err, blobstor.ErrCorrupt)
	_, err = s.Stat(ctx, address(1), at)
	wantIs(t, err, blobstor.ErrCorrupt)
	_, err = s.NewReader(ctx, address(1), at)
	wantIs(t, err, blobstor.ErrCorrupt)
	_, _, err = s.ReadRange(ctx, address(1), at, make([]byte, 10), 0)
	wantIs(t, err, blobstor.ErrCorrupt)
	if len(told) != 4 || told[0].Address != address(1) || s.Stats().Corrupt != 4 {
		t.Errorf("told of %v, %+v", told, s.Stats())
	}
	must(t, s.Delete(ctx, address(1), at))
	mustPut(t, s, address(1), text(200_000, 1))
	wantGet(t, s, address(1), text(200_000, 1))
}

// TestCompressStreamsInLittleMemory: a writer and a reader hold a few blocks of a large blob.
func TestCompressStreamsInLittleMemory(t *testing.T) {
	const blocks, most = 1 << 10, 32 << 20
	disk, err := fstree.Open(filepath.Join(t.TempDir(), "s"), &fstree.Options{Create: true, NoSync: true, Depth: -1})
	must(t, err)
	s := newCompressed(t, disk, blobstor.CompressOptions{})
	defer s.Close()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := func() {
		runtime.ReadMemStats(&now)
		if now.HeapAlloc > before.HeapAlloc+most {
			t.Fatalf("%d bytes on the heap, %d before", now.HeapAlloc, before.HeapAlloc)
		}
	}
	block := append(text(64<<10, 1), random(64<<10, 1)...)
	w, err := s.NewWriter(ctx, -1)
	must(t, err)
	for i := range blocks {
		_, err := w.Write(block)
		must(t, err)
		if i%64 == 0 {
			peak()
		}
	}
	_, err = w.Commit(address(1))
	must(t, err)
	r, err := s.NewReader(ctx, address(1), "")
	must(t, err)
	defer r.Close()
	got := make([]byte, len(block))
	for i := range blocks {
		_, err := io.ReadFull(r, got)
		must(t, err)
		if !bytes.Equal(got, block) {
			t.Fatalf("block %d is another", i)
		}
		if i%64 == 0 {
			peak()
		}
	}
}

// counting counts how blobs come to a storage with streams, whose writers may have no room.
type counting struct {
	*storagetest.Memory
	puts, streams int
	full          bool
}

func (c *counting) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	c.puts++
	return c.Memory.Put(ctx, addr, data)
}

func (c *counting) NewWriter(ctx context.Context, size int64) (blobstor.Writer, error) {
	c.streams++
	w, err := c.Memory.NewWriter(ctx, size)
	if err == nil && c.full {
		w = &fullWriter{w}
	}
	return w, err
}

type fullWriter struct{ blobstor.Writer }

func (w *fullWriter) Write([]byte) (int, error) {
	return 0, blobstor.Wrap("write", blobstor.Address{}, "", blobstor.ErrNoSpace)
}

// TestCompressPutStreams: a large blob that stays as it is is not copied where the storage streams, and finds its place
// where a stream does not.
func TestCompressPutStreams(t *testing.T) {
	for _, c := range []struct {
		name          string
		data          []byte
		full          bool
		puts, streams int
	}{
		{"random", random(2<<20, 1), false, 0, 1},
		{"text", text(2<<20, 1), false, 1, 0},
		{"small", random(1<<20-1, 1), false, 1, 0},
		{"no room in streams", random(2<<20, 2), true, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			under := &counting{Memory: storagetest.NewMemory(0), full: c.full}
			s := newCompressed(t, under, blobstor.CompressOptions{})
			mustPut(t, s, address(1), c.data)
			if under.puts != c.puts || under.streams != c.streams {
				t.Errorf("%d puts, %d streams", under.puts, under.streams)
			}
			wantGet(t, s, address(1), c.data)
		})
	}
}

// TestCompressPutErrors: an error of a stream is one of the Put, with the blob's address.
func TestCompressPutErrors(t *testing.T) {
	s := newCompressed(t, storagetest.NewMemory(1<<20), blobstor.CompressOptions{})
	_, err := s.Put(ctx, address(1), random(2<<20, 1))
	wantIs(t, err, blobstor.ErrTooLarge)
	if e, ok := errors.AsType[*blobstor.Error](err); !ok || e.Op != "put" || e.Address != address(1) {
		t.Errorf("%v", err)
	}
	_, err = s.NewWriter(ctx, blobstor.DefaultMaxSize+1)
	wantIs(t, err, blobstor.ErrTooLarge)
	w, err := s.NewWriter(ctx, blobstor.DefaultMaxSize)
	must(t, err)
	must(t, w.Close())
}
