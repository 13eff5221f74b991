package main

import (
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// A lock refuses the tombstone on every shard, until its epoch is over.
func ExampleNode_Lock() {
	withNode(func(n *Node) {
		cat := must(n.Put(ctx, named("cat.txt"), []byte("purr")))
		must(n.Lock(ctx, cat, 20))
		for _, epoch := range []uint64{20, 21} {
			n.SetEpoch(epoch)
			_, err := n.Delete(ctx, cat, 100)
			fmt.Println("epoch", epoch, "held:", errors.Is(err, metabase.ErrHeld))
		}
	})
	// Output:
	// epoch 20 held: true
	// epoch 21 held: false
}

// The tombstone is on both shards, so the object cannot come back to either.
func ExampleNode_Delete() {
	withNode(func(n *Node) {
		cat := must(n.Put(ctx, named("cat.txt"), []byte("purr")))
		must(n.Delete(ctx, cat, 100))
		for i, s := range n.shards {
			c := must(s.db.Counters(ctx, blobstor.ID(container)))
			fmt.Println("shard", i, "tombstones:", c.Tombstones, "garbage:", c.Garbage)
		}
		for range 2 {
			_, err := n.Put(ctx, named("cat.txt"), []byte("purr"))
			fmt.Println("buried:", errors.Is(err, metabase.ErrBuried))
		}
		_, err := n.Lock(ctx, cat, 20)
		fmt.Println("too late to lock it:", errors.Is(err, metabase.ErrBuried))
	})
	// Output:
	// shard 0 tombstones: 1 garbage: 1
	// shard 1 tombstones: 1 garbage: 0
	// buried: true
	// buried: true
	// too late to lock it: true
}
