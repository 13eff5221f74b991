package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

func ExampleNode_Head() {
	withNode(func(n *Node) {
		dog := must(n.PutStream(ctx, named("dog.mp4"), strings.NewReader(strings.Repeat("woof ", 100_000))))
		h, size, err := n.Head(ctx, dog)
		fmt.Println(h.Attrs["FileName"], size, err)
		_, _, err = n.Head(ctx, Address{Container: container, Object: ID{9}})
		fmt.Println("another one is not found:", errors.Is(err, blobstor.ErrNotFound))
	})
	// Output:
	// dog.mp4 500000 <nil>
	// another one is not found: true
}

func ExampleNode_Range() {
	withNode(func(n *Node) {
		dog := must(n.PutStream(ctx, named("dog.mp4"), strings.NewReader(strings.Repeat("woof ", 100_000))))
		fmt.Printf("%q\n", must(n.Range(ctx, dog, 400_000, 9)))
		for _, r := range [][2]int64{{-1, 2}, {499_999, 2}, {1 << 62, 1 << 62}} {
			_, err := n.Range(ctx, dog, r[0], r[1])
			fmt.Println(r, "is out of range:", errors.Is(err, blobstor.ErrOutOfRange))
		}
	})
	// Output:
	// "woof woof"
	// [-1 2] is out of range: true
	// [499999 2] is out of range: true
	// [4611686018427387904 4611686018427387904] is out of range: true
}
