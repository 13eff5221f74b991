package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Node keeps objects on several shards. An object lies on any of them, a tombstone or a lock on all.
type Node struct {
	shards  []*shard
	epoch   atomic.Uint64
	next    atomic.Uint64   // shard to put to
	locks   *blobstor.Locks // by address, over blob and record
	targets *blobstor.Locks // by target, over a tombstone or lock; taken before locks
}

var errReadOnly = errors.New("node: all shards are read-only")

// Open opens a node with a shard in each directory, and with create makes shards where there are none.
func Open(create bool, dirs ...string) (*Node, error) {
	n := &Node{locks: blobstor.NewLocks(), targets: blobstor.NewLocks()}
	for _, dir := range dirs {
		s, err := openShard(dir, create, metabase.Options{Create: create, Epoch: n.epoch.Load, Locks: n.locks})
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.shards = append(n.shards, s)
	}
	return n, nil
}

// Close closes the shards. What was acknowledged is durable already.
func (n *Node) Close() error {
	var errs []error
	for _, s := range n.shards {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// writable returns the shards in turn, without those that are sick. The address does not decide: it is known only when
// a stream is over.
func (n *Node) writable() (*shard, error) {
	for range n.shards {
		s := n.shards[(n.next.Add(1)-1)%uint64(len(n.shards))]
		if !s.sick() {
			return s, nil
		}
	}
	return nil, errReadOnly
}

// find returns a shard with the blob of an object that can be read, and the record of it. Tombstones are on all shards,
// so one that knows of a removal is enough.
func (n *Node) find(ctx context.Context, addr blobstor.Address) (*shard, metabase.Record, error) {
	var absent, failed []error
	for _, s := range n.shards {
		r, err := s.db.Get(ctx, addr)
		switch {
		case err == nil && !r.Virtual:
			return s, r, nil
		case errors.Is(err, metabase.ErrBuried):
			return nil, r, err
		case err == nil: // known from its parts
			absent = append(absent, blobstor.Wrap("find", addr, "", blobstor.ErrNotFound))
		case errors.Is(err, blobstor.ErrNotFound):
			absent = append(absent, err)
		default:
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 { // without what is not found: nobody knows that
		return nil, metabase.Record{}, errors.Join(failed...)
	}
	return nil, metabase.Record{}, errors.Join(absent...)
}
