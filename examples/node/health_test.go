package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
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
		for _, storage := range []blobstor.Storage{bad.small, bad.large} {
			_, err := storage.Put(ctx, dog.blob(), nil)
			fmt.Println("read-only:", errors.Is(err, blobstor.ErrReadOnly))
		}
		err := bad.db.Mark(ctx, metabase.Garbage, dog.blob())
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
	// read-only: true
	// read-only: true
	// what is not damaged is read: dog.mp4 <nil>
}

// TestFaultLimit: every fault behind the limit is harmless.
func TestFaultLimit(t *testing.T) {
	h := newHealth()
	for i := range 2 * faultLimit {
		h.fault("get", blobstor.ErrCorrupt)
		if want := i+1 >= faultLimit; h.sick() != want {
			t.Errorf("after %d faults: %t", i+1, h.sick())
		}
	}
}

// TestRefusals: only what speaks against the disk counts.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, 1)
		cat := must(n.Put(ctx, named("cat.txt"), nil))
		must(n.Lock(ctx, cat, 0))
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		none := Address{container, ID{9}}
		for range faultLimit {
			_, err := n.Delete(ctx, cat, 0)
			_, _, missing := n.Head(ctx, none)
			_, late := n.Search(canceled, metabase.Query{Container: blobstor.ID(container)})
			_, gone := n.shards[0].blobs.Get(ctx, none.blob(), "", nil)
			for _, err := range []error{err, missing, late, gone} {
				if err == nil || blobstor.IsFault(err) {
					t.Error(err)
				}
			}
		}
		synctest.Wait() // for hooks, which the metabase calls in goroutines
		if got := n.shards[0].faults.Load(); got != 0 {
			t.Error("faults:", got)
		}
	})
}
