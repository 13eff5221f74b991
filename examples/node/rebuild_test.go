package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// The records, the lock and the tombstone come back; a blob that is no object of this node is reported.
func ExampleRebuild() {
	dir := must(os.MkdirTemp("", "granary-node-"))
	defer os.RemoveAll(dir)
	n := must(Open(true, dir))
	cat := must(n.Put(ctx, named("cat.txt"), []byte("purr")))
	dog := must(n.Put(ctx, named("dog.mp4"), nil))
	must(n.Lock(ctx, cat, 20))
	must(n.Delete(ctx, dog, 100))
	must(n.shards[0].blobs.Put(ctx, blobstor.Address{Container: blobstor.ID{1}, Object: blobstor.ID{9}}, []byte("?")))
	must(0, n.Close())
	must(0, os.RemoveAll(filepath.Join(dir, "meta")))

	_, err := Open(false, dir)
	fmt.Println("no index:", errors.Is(err, blobstor.ErrLayout))
	must(0, Rebuild(ctx, dir, func(_ blobstor.Info, err error) {
		fmt.Println("one blob is not recorded:", errors.Is(err, errHeader))
	}))
	n = must(Open(false, dir))
	defer n.Close()
	h, size, err := n.Head(ctx, cat)
	fmt.Println(h.Attrs["FileName"], size, err)
	_, err = n.Delete(ctx, cat, 100)
	fmt.Println("held:", errors.Is(err, metabase.ErrHeld))
	_, _, err = n.Head(ctx, dog)
	fmt.Println("buried:", errors.Is(err, metabase.ErrBuried))
	// Output:
	// no index: true
	// one blob is not recorded: true
	// cat.txt 4 <nil>
	// held: true
	// buried: true
}
