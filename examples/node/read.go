package main

import (
	"context"
	"math"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// prefixSize is enough for every header and for all of most small objects: one read gets them.
const prefixSize = 20 << 10 // 20 KiB

var prefixes = sync.Pool{New: func() any { return new([prefixSize]byte) }}

// found is an object that can be read.
type found struct {
	*shard
	addr    blobstor.Address
	at      blobstor.Location
	header  Header
	payload int64 // where it begins in the blob
	size    int64 // of the payload
}

// open reads the header of an object into memory that is used again.
func (n *Node) open(ctx context.Context, addr Address) (*found, error) {
	s, r, err := n.find(ctx, addr.blob())
	if err != nil {
		return nil, err
	}
	f := &found{shard: s, addr: r.Address, at: r.Location, size: r.Size}
	buf := prefixes.Get().(*[prefixSize]byte)
	defer prefixes.Put(buf)
	got, _, err := blobstor.ReadRange(ctx, s.blobs, f.addr, f.at, buf[:], 0)
	if err != nil {
		return nil, err
	}
	f.header, f.payload, err = decode(buf[:got])
	return f, blobstor.Wrap("open", f.addr, f.at, err)
}

// Head returns the header of an object and the size of its payload in bytes.
func (n *Node) Head(ctx context.Context, addr Address) (h Header, size int64, err error) {
	f, err := n.open(ctx, addr)
	if err != nil {
		return h, 0, err
	}
	return f.header, f.size, nil
}

// Range returns exactly length bytes of the payload from off, or ErrOutOfRange. Of a large object it reads only these,
// in whole blocks of 64 KiB, which are verified.
func (n *Node) Range(ctx context.Context, addr Address, off, length int64) ([]byte, error) {
	f, err := n.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	if off < 0 || off > math.MaxInt64-f.payload {
		return nil, blobstor.Wrap("range", f.addr, f.at, blobstor.ErrOutOfRange)
	}
	return blobstor.GetRange(ctx, f.blobs, f.addr, f.at, f.payload+off, length)
}
