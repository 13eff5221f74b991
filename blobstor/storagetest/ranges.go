package storagetest

import (
	"bytes"
	"math"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// Law 6: ranges, as ReadRange and GetRange see them.
var ranges = []clause{
	{"law6/every edge", reading, func(f *fixture) {
		var blobs []blob
		for _, n := range []int{0, 1, 2, 100, 4096, 65_535, 65_536, 65_537, 200_000} {
			blobs = append(blobs, f.put(n))
		}
		s := f.ready()
		for _, b := range blobs {
			edges := edges(int64(len(b.data)))
			for _, off := range edges {
				for _, n := range edges {
					f.checkRange(s, b, off, n)
				}
			}
		}
	}},
	{"law6/random ranges", reading, func(f *fixture) {
		var blobs []blob
		for range 20 {
			blobs = append(blobs, f.put(f.rng.IntN(1<<f.rng.IntN(19))))
		}
		s := f.ready()
		for range 300 {
			b := blobs[f.rng.IntN(len(blobs))]
			n := int64(len(b.data))
			f.checkRange(s, b, f.rng.Int64N(n+2), f.rng.Int64N(n+2))
		}
	}},
	{"law6/huge length costs no memory", writing, func(f *fixture) {
		b := f.put(1000)
		s := f.ready()
		for _, n := range []int64{1 << 40, 1 << 62, math.MaxInt64 - 10, math.MaxInt64} {
			_, err := blobstor.GetRange(f.ctx, s, b.addr, b.at, 10, n)
			f.is("GetRange of a huge length", err, blobstor.ErrOutOfRange)
		}
	}},
	{"law6/out of range is a refusal", writing, func(f *fixture) {
		b := f.put(10)
		s := f.ready()
		_, size, err := blobstor.ReadRange(f.ctx, s, b.addr, b.at, make([]byte, 5), int64(len(b.data))+1)
		f.is("ReadRange behind the end", err, blobstor.ErrOutOfRange)
		f.wrapped("ReadRange", err, b.addr)
		if size != int64(len(b.data)) || blobstor.IsFault(err) {
			f.Fatalf("ReadRange behind the end: size %d and %v; want %d and no fault", size, err, len(b.data))
		}
	}},
}

// edges are the offsets and lengths around which mistakes are made.
func edges(size int64) []int64 {
	e := []int64{
		-1, 0, 1, size / 2, size - 1, size, size + 1, size + 1000, 4095, 65_535, 65_536, 65_537,
		math.MaxInt64 - size, math.MaxInt64, math.MinInt64,
	}
	slices.Sort(e)
	return slices.Compact(e)
}

// checkRange compares ReadRange and GetRange with the blob itself.
func (f *fixture) checkRange(s blobstor.Storage, b blob, off, n int64) {
	f.Helper()
	size := int64(len(b.data))
	got, err := blobstor.GetRange(f.ctx, s, b.addr, b.at, off, n)
	if inside := off >= 0 && off <= size && n >= 0 && n <= size-off; inside {
		if err != nil || !bytes.Equal(got, b.data[off:off+n]) {
			f.Fatalf("GetRange(%d, %d) of %d bytes: %d bytes, %v", off, n, size, len(got), err)
		}
	} else {
		f.is("GetRange outside the blob", err, blobstor.ErrOutOfRange)
		if len(got) != 0 {
			f.Fatalf("GetRange(%d, %d) outside a blob of %d bytes returned %d bytes", off, n, size, len(got))
		}
	}
	if n >= 0 && n <= size+1000 {
		f.checkReadRange(s, b, off, n)
	}
}

// canary follows the buffer of a range and must survive.
var canary = bytes.Repeat([]byte("canary "), 10)

func (f *fixture) checkReadRange(s blobstor.Storage, b blob, off, n int64) {
	f.Helper()
	size := int64(len(b.data))
	room := append(make([]byte, n), canary...)
	got, whole, err := blobstor.ReadRange(f.ctx, s, b.addr, b.at, room[:n], off)
	if !bytes.Equal(room[n:], canary) {
		f.Fatalf("ReadRange(%d bytes at %d) of %d wrote behind its buffer", n, off, size)
	}
	if off < 0 || off > size {
		f.is("ReadRange outside the blob", err, blobstor.ErrOutOfRange)
		return
	}
	want := b.data[off:min(off+n, size)]
	if err != nil || whole != size || got != len(want) || !bytes.Equal(room[:got], want) {
		f.Fatalf("ReadRange(%d bytes at %d) of %d: %d bytes, size %d, %v", n, off, size, got, whole, err)
	}
}
