package blobovnicza

import (
	"context"

	"github.com/granary-store/granary/blobstor"
)

// PutBatch stores many blobs with few commits: those of one leaf share one, as far as its bounds allow.
func (t *Tree) PutBatch(ctx context.Context, items []blobstor.Item) error {
	return t.batch(ctx, "put", items, func(l *leaf, o *op, item *blobstor.Item) (done bool) {
		if item.Err = t.checkSize(item.Data); item.Err != nil {
			return true
		}
		o.hdr.kind, o.hdr.length, o.data = kindPut, uint32(len(item.Data)), item.Data
		if !l.preparePut(o) {
			return false
		}
		item.Err = l.settled(ctx)
		return true
	}, func(item *blobstor.Item) {
		item.Location, item.Err = t.Put(ctx, item.Address, item.Data)
	})
}

// DeleteBatch removes many blobs with few commits.
func (t *Tree) DeleteBatch(ctx context.Context, items []blobstor.Item) error {
	return t.batch(ctx, "delete", items, func(l *leaf, o *op, item *blobstor.Item) (done bool) {
		o.hdr.kind = kindTombstone
		item.Err = l.prepareDelete(o)
		return item.Err != nil
	}, func(item *blobstor.Item) {
		item.Err = t.Delete(ctx, item.Address, item.Location)
	})
}

// part is what of a batch goes into one commit: the items of one leaf, and a request with an operation for each.
type part struct {
	leaf  *leaf
	items []*blobstor.Item
	req   request
	size  int64
}

// batch prepares every item and commits them by leaf. An item whose look-up no longer holds when its commit comes,
// as the second of two of the same address, is done again alone.
func (t *Tree) batch(ctx context.Context, name string, items []blobstor.Item,
	prepare func(*leaf, *op, *blobstor.Item) (done bool), alone func(*blobstor.Item)) error {
	parts, again := map[*leaf]*part{}, []*blobstor.Item(nil)
	flush := func(p *part) {
		again = append(again, t.commitPart(ctx, p)...)
		delete(parts, p.leaf)
	}
	for i := range items {
		item := &items[i]
		item.Err = nil
		o := op{key: t.sortKey(item.Address)}
		o.hdr.address = item.Address
		l := t.leaf(o.key)
		call, err := t.enterWrite(ctx, &item.Address)
		if err != nil {
			item.Err = err
			continue
		}
		done := prepare(l, &o, item)
		call.RUnlock()
		if done {
			if item.Err == nil {
				item.Location = makeLocation(l.id, o.found.stored)
			}
			continue
		}
		p := parts[l]
		if p != nil && (p.size+o.hdr.size() > groupBytes || len(p.items) >= groupOps) {
			flush(p)
			p = nil
		}
		if p == nil {
			p = &part{leaf: l}
			parts[l] = p
		}
		p.items, p.req.ops, p.size = append(p.items, item), append(p.req.ops, o), p.size+o.hdr.size()
	}
	for _, p := range parts {
		flush(p)
	}
	for _, item := range again {
		alone(item)
	}
	return t.finish(name, items)
}

// commitPart commits a part and returns the items that must be done again.
func (t *Tree) commitPart(ctx context.Context, p *part) (again []*blobstor.Item) {
	call, err := t.enterWrite(ctx, &blobstor.Address{})
	if err == nil {
		err = p.leaf.do(ctx, &p.req, p.size)
		call.RUnlock()
	}
	for i, item := range p.items {
		switch o := &p.req.ops[i]; {
		case err != nil || o.err != nil:
			item.Err = firstOf(err, o.err)
		case o.stale:
			again = append(again, item)
		case o.hdr.kind == kindPut:
			item.Location = makeLocation(p.leaf.id, o.found.stored)
		}
	}
	return again
}

// finish wraps the items' errors and returns the first.
func (t *Tree) finish(name string, items []blobstor.Item) (first error) {
	for i := range items {
		item := &items[i]
		if item.Err != nil {
			item.Err = t.fail(name, item.Address, item.Location, item.Err)
			if first == nil {
				first = item.Err
			}
		}
	}
	return first
}
