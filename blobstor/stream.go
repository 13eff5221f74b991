package blobstor

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
)

// Stream adds [Streamer] to a storage that lacks it, and returns s itself otherwise. The added Reader reads
// through [RangeReader], or holds the whole blob where the storage lacks that too; the added Writer collects the
// blob in memory and puts it at Commit, so it serves storages of small blobs. What Stream returns always is a
// RangeReader and a Batcher, by way of [ReadRange] and [PutBatch]. Its Close closes s.
func Stream(s Storage) BlobStor {
	if b, ok := s.(BlobStor); ok {
		return b
	}
	return &streamed{Storage: s}
}

// streamed is a storage with streams added.
type streamed struct {
	Storage
	closed atomic.Bool // tells streams that hold their blob in memory and so would not notice
}

var (
	_ BlobStor    = (*streamed)(nil)
	_ RangeReader = (*streamed)(nil)
	_ Batcher     = (*streamed)(nil)
)

func (s *streamed) ReadRange(ctx context.Context, addr Address, at Location, p []byte, off int64) (int, int64, error) {
	return ReadRange(ctx, s.Storage, addr, at, p, off)
}

func (s *streamed) PutBatch(ctx context.Context, items []Item) error {
	return PutBatch(ctx, s.Storage, items)
}

func (s *streamed) DeleteBatch(ctx context.Context, items []Item) error {
	return DeleteBatch(ctx, s.Storage, items)
}

func (s *streamed) Close() error {
	s.closed.Store(true)
	return s.Storage.Close()
}

func (s *streamed) NewReader(ctx context.Context, addr Address, at Location) (Reader, error) {
	if _, ok := s.Storage.(RangeReader); !ok {
		data, err := s.Get(ctx, addr, at, nil)
		if err != nil {
			return nil, err
		}
		return newReader(&wholeSource{s, ctx, addr, bytes.NewReader(data)}, int64(len(data))), nil
	}
	info, err := s.Stat(ctx, addr, at)
	if err != nil {
		return nil, err
	}
	return newReader(&rangeSource{ctx, s.Storage, addr, info.Location}, info.Size), nil
}

// check says whether a stream of ctx may still go on.
func (s *streamed) check(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// wholeSource reads a blob that is in memory.
type wholeSource struct {
	s    *streamed
	ctx  context.Context
	addr Address
	data *bytes.Reader
}

func (w *wholeSource) ReadAt(p []byte, off int64) (int, error) {
	if err := w.s.check(w.ctx); err != nil {
		return 0, Wrap("read", w.addr, "", err)
	}
	return w.data.ReadAt(p, off)
}

func (w *wholeSource) Close() error { return nil }

func (s *streamed) NewWriter(ctx context.Context, size int64) (Writer, error) {
	if err := s.check(ctx); err != nil {
		return nil, Wrap("new writer", Address{}, "", err)
	}
	return newBuffer(size, func() error { return s.check(ctx) }, func(addr Address, data []byte) (Location, error) {
		return s.Put(ctx, addr, data)
	}), nil
}

// buffer is a [Writer] that collects the blob in memory. Memory grows with what is written and not with the size
// that was announced.
type buffer struct {
	size  int64 // announced, or -1
	check func() error
	put   func(Address, []byte) (Location, error)
	data  []byte
	err   error // of the first failed Write, or ErrClosed at the end
}

func newBuffer(size int64, check func() error, put func(Address, []byte) (Location, error)) *buffer {
	return &buffer{size: max(size, -1), check: check, put: put}
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.err == nil {
		b.err = b.admit(len(p))
	}
	if b.err != nil {
		return 0, Wrap("write", Address{}, "", b.err)
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

func (b *buffer) admit(n int) error {
	if err := b.check(); err != nil {
		return err
	}
	return checkSize(b.size, int64(len(b.data))+int64(n), false)
}

// checkSize compares what was written with the size announced, -1 for unknown: never more, and at the end not
// less. It is the caller's mistake and no fault of the store.
func checkSize(size, written int64, end bool) error {
	if size < 0 || written == size || written < size && !end {
		return nil
	}
	return fmt.Errorf("%w: %d bytes written, %d announced", ErrOutOfRange, written, size)
}

func (b *buffer) Commit(addr Address) (at Location, err error) {
	err = b.err
	if err == nil {
		err = b.check()
	}
	if err == nil {
		err = checkSize(b.size, int64(len(b.data)), true)
	}
	if err == nil {
		at, err = b.put(addr, b.data)
	}
	b.Close()
	return at, Wrap("commit", addr, "", err)
}

func (b *buffer) Close() error {
	b.data, b.err = nil, ErrClosed
	return nil
}
