package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/granary-store/granary/metabase"
)

func ExampleAddress() {
	own := Address{Container: ID{1}, Object: ID{2}}
	fmt.Println(own.blob())
	fmt.Println(addressOf(own.blob()) == own)
	// Output:
	// 4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM/8opHzTAnfzRpPEx21XtnrVTX28YQuCpAjcn1PczScKh
	// true
}

// A small object goes to one shard, a stream to the next; the size decides about the storage there.
func ExampleNode_PutStream() {
	withNode(func(n *Node) {
		cat := must(n.Put(ctx, named("cat.txt"), []byte("purr")))
		dog := must(n.PutStream(ctx, named("dog.mp4"), strings.NewReader(strings.Repeat("woof ", 100_000))))
		for range n.shards { // it is there, and not stored again
			again := must(n.PutStream(ctx, named("cat.txt"), strings.NewReader("purr")))
			fmt.Println("the same content, the same ID:", again == cat, again != dog)
		}
		for i, s := range n.shards {
			for info, err := range s.blobs.All(ctx, "") {
				route, _, _ := strings.Cut(string(info.Location), "/")
				fmt.Println("shard", i, route, info.Size, err)
			}
		}
	})
	// Output:
	// the same content, the same ID: true true
	// the same content, the same ID: true true
	// shard 0 small 98 <nil>
	// shard 1 large 500094 <nil>
}

// TestMarkedComesBack: what was only marked for removal may be put again.
func TestMarkedComesBack(t *testing.T) {
	n := newNode(t, 1)
	cat := must(n.Put(ctx, named("cat.txt"), nil))
	if err := n.shards[0].db.Mark(ctx, metabase.Garbage, cat.blob()); err != nil {
		t.Fatal(err)
	}
	must(n.Put(ctx, named("cat.txt"), nil))
	if _, _, err := n.Head(ctx, cat); err != nil {
		t.Error(err)
	}
}
