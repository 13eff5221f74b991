package blobstor

import (
	"context"
	"errors"
)

// PutBatch gives every route one batch of what belongs there, the smaller routes first, so that what one refuses
// is in the batch of the next.
func (r *Router) PutBatch(ctx context.Context, items []Item) error {
	if r.closed.Load() {
		return refuseItems("put", items, ErrClosed)
	}
	left := make([]int, len(items)) // items that no route has settled
	for i := range items {
		it := &items[i]
		left[i], it.Location, it.Err = i, "", Wrap("put", it.Address, "", r.unplaced())
	}
	for rt := range r.taking(0) {
		left = rt.putBatch(ctx, items, left)
	}
	return firstErr(items)
}

// putBatch puts those of the items left that fit, and returns those that are still left.
func (rt *route) putBatch(ctx context.Context, items []Item, left []int) (rest []int) {
	var batch []Item
	var of []int // of[k] is the item that batch[k] was made from
	for _, i := range left {
		if int64(len(items[i].Data)) > rt.limit() {
			rest = append(rest, i)
			continue
		}
		batch, of = append(batch, Item{Address: items[i].Address, Data: items[i].Data}), append(of, i)
	}
	if len(batch) == 0 {
		return rest
	}
	_ = PutBatch(ctx, rt.Storage, batch) // each item says how it went
	for k, i := range of {
		it, err := &items[i], rt.outerErr(batch[k].Err)
		switch {
		case err == nil:
			it.Location, it.Err = rt.outer(batch[k].Location), nil
		case passes(err):
			it.Err = stronger(it.Err, err)
			rest = append(rest, i)
		default:
			it.Err = err
		}
	}
	return rest
}

// DeleteBatch gives every route the whole batch, as any of them may hold a copy.
func (r *Router) DeleteBatch(ctx context.Context, items []Item) error {
	if r.closed.Load() {
		return refuseItems("delete", items, ErrClosed)
	}
	found := make([]bool, len(items))
	failed := make([][]error, len(items))
	batch := make([]Item, len(items))
	for _, rt := range r.routes {
		for i, it := range items {
			batch[i] = Item{Address: it.Address}
			if at, inner := r.split(it.Location); at == rt {
				batch[i].Location = inner
			}
		}
		_ = DeleteBatch(ctx, rt.Storage, batch) // each item says how it went
		for i := range batch {
			switch err := batch[i].Err; {
			case err == nil:
				found[i] = true
				// A context error would now say that nothing happened.
				ctx = context.WithoutCancel(ctx)
			case !errors.Is(err, ErrNotFound):
				failed[i] = append(failed[i], rt.outerErr(err))
			}
		}
	}
	for i := range items {
		it := &items[i]
		it.Err = nil
		if !found[i] || len(failed[i]) > 0 {
			it.Err = absent("delete", it.Address, it.Location, failed[i])
		}
	}
	return firstErr(items)
}
