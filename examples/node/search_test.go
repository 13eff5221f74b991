package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

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

// TestDamagedRecord: an object whose record is damaged hides no other one, and counts as one fault each time.
func TestDamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := must(Open(true, dir))
		for i := range 5 {
			must(n.Put(ctx, named(fmt.Sprintf("file%d", i)), nil))
		}
		must(0, n.Close())
		files := must(filepath.Glob(filepath.Join(dir, "meta", "*")))
		for _, name := range files {
			data := must(os.ReadFile(name))
			data = bytes.ReplaceAll(data, []byte("FileName\x05file3"), []byte("FileName\x05file?")) // as a record has it
			must(0, os.WriteFile(name, data, 0o600))
		}
		n = must(Open(false, dir))
		defer n.Close()
		faults := func() int64 {
			synctest.Wait() // for hooks, which the metabase calls in goroutines
			return n.shards[0].faults.Load()
		}
		list, err := n.List(ctx, Address{}, 100)
		if err != nil || len(list) != 4 || faults() != 1 {
			t.Errorf("list: %d, %v, faults: %d", len(list), err, faults())
		}
		q := metabase.Query{Container: blobstor.ID(container), Filters: []metabase.Filter{{Key: "FileName", Op: metabase.Prefix}}}
		all, err := n.SearchAll(ctx, q)
		if err != nil || len(all) != 4 || faults() != 2 {
			t.Errorf("search: %d, %v, faults: %d", len(all), err, faults())
		}
	})
}
