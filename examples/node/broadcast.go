package main

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Delete buries an object with a tombstone, which lives through the epoch expires. A locked object is ErrHeld.
func (n *Node) Delete(ctx context.Context, addr Address, expires uint64) (tombstone Address, err error) {
	return n.broadcast(ctx, &Header{Container: addr.Container, Kind: metabase.Tombstone, Target: addr.Object, Expires: expires})
}

// Lock holds an object through the epoch expires: until then it is neither removed nor does it expire.
func (n *Node) Lock(ctx context.Context, addr Address, expires uint64) (lock Address, err error) {
	return n.broadcast(ctx, &Header{Container: addr.Container, Kind: metabase.Lock, Target: addr.Object, Expires: expires})
}

// broadcast stores a tombstone or a lock on every shard, blob and record: wherever its target is or will be, the shard
// knows, also after a rebuild. After an error it may be on some; the call can be repeated.
func (n *Node) broadcast(ctx context.Context, h *Header) (Address, error) {
	blob, err := h.encode()
	if err != nil {
		return Address{}, err
	}
	addr := Address{Container: h.Container, Object: sha256.Sum256(blob)}
	target := Address{Container: h.Container, Object: h.Target}.blob()
	unlockTarget := n.targets.Lock(target) // all shards get two of them in one order
	defer unlockTarget()
	unlock := n.locks.Lock(addr.blob())
	defer unlock()
	if err := n.judge(ctx, h.Kind, target); err != nil {
		return addr, err
	}
	var errs []error
	for _, s := range n.shards {
		errs = append(errs, s.putOnce(ctx, h.records(addr.blob(), 0), blob))
	}
	return addr, errors.Join(errs...)
}

// judge asks all shards before one is written to: a hold or a removal that reached any of them counts.
func (n *Node) judge(ctx context.Context, kind metabase.Kind, target blobstor.Address) error {
	for _, s := range n.shards {
		status, err := s.db.Status(ctx, target)
		switch {
		case err != nil:
			return err
		case kind == metabase.Tombstone && status.Held:
			return blobstor.Wrap("delete", target, "", metabase.ErrHeld)
		case kind == metabase.Lock && status.State >= metabase.Marked: // it is too late
			return blobstor.Wrap("lock", target, "", status.State.Err())
		}
	}
	return nil
}

// putOnce stores a blob in memory on this shard unless it is there.
func (s *shard) putOnce(ctx context.Context, recs []metabase.Record, blob []byte) error {
	addr := recs[0].Address
	have, err := s.db.Exists(ctx, addr)
	if have || err != nil {
		return err
	}
	return s.put(ctx, recs, func() (blobstor.Location, error) { return s.blobs.Put(ctx, addr, blob) })
}
