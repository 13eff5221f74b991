package blobstor

import (
	"context"
	"fmt"
	"io"
	"math"
)

// ReadRange fills p with the blob's bytes from off as far as the blob goes and returns how many they are and the
// blob's size: n < len(p) only at the blob's end. An offset that is negative or behind the end is ErrOutOfRange;
// behind the end the size is returned with it. Without [RangeReader] it gets the whole blob and cuts.
//
// ReadRange may use all of p as scratch space, also when it fails, and never touches what lies behind len(p).
func ReadRange(ctx context.Context, s Storage, addr Address, at Location, p []byte, off int64) (n int, size int64, err error) {
	if r, ok := s.(RangeReader); ok {
		return r.ReadRange(ctx, addr, at, p, off)
	}
	if off < 0 {
		return 0, 0, Wrap("read range", addr, at, ErrOutOfRange)
	}
	var dst []byte
	if off == 0 {
		// The blob lands in p at once if it fits there, so that a pooled read of a whole blob allocates nothing.
		dst = p[:0:len(p)]
	}
	data, err := s.Get(ctx, addr, at, dst)
	if err != nil {
		return 0, 0, err
	}
	size = int64(len(data))
	if off > size {
		return 0, size, Wrap("read range", addr, at, ErrOutOfRange)
	}
	return copy(p, data[off:]), size, nil
}

// firstRange is how much GetRange allocates on the caller's word alone, before the blob's size is known: more
// than most ranges are long, so one read is enough for them, and too little to hurt.
const firstRange = 1 << 20 // 1 MiB

// GetRange returns exactly the n bytes from off, which the caller owns; n == 0 is empty. It returns ErrOutOfRange
// unless 0 <= off <= off+n <= the blob's size. A huge n costs no memory.
func GetRange(ctx context.Context, s Storage, addr Address, at Location, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > math.MaxInt64-n {
		return nil, Wrap("get range", addr, at, ErrOutOfRange)
	}
	p := make([]byte, min(n, firstRange))
	got, size, err := ReadRange(ctx, s, addr, at, p, off)
	if err != nil {
		return nil, err
	}
	if off+n > size {
		return nil, Wrap("get range", addr, at, ErrOutOfRange)
	}
	if n > math.MaxInt {
		return nil, Wrap("get range", addr, at, ErrTooLarge) // for the memory of a 32-bit system
	}
	if n > firstRange {
		p = append(make([]byte, 0, n), p[:got]...)[:n]
		var more int
		if more, _, err = ReadRange(ctx, s, addr, at, p[got:], off+int64(got)); err != nil {
			return nil, err
		}
		got += more
	}
	if int64(got) < n {
		return nil, Wrap("get range", addr, at, fmt.Errorf("storage returned %d of %d bytes: %w", got, n, io.ErrUnexpectedEOF))
	}
	return p, nil
}
