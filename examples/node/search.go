package main

import (
	"context"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Search returns a page of the objects of all shards that match a query; the next one begins at its Next. A shard that
// cannot be searched is an error, for its objects would be missing; an object that cannot be read is passed over.
func (n *Node) Search(ctx context.Context, q metabase.Query) (metabase.Page, error) {
	pages := make([]metabase.Page, len(n.shards))
	for i, s := range n.shards {
		page, err := s.db.Search(ctx, q)
		if _, one := unreadable(err); err != nil && !one {
			return metabase.Page{}, err
		}
		pages[i] = page // goes on behind the one
	}
	return metabase.Merge(q, pages...), nil
}

// unreadable returns the object that an error concerns alone. The fault is counted; a check of the disk is due.
func unreadable(err error) (addr blobstor.Address, ok bool) {
	e, ok := errors.AsType[*blobstor.Error](err)
	if !ok || e.Address.Object.IsZero() {
		return addr, false
	}
	return e.Address, true
}

// SearchAll calls Search until there is no more.
func (n *Node) SearchAll(ctx context.Context, q metabase.Query) (all []metabase.Match, err error) {
	for {
		page, err := n.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Found...)
		if !page.More {
			return all, nil
		}
		q.After = page.Next
	}
}

// List returns the objects of all shards in the order of addresses, from behind one of them, at most limit and
// [metabase.MaxPage]; none is the end.
func (n *Node) List(ctx context.Context, after Address, limit int) ([]metabase.Found, error) {
	limit = min(max(limit, 0), metabase.MaxPage)
	var all []metabase.Found
	for _, s := range n.shards {
		page, err := s.list(ctx, after.blob(), limit)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	// Each page has the first objects of its shard, so the first of all are among them.
	slices.SortFunc(all, func(a, b metabase.Found) int { return a.Address.Compare(b.Address) })
	all = slices.CompactFunc(all, func(a, b metabase.Found) bool { return a.Address == b.Address })
	return all[:min(limit, len(all))], nil
}

// list is List of one shard. It goes on behind an object that cannot be read.
func (s *shard) list(ctx context.Context, after blobstor.Address, limit int) (all []metabase.Found, err error) {
	for one := true; one; after, one = unreadable(err) {
		var page []metabase.Found
		page, err = s.db.List(ctx, after, limit-len(all))
		all = append(all, page...)
	}
	return all, err
}
