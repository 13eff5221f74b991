package main

import (
	"context"
	"errors"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

const gcPage = 1000 // objects in one step of the garbage collection

// SetEpoch begins an epoch. What has expired with the one before cannot be read from now on.
func (n *Node) SetEpoch(epoch uint64) { n.epoch.Store(epoch) }

// GC marks what has expired and removes what is marked, on all shards. It returns how many objects it removed.
func (n *Node) GC(ctx context.Context) (removed int, err error) {
	var errs []error
	for _, s := range n.shards {
		if s.sick() {
			continue
		}
		n, err := s.gc(ctx)
		removed += n
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func (s *shard) gc(ctx context.Context) (int, error) {
	if err := s.expire(ctx); err != nil {
		return 0, err
	}
	return s.collect(ctx)
}

// expire marks what has expired and is not locked. It is a decision of the node: another one might keep it for a while.
func (s *shard) expire(ctx context.Context) error {
	var after blobstor.Address
	for {
		page, err := s.db.Expired(ctx, after, gcPage)
		if err != nil || len(page) == 0 {
			return err
		}
		addrs := make([]blobstor.Address, len(page))
		for i := range page {
			addrs[i] = page[i].Address
		}
		if err := s.db.Mark(ctx, metabase.Garbage, addrs...); err != nil {
			return err
		}
		after = addrs[len(addrs)-1]
	}
}

// collect removes the blobs of what is marked or buried, and then the records. It ends when nothing goes any more: what
// is busy is left to the next time.
func (s *shard) collect(ctx context.Context) (removed int, err error) {
	for {
		n, err := s.db.Collect(ctx, gcPage, s.blobs.DeleteBatch)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}
