package main

import (
	"fmt"
	"strings"
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
		again := must(n.PutStream(ctx, named("cat.txt"), strings.NewReader("purr")))
		for i, s := range n.shards {
			for info, err := range s.blobs.All(ctx, "") {
				route, _, _ := strings.Cut(string(info.Location), "/")
				fmt.Println("shard", i, route, info.Size, err)
			}
		}
		fmt.Println("different:", cat != dog, "the same content has the same ID:", again == cat)
	})
	// Output:
	// shard 0 small 98 <nil>
	// shard 1 large 500094 <nil>
	// different: true the same content has the same ID: true
}
