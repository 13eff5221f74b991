package blobovnicza

import (
	"context"

	"github.com/granary-store/granary/blobstor"
)

// PutBatch stores many blobs with few commits: those of one leaf share one, as far as its bounds allow.
func (t *Tree) PutBatch(ctx context.Context, items []blobstor.Item) error {
	t.inBatches(ctx, items, func(item *blobstor.Item) op {
		return op{hdr: header{kind: kindPut, length: uint32(len(item.Data))}, data: item.Data}
	})
	return t.outcome("put", items)
}

// DeleteBatch removes many blobs with few commits.
func (t *Tree) DeleteBatch(ctx context.Context, items []blobstor.Item) error {
	t.inBatches(ctx, items, func(*blobstor.Item) op { return op{hdr: header{kind: kindTombstone}} })
	return t.outcome("delete", items)
}

// inBatches commits an operation for each item, those whose look-ups no longer held again and again: as the second of
// two of one address, or when a file was full.
func (t *Tree) inBatches(ctx context.Context, items []blobstor.Item, opOf func(*blobstor.Item) op) {
	todo := make([]*blobstor.Item, len(items))
	for i := range items {
		todo[i] = &items[i]
	}
	for len(todo) > 0 {
		b := t.newBatch(ctx)
		for _, item := range todo {
			b.add(item, opOf(item))
		}
		todo = b.finish()
	}
}

// batch gathers what one caller writes into a part for each leaf.
type batch struct {
	t     *Tree
	ctx   context.Context // of the one call that the batch is
	parts map[*leaf]*part
	again []*blobstor.Item // whose look-ups no longer held
}

// part is what goes into one commit: items of one leaf, and a request with an operation for each.
type part struct {
	items []*blobstor.Item
	req   request
	size  int64
}

func (t *Tree) newBatch(ctx context.Context) *batch {
	return &batch{t: t, ctx: ctx, parts: map[*leaf]*part{}}
}

// add looks the item up and adds its operation to a part, unless there is nothing to write.
func (b *batch) add(item *blobstor.Item, o op) {
	call, err := b.t.enterWrite(b.ctx, &item.Address)
	if err != nil {
		item.Err = err
		return
	}
	o.hdr.address, o.key = item.Address, b.t.sortKey(item.Address)
	l, err := b.t.leaf(o.key)
	if err == nil {
		err = b.t.checkSize(o.data)
	}
	done := false
	if err == nil {
		done, err = l.prepare(b.ctx, &o)
	}
	call.RUnlock()
	item.Err = err
	switch {
	case err == nil && !done:
		b.append(l, item, o)
	case err == nil:
		item.Location = makeLocation(l.id, o.found.stored)
	}
}

// append adds an operation to its leaf's part.
func (b *batch) append(l *leaf, item *blobstor.Item, o op) {
	p := b.parts[l]
	if p != nil && (p.size+o.hdr.size() > groupBytes || len(p.items) >= groupOps) {
		b.commit(l, p)
		p = nil
	}
	if p == nil {
		p = new(part)
		b.parts[l] = p
	}
	p.items, p.req.ops, p.size = append(p.items, item), append(p.req.ops, o), p.size+o.hdr.size()
}

// finish commits what was added and returns the items that must be done again.
func (b *batch) finish() (again []*blobstor.Item) {
	for l, p := range b.parts {
		b.commit(l, p)
	}
	return b.again
}

// commit commits a part and notes how each of its items went.
func (b *batch) commit(l *leaf, p *part) {
	call, err := b.t.enterWrite(b.ctx, &blobstor.Address{})
	if err == nil {
		err = l.do(b.ctx, &p.req, p.size)
		call.RUnlock()
	}
	b.t.report(&p.req)
	for i, item := range p.items {
		o := &p.req.ops[i]
		switch item.Err = firstOf(err, o.err); {
		case item.Err != nil:
		case o.stale:
			b.again = append(b.again, item)
		default:
			item.Location = makeLocation(l.id, o.found.stored)
		}
	}
}

// outcome wraps the items' errors and returns the first.
func (t *Tree) outcome(name string, items []blobstor.Item) (first error) {
	for i := range items {
		item := &items[i]
		if item.Err == nil {
			continue
		}
		item.Err = t.fail(name, item.Address, item.Location, item.Err)
		first = firstOf(first, item.Err)
	}
	return first
}
