package blobstor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// ranged shows RangeReader only.
type ranged struct {
	blobstor.Storage
	blobstor.RangeReader
}

func TestStreamReturnsBlobStor(t *testing.T) {
	b := blobstor.Stream(storagetest.NewMemory(0))
	if blobstor.Stream(b) != b {
		t.Error("Stream wrapped a BlobStor")
	}
	if _, ok := b.(blobstor.RangeReader); !ok {
		t.Error("Stream hides RangeReader")
	}
	if _, ok := b.(blobstor.Batcher); !ok {
		t.Error("Stream hides Batcher")
	}
}

func TestStreamConformance(t *testing.T) {
	h := storagetest.MemoryHarness(20_000)
	memory := func(s blobstor.Storage) blobstor.Storage { return s.(*hiding).m }
	wrap := func(s blobstor.Storage) blobstor.Storage {
		return &hiding{blobstor.Stream(storagetest.Hide(s)), s}
	}
	inner := h
	h.New = func(tb testing.TB) blobstor.Storage { return wrap(inner.New(tb)) }
	h.Reopen = func(tb testing.TB, s blobstor.Storage) blobstor.Storage { return wrap(inner.Reopen(tb, memory(s))) }
	h.PowerLoss = h.Reopen
	h.Damage = func(tb testing.TB, s blobstor.Storage, a blobstor.Address) { inner.Damage(tb, memory(s), a) }
	h.Full = func(tb testing.TB, s blobstor.Storage) func() { return inner.Full(tb, memory(s)) }
	h.FailSync = func(tb testing.TB, s blobstor.Storage) func() { return inner.FailSync(tb, memory(s)) }
	storagetest.Test(t, h)
}

// hiding is a stream over a hidden memory storage that the harness still reaches.
type hiding struct {
	blobstor.BlobStor
	m blobstor.Storage
}

// TestStreamReaderSources: with ranges it reads what it must, without it reads once.
func TestStreamReaderSources(t *testing.T) {
	f := storagetest.NewFault(storagetest.NewMemory(0))
	data := payload(700_000)
	mustPut(t, f, address(1), data)
	for name, s := range map[string]blobstor.Storage{"ranges": ranged{f, f}, "whole": storagetest.Hide(f)} {
		r, err := blobstor.Stream(s).NewReader(ctx, address(1), "")
		must(t, err)
		var buf bytes.Buffer
		n, err := io.Copy(&buf, r)
		if err != nil || n != int64(len(data)) || !bytes.Equal(buf.Bytes(), data) {
			t.Errorf("%s: Copy: %d, %v", name, n, err)
		}
		must(t, r.Close())
		must(t, r.Close())
		_, err = r.Seek(0, io.SeekStart)
		must(t, err)
		_, err = r.Read(make([]byte, 1))
		wantIs(t, err, blobstor.ErrClosed)
	}
	if gets := f.Calls(storagetest.Get); gets != 1 {
		t.Errorf("%d calls of Get, want 1", gets)
	}
	if reads := f.Calls(storagetest.ReadRange); reads > 4 {
		t.Errorf("%d calls of ReadRange for 700 kB", reads)
	}
}

func TestStreamReaderFails(t *testing.T) {
	for _, hide := range []bool{false, true} {
		m := storagetest.NewMemory(0)
		mustPut(t, m, address(1), payload(1000))
		var s blobstor.Storage = m
		if hide {
			s = storagetest.Hide(m)
		}
		b := blobstor.Stream(s)
		_, err := b.NewReader(ctx, address(2), "")
		wantIs(t, err, blobstor.ErrNotFound)
		m.Damage(address(1))
		r, err := b.NewReader(ctx, address(1), "")
		if err == nil {
			_, err = io.ReadAll(r)
		}
		wantIs(t, err, blobstor.ErrCorrupt)
	}
}

// TestStreamWriterGrows: an announced size is a stranger's word, and memory follows what was written.
func TestStreamWriterGrows(t *testing.T) {
	b := blobstor.Stream(storagetest.NewMemory(0))
	for _, size := range []int64{1 << 50, -1, -7} {
		w, err := b.NewWriter(ctx, size)
		must(t, err)
		_, err = io.Copy(w, iotest.OneByteReader(bytes.NewReader(payload(3000))))
		must(t, err)
		_, err = w.Commit(address(int(size & 7)))
		if (err == nil) != (size < 0) {
			t.Errorf("Commit with size %d announced: %v", size, err)
		}
	}
}

func TestStreamWriterErrors(t *testing.T) {
	m := storagetest.NewMemory(100)
	b := blobstor.Stream(storagetest.Hide(m))
	w, err := b.NewWriter(ctx, 10)
	must(t, err)
	if n, err := w.Write(payload(11)); n != 0 || !errors.Is(err, blobstor.ErrOutOfRange) {
		t.Errorf("Write of more than was announced: %d, %v", n, err)
	}
	_, err = w.Write(payload(10))
	wantIs(t, err, blobstor.ErrOutOfRange) // the first error stays
	_, err = w.Commit(address(1))
	wantIs(t, err, blobstor.ErrOutOfRange)

	w, err = b.NewWriter(ctx, -1)
	must(t, err)
	_, err = w.Write(payload(101))
	must(t, err)
	_, err = w.Commit(address(1))
	wantIs(t, err, blobstor.ErrTooLarge)

	done, cancel := context.WithCancel(ctx)
	w, err = b.NewWriter(done, -1)
	must(t, err)
	cancel()
	_, err = w.Write(payload(1))
	wantIs(t, err, context.Canceled)
	_, err = b.NewWriter(done, -1)
	wantIs(t, err, context.Canceled)

	must(t, b.Close())
	_, err = b.NewWriter(ctx, -1)
	wantIs(t, err, blobstor.ErrClosed)
	_, err = m.Stat(ctx, address(1), "")
	wantIs(t, err, blobstor.ErrClosed) // Close of the stream closed the storage
}
