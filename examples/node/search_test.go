package main

import (
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Ten objects lie on the shards in turn. Pages of four go through them in order.
func ExampleNode_Search() {
	withNode(func(n *Node) {
		for i := range 10 {
			h := named(fmt.Sprintf("file%d", i))
			h.Attrs["Size"] = fmt.Sprint(100 - i)
			must(n.Put(ctx, h, nil))
		}
		q := metabase.Query{
			Container: blobstor.ID(container), Attrs: []string{"FileName"}, Limit: 4,
			Filters: []metabase.Filter{{Key: "Size", Op: metabase.GT, Value: "92"}},
		}
		for more := true; more; {
			page := must(n.Search(ctx, q))
			for _, m := range page.Found {
				fmt.Println(m.Values[0])
			}
			fmt.Println("more:", page.More)
			q.After, more = page.Next, page.More
		}
	})
	// Output:
	// file7
	// file6
	// file5
	// file4
	// more: true
	// file3
	// file2
	// file1
	// file0
	// more: false
}

func ExampleNode_List() {
	withNode(func(n *Node) {
		for i := range 10 {
			must(n.Put(ctx, named(fmt.Sprintf("file%d", i)), nil))
		}
		must(n.Lock(ctx, Address{container, ID{9}}, 0)) // on both shards, and listed once
		var after Address
		for page := must(n.List(ctx, after, 4)); len(page) > 0; page = must(n.List(ctx, after, 4)) {
			last := addressOf(page[len(page)-1].Address)
			fmt.Println(len(page), "objects, in order:", after.blob().Compare(last.blob()) < 0)
			after = last
		}
	})
	// Output:
	// 4 objects, in order: true
	// 4 objects, in order: true
	// 3 objects, in order: true
}
