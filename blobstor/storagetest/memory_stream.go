package storagetest

import (
	"context"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// NewReader reads range by range.
func (m *Memory) NewReader(ctx context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Reader, error) {
	return blobstor.Stream(struct {
		blobstor.Storage
		blobstor.RangeReader
	}{m, m}).NewReader(ctx, addr, at)
}

// firstRoom is how much a writer sets aside on the caller's word alone.
const firstRoom = 16 << 20

// NewWriter collects the blob where it stays.
func (m *Memory) NewWriter(ctx context.Context, size int64) (blobstor.Writer, error) {
	err := m.do(ctx, "new writer", blobstor.Address{}, func(*disk) error { return nil })
	if err != nil {
		return nil, err
	}
	size = max(size, -1)
	return &memoryWriter{m: m, ctx: ctx, size: size, data: make([]byte, 0, min(max(size, 0), firstRoom))}, nil
}

type memoryWriter struct {
	m    *Memory
	ctx  context.Context // the stream's
	size int64           // announced, or -1
	data []byte
	err  error // of the first Write that failed, or ErrClosed at the end
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	err := w.m.do(w.ctx, "write", blobstor.Address{}, func(d *disk) error {
		if w.err == nil && w.size >= 0 && int64(len(w.data)+len(p)) > w.size {
			w.err = fmt.Errorf("%w: more than the %d bytes announced", blobstor.ErrOutOfRange, w.size)
		}
		if w.err == nil && d.limit > 0 && int64(len(w.data)+len(p)) > d.limit {
			w.err = blobstor.ErrTooLarge
		}
		return w.err
	})
	if err != nil {
		return 0, err
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *memoryWriter) Commit(addr blobstor.Address) (at blobstor.Location, err error) {
	err = w.m.do(w.ctx, "commit", addr, func(d *disk) (err error) {
		switch {
		case w.err != nil:
			return w.err
		case w.size >= 0 && int64(len(w.data)) < w.size:
			return fmt.Errorf("%w: less than the %d bytes announced", blobstor.ErrOutOfRange, w.size)
		}
		at, err = d.store(addr, w.data)
		return err
	})
	w.Close()
	return at, err
}

func (w *memoryWriter) Close() error {
	w.data, w.err = nil, blobstor.ErrClosed
	return nil
}
