package blobstor

import (
	"context"
	"iter"
	"sync/atomic"
)

// ReadOnly returns s with every write refused as ErrReadOnly. Its Close closes s.
func ReadOnly(s Storage) BlobStor { return &readOnly{s: Stream(s)} }

type readOnly struct {
	s      BlobStor
	closed atomic.Bool // a refusal after Close is ErrClosed
}

var (
	_ RangeReader = (*readOnly)(nil)
	_ Batcher     = (*readOnly)(nil)
)

func (r *readOnly) refusal() error {
	if r.closed.Load() {
		return ErrClosed
	}
	return ErrReadOnly
}

func (r *readOnly) Put(_ context.Context, addr Address, _ []byte) (Location, error) {
	return "", Wrap("put", addr, "", r.refusal())
}

func (r *readOnly) Get(ctx context.Context, addr Address, at Location, dst []byte) ([]byte, error) {
	return r.s.Get(ctx, addr, at, dst)
}

func (r *readOnly) Stat(ctx context.Context, addr Address, at Location) (Info, error) {
	return r.s.Stat(ctx, addr, at)
}

func (r *readOnly) Delete(_ context.Context, addr Address, at Location) error {
	return Wrap("delete", addr, at, r.refusal())
}

func (r *readOnly) All(ctx context.Context, after Location) iter.Seq2[Info, error] {
	return r.s.All(ctx, after)
}

func (r *readOnly) Close() error {
	r.closed.Store(true)
	return r.s.Close()
}

func (r *readOnly) NewReader(ctx context.Context, addr Address, at Location) (Reader, error) {
	return r.s.NewReader(ctx, addr, at)
}

func (r *readOnly) NewWriter(context.Context, int64) (Writer, error) {
	return nil, Wrap("new writer", Address{}, "", r.refusal())
}

func (r *readOnly) ReadRange(ctx context.Context, addr Address, at Location, p []byte, off int64) (int, int64, error) {
	return ReadRange(ctx, r.s, addr, at, p, off)
}

func (r *readOnly) PutBatch(_ context.Context, items []Item) error {
	return refuseItems("put", items, r.refusal())
}

func (r *readOnly) DeleteBatch(_ context.Context, items []Item) error {
	return refuseItems("delete", items, r.refusal())
}
