package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

// A damaged blob is a fault each time that it is read. After some the shard is only read from, and puts go to the other.
func Example_health() {
	withNode(func(n *Node) {
		dog := must(n.PutStream(ctx, named("dog.mp4"), strings.NewReader(strings.Repeat("woof ", 100_000))))
		bad := n.shards[0]
		must(0, damage(filepath.Join(bad.dir, "large")))
		for range faultLimit {
			_, err := n.Range(ctx, dog, 0, 500_000)
			fmt.Println("corrupt:", errors.Is(err, blobstor.ErrCorrupt), "faults:", bad.faults.Load())
		}
		if !bad.sick() {
			return
		}
		<-bad.settled
		for i := range 4 {
			must(n.Put(ctx, named(fmt.Sprintf("file%d", i)), nil))
		}
		fmt.Println("on the other one:", must(n.shards[1].db.Counters(ctx, blobstor.ID(container))).Objects)
		_, err := bad.blobs.Put(ctx, dog.blob(), nil)
		fmt.Println("read-only:", errors.Is(err, blobstor.ErrReadOnly))
		h, _, err := n.Head(ctx, dog)
		fmt.Println("what is not damaged is read:", h.Attrs["FileName"], err)
	})
	// Output:
	// corrupt: true faults: 1
	// corrupt: true faults: 2
	// corrupt: true faults: 3
	// on the other one: 4
	// read-only: true
	// what is not damaged is read: dog.mp4 <nil>
}
