package main

import (
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// The parts of an object lie on both shards. A search finds the object, which has no blob, once.
func ExampleNode_ResolvePart() {
	withNode(func(n *Node) {
		bird := Address{Container: container, Object: ID{7}}
		for i, payload := range []string{"chi", "rp!", "\x11\x18\x48"} { // the last one is the others' parity
			p := Part{Of: bird.Object, Index: i, Size: 6, Attrs: map[string]string{"FileName": "bird.wav"}}
			must(n.PutPart(ctx, container, p, []byte(payload)))
		}
		q := metabase.Query{
			Container: blobstor.ID(container),
			Filters:   []metabase.Filter{{Key: "FileName", Op: metabase.EQ, Value: "bird.wav"}},
		}
		for _, m := range must(n.SearchAll(ctx, q)) {
			fmt.Println("found:", addressOf(m.Address) == bird, "size:", m.Size)
		}
		for i := range 2 {
			fmt.Printf("%q\n", must(n.Range(ctx, must(n.ResolvePart(ctx, bird, i)), 0, 3)))
		}
		must(n.Delete(ctx, bird, 100))
		part := must(n.ResolvePart(ctx, bird, 1)) // is still there
		_, _, err := n.Head(ctx, part)
		fmt.Println("but buried with the whole:", errors.Is(err, metabase.ErrBuried))
		must(n.GC(ctx))
		_, err = n.ResolvePart(ctx, bird, 1)
		fmt.Println("collected:", errors.Is(err, blobstor.ErrNotFound))
	})
	// Output:
	// found: true size: 6
	// "chi"
	// "rp!"
	// but buried with the whole: true
	// collected: true
}
