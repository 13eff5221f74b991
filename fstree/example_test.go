package fstree_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tree, err := fstree.Open(filepath.Join(dir, "large"), &fstree.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()

	ctx := context.Background()
	addr := blobstor.Address{Container: blobstor.ID{1}, Object: blobstor.ID{2}}
	if _, err := tree.Put(ctx, addr, []byte("a large object")); err != nil {
		log.Fatal(err) // Otherwise it is durable now.
	}
	part := make([]byte, 5)
	n, size, err := tree.ReadRange(ctx, addr, "", part, 2)
	fmt.Printf("%q of %d bytes, %v\n", part[:n], size, err)
	// Output: "large" of 14 bytes, <nil>
}
