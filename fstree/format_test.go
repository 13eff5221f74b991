package fstree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestStoredSize(t *testing.T) {
	for _, size := range []int64{0, 1, blockSize - 1, blockSize, blockSize + 1, pieceSums * blockSize, pieceSums*blockSize + 1} {
		sums := make([]uint32, blocksOf(size))
		trailer := appendTrailer(nil, sums, address(1), size)
		if got := size + int64(len(trailer)); got != storedSize(size) {
			t.Errorf("size %d: %d bytes, want %d", size, got, storedSize(size))
		}
		got, err := parseFooter(trailer[len(trailer)-footerSize:], address(1), storedSize(size))
		if got != size || err != nil {
			t.Errorf("size %d: parsed %d, %v", size, got, err)
		}
	}
	if n := storedSize(maxPayload); n < maxPayload {
		t.Errorf("the largest file has %d bytes", n)
	}
}

func TestFooterIsBound(t *testing.T) {
	footer := appendFooter(nil, address(1), 100)
	_, err := parseFooter(footer, address(2), storedSize(100))
	checkIs(t, err, blobstor.ErrCorrupt)
	_, err = parseFooter(footer, address(1), storedSize(100)+1)
	checkIs(t, err, blobstor.ErrCorrupt)
	for i := range footer {
		bad := bytes.Clone(footer)
		bad[i] ^= 1
		_, err = parseFooter(bad, address(1), storedSize(100))
		checkIs(t, err, blobstor.ErrCorrupt)
	}
}

func FuzzFooter(f *testing.F) {
	f.Add(appendFooter(nil, address(1), 100), storedSize(100))
	f.Add(appendFooter(nil, address(1), 0), int64(footerSize))
	f.Add(appendFooter(nil, address(1), -1), int64(footerSize-1))
	f.Add([]byte(nil), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, stored int64) {
		var addr blobstor.Address
		if len(b) == footerSize {
			addr, _ = blobstor.AddressFromBytes(b[8:72])
		}
		size, err := parseFooter(b, addr, stored)
		switch {
		case err != nil && !errors.Is(err, blobstor.ErrCorrupt):
			t.Fatal(err)
		case err == nil && !bytes.Equal(appendFooter(nil, addr, size), b):
			t.Fatalf("a footer of %d bytes is not what would be written", size)
		}
	})
}

// FuzzFile reads a store's file with arbitrary content: what comes back is the blob, or an error.
func FuzzFile(f *testing.F) {
	tree := create(f, Options{Depth: -1, NoSync: true})
	for _, size := range []int{0, 1, 100, blockSize, 3 * blockSize} {
		put(f, tree, 1, size)
		b, err := os.ReadFile(pathOf(tree, address(1)))
		check(f, err)
		if size <= 100 {
			f.Add(b)
		}
		check(f, tree.Delete(ctx, address(1), ""))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, os.WriteFile(pathOf(tree, address(1)), b, 0o600))
		got, err := tree.Get(ctx, address(1), "", nil)
		if err != nil {
			checkIs(t, err, blobstor.ErrCorrupt)
			return
		}
		want := appendTrailer(bytes.Clone(got), appendSums(nil, got), address(1), int64(len(got)))
		if !bytes.Equal(want, b) {
			t.Fatalf("%d bytes were read from a file that no writer makes", len(got))
		}
	})
}

// TestGolden reads a store that version 1 wrote, for ever, and checks that the same bytes are written today.
func TestGolden(t *testing.T) {
	dir := filepath.Join(memory(t), "store")
	check(t, os.CopyFS(dir, os.DirFS("testdata/golden/v1")))
	for b := range 256 {
		check(t, os.MkdirAll(filepath.Join(dir, levelName(byte(b))), 0o700)) // Version control forgets empty ones.
	}
	tree := reopen(t, dir, Options{ReadOnly: true})
	if string(tree.store.Owner) != "golden" || tree.Stats().Depth != 1 {
		t.Fatalf("descriptor %+v", tree.store.Descriptor)
	}
	n := 0
	for info, err := range tree.All(ctx, "") {
		check(t, err)
		if info.Stored != storedSize(info.Size) {
			t.Fatalf("%+v", info)
		}
		n++
	}
	if n != len(goldenSizes) {
		t.Fatalf("%d blobs, want %d", n, len(goldenSizes))
	}
	fresh := create(t, Options{})
	for i, size := range goldenSizes {
		has(t, tree, i, size)
		put(t, fresh, i, size)
		old, err := os.ReadFile(pathOf(tree, address(i)))
		check(t, err)
		now, err := os.ReadFile(pathOf(fresh, address(i)))
		check(t, err)
		if !bytes.Equal(old, now) {
			t.Errorf("a blob of %d bytes is written differently now", size)
		}
	}
}

// TestGoldenReshape reads a store whose Reshape from depth 1 to 2 stopped in its middle: blobs lie at the old place, at
// the new one, or at both. Today's code ends the Reshape.
func TestGoldenReshape(t *testing.T) {
	for _, depth := range []int{1, 2, 3} {
		dir := filepath.Join(memory(t), "store")
		check(t, os.CopyFS(dir, os.DirFS("testdata/golden/v1-reshape")))
		for _, name := range firstLevel() {
			check(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		}
		tree := reopen(t, dir, Options{ReadOnly: true})
		if tree.store.Shape != [4]uint32{3, 2} || !tree.layout.Load().between() {
			t.Fatalf("descriptor %+v", tree.store.Descriptor)
		}
		model := map[int]int{}
		for n, size := range goldenSizes {
			model[n] = size
			for k, depth := range []int{1, 2} {
				if want := n%3 != k; exists(pathAt(tree, address(n), depth)) != want {
					t.Fatalf("blob %d at depth %d: want %v", n, depth, want)
				}
			}
		}
		checkAll(t, tree, model)
		check(t, tree.Close())
		tree = reopen(t, dir, Options{})
		check(t, tree.Reshape(ctx, depth))
		checkAll(t, tree, model)
		checkPlaces(t, tree, model, depth)
	}
}

var goldenSizes = []int{0, 1, 300, blockSize, blockSize + 1}

// TestWriteGolden makes the golden store, once, when a format version is frozen.
func TestWriteGolden(t *testing.T) {
	if os.Getenv("GRANARY_WRITE_GOLDEN") == "" {
		t.Skip("golden files are written once for each format version")
	}
	write := func(name string) *Tree {
		dir := filepath.Join("testdata", "golden", name)
		if exists(dir) {
			return nil
		}
		return reopen(t, dir, Options{Owner: []byte("golden")})
	}
	if tree := write("v1"); tree != nil {
		for i, size := range goldenSizes {
			put(t, tree, i, size)
		}
	}
	if tree := write("v1-reshape"); tree != nil {
		_, err := tree.aim(ctx, 2)
		check(t, err)
		for i, size := range goldenSizes {
			put(t, tree, i, size)
			check(t, scatter(tree, address(i), i%3))
		}
	}
}
