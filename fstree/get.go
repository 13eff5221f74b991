package fstree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// Get appends the verified blob to dst; a nil dst is allocated exactly. The location is not needed.
func (t *Tree) Get(ctx context.Context, addr blobstor.Address, _ blobstor.Location, dst []byte) ([]byte, error) {
	p := t.place(addr)
	out, err := t.get(ctx, p, dst)
	return out, t.report("get", p, err)
}

func (t *Tree) get(ctx context.Context, p place, dst []byte) ([]byte, error) {
	if err := t.enter(ctx); err != nil {
		return dst, err
	}
	defer t.calls.leave()
	b, err := t.openBlob(p)
	if err != nil {
		return dst, err
	}
	defer b.free()
	n := len(dst)
	if b.size > int64(math.MaxInt-n) {
		return dst, fmt.Errorf("%w: %d bytes do not fit into memory", blobstor.ErrTooLarge, b.size)
	}
	end := n + int(b.size)
	out := dst
	if dst == nil {
		out = make([]byte, end)
	} else {
		out = slices.Grow(dst, int(b.size))[:end]
	}
	if _, err := b.read(out[n:], 0); err != nil {
		return dst, err
	}
	return out, nil
}

// ReadRange fills b with the blob's bytes from off as far as the blob goes, and returns how many and the blob's
// size. It reads and verifies only the blocks of 64 KiB that it touches.
func (t *Tree) ReadRange(ctx context.Context, addr blobstor.Address, _ blobstor.Location, b []byte, off int64) (n int, size int64, err error) {
	p := t.place(addr)
	n, size, err = t.readRange(ctx, p, b, off)
	return n, size, t.report("read range", p, err)
}

func (t *Tree) readRange(ctx context.Context, p place, buf []byte, off int64) (int, int64, error) {
	if err := t.enter(ctx); err != nil {
		return 0, 0, err
	}
	defer t.calls.leave()
	b, err := t.openBlob(p)
	if err != nil {
		return 0, 0, err
	}
	defer b.free()
	if off < 0 || off > b.size {
		return 0, b.size, blobstor.ErrOutOfRange
	}
	n, err := b.read(buf[:min(int64(len(buf)), b.size-off)], off)
	return n, b.size, err
}

// Stat reports size and location of a blob. It verifies the footer, not the payload.
func (t *Tree) Stat(ctx context.Context, addr blobstor.Address, _ blobstor.Location) (blobstor.Info, error) {
	p := t.place(addr)
	info, err := t.stat(ctx, p)
	return info, t.report("stat", p, err)
}

func (t *Tree) stat(ctx context.Context, p place) (blobstor.Info, error) {
	if err := t.enter(ctx); err != nil {
		return blobstor.Info{}, err
	}
	defer t.calls.leave()
	b, err := t.openBlob(p)
	if err != nil {
		return blobstor.Info{}, err
	}
	defer b.free()
	return b.info(), nil
}

// openBlob opens a blob's file and verifies its footer; the caller frees the blob. A missing one is
// blobstor.ErrNotFound.
func (t *Tree) openBlob(p place) (*blob, error) {
	f, err := t.openFile(p)
	return asBlob(f, p, err)
}

// asBlob makes a blob of what an open of its file returned.
func asBlob(f *durable.File, p place, err error) (*blob, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, blobstor.ErrNotFound
	case errors.Is(err, durable.ErrNotRegular):
		return nil, fmt.Errorf("%w: %w", blobstor.ErrCorrupt, err)
	case err != nil:
		return nil, err
	}
	b := blobs.Get().(*blob)
	if err := b.load(f, p); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

func (t *Tree) openIn(key dirKey, p place) (f *durable.File, err error) {
	dir, err := t.dirs.get(key, false)
	if err != nil {
		return nil, err
	}
	defer t.dirs.put(dir)
	name := p.name()
	err = t.dirs.retry(func() error { f, err = dir.Open(name); return err })
	return f, err
}
