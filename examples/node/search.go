package main

import (
	"context"
	"slices"

	"github.com/granary-store/granary/metabase"
)

// Search returns a page of the objects of all shards that match a query; the next one begins at its Next. A shard that
// cannot be searched is an error: its objects would be missing.
func (n *Node) Search(ctx context.Context, q metabase.Query) (metabase.Page, error) {
	pages := make([]metabase.Page, len(n.shards))
	for i, s := range n.shards {
		var err error
		if pages[i], err = s.db.Search(ctx, q); err != nil {
			return metabase.Page{}, s.note(err)
		}
	}
	return metabase.Merge(q, pages...), nil
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

// maxList is the most that List returns: no shard returns more at once.
const maxList = 10_000

// List returns the objects of all shards in the order of addresses, from behind one of them, at most limit and maxList;
// none is the end.
func (n *Node) List(ctx context.Context, after Address, limit int) ([]metabase.Found, error) {
	limit = min(max(limit, 0), maxList)
	var all []metabase.Found
	for _, s := range n.shards {
		page, err := s.db.List(ctx, after.blob(), limit)
		if err != nil {
			return nil, s.note(err)
		}
		all = append(all, page...)
	}
	// Each page has the first objects of its shard, so the first of all are among them.
	slices.SortFunc(all, func(a, b metabase.Found) int { return a.Address.Compare(b.Address) })
	all = slices.CompactFunc(all, func(a, b metabase.Found) bool { return a.Address == b.Address })
	return all[:min(limit, len(all))], nil
}
