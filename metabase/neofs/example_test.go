package neofs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
	"github.com/granary-store/granary/metabase/neofs"
)

// A node answers a search of the protocol, a page at a time.
func ExampleSearch_Query() {
	dir, err := os.MkdirTemp("", "neofs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := metabase.Open(filepath.Join(dir, "meta"), &metabase.Options{Create: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	container := blobstor.ID{1}
	for n := byte(1); n <= 3; n++ {
		err := db.Put(ctx, metabase.Record{
			Address: blobstor.Address{Container: container, Object: blobstor.ID{n}},
			Attrs:   []metabase.Attr{{Key: "FileName", Value: fmt.Sprintf("cat%d.jpg", n)}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}

	search := neofs.Search{
		Container: container, Limit: 2, Attrs: []string{"FileName"},
		Filters: []neofs.Filter{{Key: "FileName", Match: 4, Value: "cat"}}, // COMMON_PREFIX
	}
	for {
		q, err := search.Query()
		if errors.Is(err, neofs.ErrUnreachable) {
			return // nothing, here or elsewhere
		} else if err != nil {
			fmt.Println(err) // a bad request
			return
		}
		page, err := db.Search(ctx, q)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, f := range page.Found {
			fmt.Println(neofs.Text("FileName", f.Values[0]))
		}
		if search.Cursor = neofs.Cursor(q, page); search.Cursor == "" {
			break
		}
		fmt.Println("--")
	}
	// Output:
	// cat1.jpg
	// cat2.jpg
	// --
	// cat3.jpg
}

func ExampleText() {
	id := make([]byte, 16)
	fmt.Println(neofs.Text(neofs.SplitID, string(id)))
	value, ok := neofs.Value(neofs.SplitID, "00000000-0000-0000-0000-0000000000ff")
	fmt.Printf("%q %v\n", value[15], ok)
	// Output:
	// 00000000-0000-0000-0000-000000000000
	// 'ÿ' true
}
