package blobstor_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// A program picks its storages and wires them by size. Memory storages stand here for a blobovnicza tree and an
// fstree.
func Example() {
	store, err := blobstor.New(
		blobstor.Route{Name: "small", MaxSize: blobstor.DefaultSmall, Storage: storagetest.NewMemory(0)},
		blobstor.Route{Name: "large", Storage: storagetest.NewMemory(0)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	ctx := context.Background()
	addr := blobstor.Address{Container: blobstor.ID{1}, Object: sha256.Sum256([]byte("a grain"))}
	at, err := store.Put(ctx, addr, []byte("a grain"))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := store.Get(ctx, addr, at, nil) // at may be lost: "" finds the blob too
	fmt.Printf("%s, %v\n", data, err)

	_, err = store.Get(ctx, blobstor.Address{}, "", nil)
	fmt.Println(errors.Is(err, blobstor.ErrNotFound))
	// Output:
	// a grain, <nil>
	// true
}

// A node copies its own IDs into an address; the text form is the one that NeoFS prints.
func ExampleParseAddress() {
	addr := blobstor.Address{Container: blobstor.ID{31: 1}, Object: blobstor.ID{31: 2}}
	fmt.Println(addr)
	back, err := blobstor.ParseAddress(addr.String())
	fmt.Println(back == addr, err)
	// Output:
	// 11111111111111111111111111111112/11111111111111111111111111111113
	// true <nil>
}

// The address comes last, as it may be a hash of what was written.
func ExampleStream() {
	ctx := context.Background()
	store := blobstor.Stream(storagetest.NewMemory(0))
	w, err := store.NewWriter(ctx, -1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, hash), strings.NewReader("grain by grain")); err != nil {
		fmt.Println(err)
		return
	}
	addr := blobstor.Address{Object: blobstor.ID(hash.Sum(nil))}
	if _, err := w.Commit(addr); err != nil {
		fmt.Println(err)
		return
	}
	tail, err := blobstor.GetRange(ctx, store, addr, "", 9, 5)
	fmt.Printf("%s, %v\n", tail, err)
	// Output: grain, <nil>
}

// Items of a batch fail alone.
func ExamplePutBatch() {
	ctx := context.Background()
	store := storagetest.NewMemory(5)
	items := []blobstor.Item{
		{Address: blobstor.Address{Object: blobstor.ID{1}}, Data: []byte("oat")},
		{Address: blobstor.Address{Object: blobstor.ID{2}}, Data: []byte("too much barley")},
		{Address: blobstor.Address{Object: blobstor.ID{3}}, Data: []byte("rye")},
	}
	err := blobstor.PutBatch(ctx, store, items)
	fmt.Println(errors.Is(err, blobstor.ErrTooLarge))
	for _, it := range items {
		fmt.Println(it.Err == nil)
	}
	// Output:
	// true
	// true
	// false
	// true
}

// Copy moves everything to a new storage and goes past what is damaged.
func ExampleCopy() {
	ctx := context.Background()
	from, to := storagetest.NewMemory(0), storagetest.NewMemory(0)
	for i := range 3 {
		from.Put(ctx, blobstor.Address{Object: blobstor.ID{byte(i)}}, []byte("grain"))
	}
	from.Damage(blobstor.Address{Object: blobstor.ID{1}})
	n, err := blobstor.Copy(ctx, to, from)
	fmt.Println(n, errors.Is(err, blobstor.ErrCorrupt))
	// Output: 2 true
}

// Compression wraps any storage. A range decodes only the blocks that it touches.
func ExampleCompress() {
	ctx := context.Background()
	memory := storagetest.NewMemory(0)
	store, err := blobstor.Compress(memory, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	addr := blobstor.Address{Object: blobstor.ID{1}}
	at, err := store.Put(ctx, addr, []byte(strings.Repeat("many grains, ", 100_000)))
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := store.Stat(ctx, addr, at)
	fmt.Println(info.Size, info.Stored < 3000, err)
	part, err := blobstor.GetRange(ctx, store, addr, at, 1_000_004, 11)
	fmt.Printf("%s, %v\n", part, err)
	// Output:
	// 1300000 true <nil>
	// grains, man, <nil>
}
