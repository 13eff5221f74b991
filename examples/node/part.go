package main

import (
	"context"
	"strconv"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// PutPart stores a part of an erasure-coded object. It is an object like others; its record names the parent, and
// the parent has a record without a blob, which searches find. Whoever removes or locks the parent does that to its
// parts.
func (n *Node) PutPart(ctx context.Context, container ID, p Part, payload []byte) (Address, error) {
	return n.Put(ctx, &Header{Container: container, Part: &p}, payload)
}

// ResolvePart returns the address of a part, on whatever shard it is. It does so whatever has become of the object, as
// who restores or removes parts needs; reading it tells whether it may be read.
func (n *Node) ResolvePart(ctx context.Context, of Address, index int) (part Address, err error) {
	all, err := n.SearchAll(ctx, metabase.Query{
		Container: blobstor.ID(of.Container), AnyStatus: true,
		Filters: []metabase.Filter{
			{Key: attrParent, Op: metabase.EQ, Value: of.Object.String()},
			{Key: attrIndex, Op: metabase.EQ, Value: strconv.Itoa(index)},
		},
	})
	if err != nil {
		return part, err
	}
	if len(all) == 0 {
		return part, blobstor.Wrap("resolve part", of.blob(), "", blobstor.ErrNotFound)
	}
	return addressOf(all[0].Address), nil
}
