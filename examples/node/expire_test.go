package main

import (
	"errors"
	"fmt"

	"github.com/granary-store/granary/metabase"
)

func ExampleNode_GC() {
	withNode(func(n *Node) {
		var objects []Address
		for i := range 4 {
			h := named(fmt.Sprintf("file%d", i))
			h.Expires = uint64(9 + i)
			objects = append(objects, must(n.Put(ctx, h, nil)))
		}
		must(n.Lock(ctx, objects[0], 15))
		n.SetEpoch(11)
		for i, addr := range objects {
			_, _, err := n.Head(ctx, addr)
			fmt.Println("file", i, "expired:", errors.Is(err, metabase.ErrExpired))
		}
		fmt.Println("removed:", must(n.GC(ctx)), "and then:", must(n.GC(ctx)))
		n.SetEpoch(16)
		fmt.Println("removed with the lock, which is on both shards:", must(n.GC(ctx)))
		fmt.Println("left:", len(must(n.List(ctx, Address{}, 100))))
	})
	// Output:
	// file 0 expired: false
	// file 1 expired: true
	// file 2 expired: false
	// file 3 expired: false
	// removed: 1 and then: 0
	// removed with the lock, which is on both shards: 5
	// left: 0
}
