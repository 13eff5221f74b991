package main

import (
	"errors"
	"fmt"
	"testing"

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

// TestInterrupted: a lock, a tombstone or a mark that reached one shard counts on all.
func TestInterrupted(t *testing.T) {
	n := newNode(t, 2)
	cat := must(n.Put(ctx, named("cat.txt"), nil)) // on shard 0
	dog := must(n.Put(ctx, named("dog.mp4"), nil)) // on shard 1
	relate := func(shard int, kind metabase.Kind, to Address) {
		t.Helper()
		h := Header{Container: container, Kind: kind, Target: to.Object}
		addr := Address{container, ID{8, byte(kind)}}.blob()
		if err := n.shards[shard].putOnce(ctx, h.records(addr, 0), []byte("blob")); err != nil {
			t.Fatal(err)
		}
	}
	relate(1, metabase.Lock, cat)
	if _, err := n.Delete(ctx, cat, 0); !errors.Is(err, metabase.ErrHeld) {
		t.Error(err)
	}
	relate(0, metabase.Tombstone, dog)
	if _, err := n.Lock(ctx, dog, 0); !errors.Is(err, metabase.ErrBuried) {
		t.Error(err)
	}
	bird := must(n.Put(ctx, named("bird.wav"), nil)) // on shard 0
	if err := n.shards[0].db.Mark(ctx, metabase.Garbage, bird.blob()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Lock(ctx, bird, 0); !errors.Is(err, metabase.ErrGarbage) {
		t.Error(err)
	}
	for _, s := range n.shards {
		c, err := s.db.Counters(ctx, blobstor.ID(container))
		if err != nil || c.Locks+c.Tombstones != 1 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if _, _, err := n.Head(ctx, dog); !errors.Is(err, metabase.ErrBuried) {
		t.Error(err)
	}
}
