package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Put stores an object that is in memory. When it returns nil, the object survives power loss.
func (n *Node) Put(ctx context.Context, h *Header, payload []byte) (Address, error) {
	blob, err := h.encode()
	if err != nil {
		return Address{}, err
	}
	blob = append(blob, payload...)
	addr := Address{Container: h.Container, Object: sha256.Sum256(blob)}
	s, err := n.writable()
	if err != nil {
		return addr, err
	}
	recs := h.records(addr.blob(), int64(len(payload)))
	return addr, n.put(ctx, s, recs, func() (blobstor.Location, error) { return s.blobs.Put(ctx, addr.blob(), blob) })
}

// PutStream stores an object of any size in little memory. Its ID, the hash of all that was written, is known last.
func (n *Node) PutStream(ctx context.Context, h *Header, payload io.Reader) (Address, error) {
	head, err := h.encode()
	if err != nil {
		return Address{}, err
	}
	s, err := n.writable()
	if err != nil {
		return Address{}, err
	}
	w, err := s.blobs.NewWriter(ctx, -1)
	if err != nil {
		return Address{}, err
	}
	defer w.Close() // discards the blob unless it was committed
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(w, hash), io.MultiReader(bytes.NewReader(head), payload))
	if err != nil {
		return Address{}, err
	}
	addr := Address{Container: h.Container, Object: ID(hash.Sum(nil))}
	recs := h.records(addr.blob(), size-int64(len(head)))
	return addr, n.put(ctx, s, recs, func() (blobstor.Location, error) { return w.Commit(addr.blob()) })
}

// put stores an object on one shard unless a shard has it, under the lock of its address: Collect must not remove the
// blob before the record is there.
func (n *Node) put(ctx context.Context, s *shard, recs []metabase.Record, write func() (blobstor.Location, error)) error {
	unlock := n.locks.Lock(recs[0].Address)
	defer unlock()
	have, err := n.have(ctx, recs[0].Address)
	if have || err != nil {
		return err
	}
	return s.put(ctx, recs, write)
}

// have reports whether a shard has an object; that it was removed or has expired is an error. One that is only marked
// may come back. A shard that cannot be asked does not stop a put: two copies of one content do no harm.
func (n *Node) have(ctx context.Context, addr blobstor.Address) (bool, error) {
	for _, s := range n.shards {
		have, err := s.db.Exists(ctx, addr)
		if have || errors.Is(err, blobstor.ErrNotFound) && !errors.Is(err, metabase.ErrGarbage) {
			return have, err
		}
	}
	return false, ctx.Err()
}
