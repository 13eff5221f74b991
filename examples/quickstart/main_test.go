package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// Example stores a small directory. Its sizes lie on both sides of what is small.
func Example() {
	dir, err := os.MkdirTemp("", "granary-quickstart-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "source")
	sizes := []int{0, 1, 4095, 4096, 4097, 65536, blobstor.DefaultSmall, blobstor.DefaultSmall + 1, 1 << 20, 5 << 20}
	for i := range 30 {
		if err := generate(source, i, sizes[i%len(sizes)]); err != nil {
			log.Fatal(err)
		}
	}
	t := tour{dir: filepath.Join(dir, "store"), writers: 20, progress: io.Discard}
	if err := t.run(context.Background(), source); err != nil {
		log.Fatal(err)
	}
	for _, r := range t.routes {
		fmt.Printf("%s: %d objects, %d bytes\n", r.name, r.objects, r.bytes)
	}
	fmt.Printf("%d deleted, the rest is right\n", len(t.deleted))
	// Output:
	// large: 9 objects, 19267587 bytes
	// small: 21 objects, 626691 bytes
	// 3 deleted, the rest is right
}

// generate writes file i of a directory, with content of its own in every 8 bytes.
func generate(dir string, i, size int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var content bytes.Buffer
	for n := 0; content.Len() < size; n++ {
		fmt.Fprintf(&content, "%d.%d ", i, n)
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%02d", i)), content.Bytes()[:size], 0o666)
}

// TestDifferences shows that each check of the quickstart can fail.
func TestDifferences(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name  string
		spoil func(*object)
		check func(*object, blobstor.BlobStor) error
	}{
		{"other content", func(o *object) { o.sum[0]++ },
			func(o *object, s blobstor.BlobStor) error { return o.verify(ctx, s) }},
		{"other size", func(o *object) { o.size++ },
			func(o *object, s blobstor.BlobStor) error { return o.verify(ctx, s) }},
		{"not there", func(o *object) { o.addr.Object[0]++ },
			func(o *object, s blobstor.BlobStor) error { return o.verify(ctx, s) }},
		{"not gone", func(o *object) { o.deleted = true },
			func(o *object, s blobstor.BlobStor) error { return o.verify(ctx, s) }},
		{"other range", func(o *object) { o.file = "tour.go"; o.size = 1_000 },
			func(o *object, s blobstor.BlobStor) error { return o.verifyRanges(ctx, s) }},
		{"missing in the listing", func(o *object) { o.addr.Object[0]++ },
			func(o *object, s blobstor.BlobStor) error { return verifyListing(ctx, s, []*object{o}) }},
		{"too much in the listing", func(o *object) { o.deleted = true },
			func(o *object, s blobstor.BlobStor) error { return verifyListing(ctx, s, []*object{o}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, s := stored(t)
			if err := test.check(o, s); err != nil {
				t.Fatalf("before: %v", err)
			}
			test.spoil(o)
			if test.check(o, s) == nil {
				t.Error("not noticed")
			}
		})
	}
}

// stored puts a file into a store in memory.
func stored(t *testing.T) (*object, blobstor.BlobStor) {
	t.Helper()
	const size = 10_000
	dir := t.TempDir()
	if err := generate(dir, 0, size); err != nil {
		t.Fatal(err)
	}
	s := blobstor.Stream(storagetest.NewMemory(0))
	o := &object{file: filepath.Join(dir, "file00"), name: "file00", size: size}
	if err := o.put(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	return o, s
}
