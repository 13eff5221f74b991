package blobovnicza

import (
	"context"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Get appends the verified blob to dst, in one read of the disk if the location is right.
func (t *Tree) Get(ctx context.Context, addr blobstor.Address, at blobstor.Location, dst []byte) ([]byte, error) {
	r := reading{addr: addr, mode: modeWhole, dst: dst}
	if err := t.read(ctx, at, &r); err != nil {
		return dst, t.fail("get", addr, at, err)
	}
	return r.dst, nil
}

// ReadRange fills p from off as far as the blob goes. A blob of up to 64 KiB is verified whole, of a longer one
// only the blocks of 64 KiB that the range touches.
func (t *Tree) ReadRange(ctx context.Context, addr blobstor.Address, at blobstor.Location, p []byte, off int64) (n int, size int64, err error) {
	if off < 0 {
		return 0, 0, blobstor.Wrap("range", addr, at, fmt.Errorf("%w: offset %d", blobstor.ErrOutOfRange, off))
	}
	r := reading{addr: addr, mode: modeSpan, p: p, off: off}
	if err := t.read(ctx, at, &r); err != nil {
		return 0, 0, t.fail("range", addr, at, err)
	}
	size = int64(r.hdr.length)
	if off > size {
		return 0, size, blobstor.Wrap("range", addr, at,
			fmt.Errorf("%w: offset %d of %d bytes", blobstor.ErrOutOfRange, off, size))
	}
	return r.n, size, nil
}

// Stat reads the header of the blob's record.
func (t *Tree) Stat(ctx context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Info, error) {
	r := reading{addr: addr, mode: modeHeader}
	if err := t.read(ctx, at, &r); err != nil {
		return blobstor.Info{}, t.fail("stat", addr, at, err)
	}
	return infoOf(&r.hdr, r.leaf, r.place), nil
}

// infoOf describes the blob of a record.
func infoOf(h *header, leaf uint16, p place) blobstor.Info {
	return blobstor.Info{
		Address:  h.address,
		Location: makeLocation(leaf, p),
		Size:     int64(h.length),
		Stored:   h.size(),
	}
}

// read serves r from where the location says, or from where the look-up finds the blob.
func (t *Tree) read(ctx context.Context, at blobstor.Location, r *reading) error {
	call, err := t.calls.enter(ctx, &r.addr)
	if err != nil {
		return err
	}
	defer call.RUnlock()
	if id, p, ok := parseLocation(at); ok && int(id) < len(t.leaves) && t.leaves[id].byHint(p, r) {
		r.leaf = id
		return nil
	}
	key := t.sortKey(r.addr)
	l, err := t.leaf(key)
	if err != nil {
		return err
	}
	r.leaf = l.id
	_, err = l.lookup(key, r)
	return err
}
