package fstree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// readings are the ways to read a blob whole.
var readings = map[string]func(tree *Tree, addr blobstor.Address) ([]byte, error){
	"Get": func(tree *Tree, addr blobstor.Address) ([]byte, error) { return tree.Get(ctx, addr, "", nil) },
	"ReadRange": func(tree *Tree, addr blobstor.Address) ([]byte, error) {
		p := make([]byte, 1<<20)
		n, _, err := tree.ReadRange(ctx, addr, "", p, 0)
		return p[:n], err
	},
	"Read": func(tree *Tree, addr blobstor.Address) ([]byte, error) {
		r, err := tree.NewReader(ctx, addr, "")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(struct{ io.Reader }{r})
	},
	"WriteTo": func(tree *Tree, addr blobstor.Address) ([]byte, error) {
		r, err := tree.NewReader(ctx, addr, "")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		var buf bytes.Buffer
		_, err = r.WriteTo(&buf)
		return buf.Bytes(), err
	},
}

// neverWrong checks that a damaged blob is an error, and that nothing wrong comes before it.
func neverWrong(t *testing.T, tree *Tree, n, size int, what string) {
	t.Helper()
	for name, read := range readings {
		got, err := read(tree, address(n))
		if !errors.Is(err, blobstor.ErrCorrupt) {
			t.Fatalf("%s, %s: %v", what, name, err)
		}
		if !bytes.HasPrefix(content(n, size), got) {
			t.Fatalf("%s, %s: wrong bytes", what, name)
		}
	}
}

func TestTruncatedAtEveryByte(t *testing.T) {
	tree := create(t, Options{Depth: -1})
	const size = 200
	put(t, tree, 1, size)
	whole, err := os.ReadFile(pathOf(tree, address(1)))
	check(t, err)
	for n := range whole {
		mangle(t, tree, address(1), func([]byte) []byte { return whole[:n] })
		neverWrong(t, tree, 1, size, fmt.Sprintf("cut at %d", n))
		_, err := tree.Stat(ctx, address(1), "")
		checkIs(t, err, blobstor.ErrCorrupt)
	}
	mangle(t, tree, address(1), func([]byte) []byte { return append(bytes.Clone(whole), 0) })
	neverWrong(t, tree, 1, size, "a byte too many")
	put(t, tree, 1, size)
	has(t, tree, 1, size)
}

func TestFlippedInEveryRegion(t *testing.T) {
	tree := create(t, Options{Depth: -1})
	const size = 3*blockSize + 100
	put(t, tree, 1, size)
	whole, err := os.ReadFile(pathOf(tree, address(1)))
	check(t, err)
	flips := []int{0, 1, blockSize - 1, blockSize, 2*blockSize + 77, size - 1}
	for i := size; i < len(whole); i++ { // The table and the footer.
		flips = append(flips, i)
	}
	for _, i := range flips {
		mangle(t, tree, address(1), func([]byte) []byte {
			b := bytes.Clone(whole)
			b[i] ^= 0x40
			return b
		})
		neverWrong(t, tree, 1, size, fmt.Sprintf("byte %d flipped", i))
	}
}

func TestDamageStaysInItsBlock(t *testing.T) {
	tree := create(t, Options{})
	const size = 4 * blockSize
	put(t, tree, 1, size)
	mangle(t, tree, address(1), func(b []byte) []byte { b[2*blockSize] ^= 1; return b })
	p := make([]byte, blockSize)
	for block := range int64(4) {
		n, _, err := tree.ReadRange(ctx, address(1), "", p, block*blockSize)
		if block == 2 {
			checkIs(t, err, blobstor.ErrCorrupt)
			continue
		}
		check(t, err)
		if !bytes.Equal(p[:n], content(1, size)[block*blockSize:][:blockSize]) {
			t.Fatalf("block %d is wrong", block)
		}
	}
}

func TestSwappedFiles(t *testing.T) {
	tree := create(t, Options{Depth: -1})
	put(t, tree, 1, 100)
	put(t, tree, 2, 100)
	check(t, os.Rename(pathOf(tree, address(1)), pathOf(tree, address(2))))
	_, err := tree.Get(ctx, address(2), "", nil)
	checkIs(t, err, blobstor.ErrCorrupt)
	lacks(t, tree, 1)
}

func TestPutHeals(t *testing.T) {
	for _, rename := range []bool{false, true} {
		for _, size := range []int{100, lookLimit} {
			var corrupt int
			o := Options{rename: rename}
			o.Hooks.Corrupt = func(info blobstor.Info, err error) { corrupt++ }
			tree := create(t, o)
			put(t, tree, 1, size)
			mangle(t, tree, address(1), func(b []byte) []byte { b[50] ^= 1; return b })
			_, err := tree.Get(ctx, address(1), "", nil)
			checkIs(t, err, blobstor.ErrCorrupt)
			if !blobstor.IsFault(err) || corrupt != 1 {
				t.Fatalf("%v, %d calls of the hook", err, corrupt)
			}
			put(t, tree, 1, size)
			has(t, tree, 1, size)
			mangle(t, tree, address(1), func(b []byte) []byte { return b[:20] })
			stream(t, tree, 1, size, true)
			has(t, tree, 1, size)
			if s := tree.Stats(); s.Healed != 2 || s.Puts != 1 || files(t, tree) != 1 {
				t.Fatalf("%+v, %d files", s, files(t, tree))
			}
		}
	}
}

// TestForeignEntries plants what does not belong into the tree: blobs go on being served, All names what bears a
// blob's name, and skips the rest.
func TestForeignEntries(t *testing.T) {
	tree := create(t, Options{})
	for n := range 20 {
		put(t, tree, n, n)
	}
	dir := tree.store.Dir.Path()
	plant := func(n int, make func(path string) error) { check(t, make(pathOf(tree, address(n)))) }
	plant(101, func(path string) error { return os.Mkdir(path, 0o700) })
	plant(102, func(path string) error { return os.Symlink(pathOf(tree, address(1)), path) })
	plant(103, func(path string) error { return mkfifo(path) })
	plant(104, func(path string) error { return os.WriteFile(path, []byte("hello"), 0o600) })
	wrongDir := filepath.Join(dir, levelName(byte(tree.place(address(105)).key>>56)+1))
	check(t, os.WriteFile(filepath.Join(wrongDir, place{addr: address(105)}.name()), nil, 0o600))
	for _, name := range []string{"README", "ab/README", "ab/.hidden", "ab/tmp-0123456789abcdef-1"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	check(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))

	good, bad := 0, map[blobstor.Address]bool{}
	for info, err := range tree.All(ctx, "") {
		if err == nil {
			good++
			continue
		}
		checkIs(t, err, blobstor.ErrCorrupt)
		bad[info.Address] = true
	}
	if good != 20 || len(bad) != 5 {
		t.Fatalf("All yields %d blobs and %d errors", good, len(bad))
	}
	for n := 101; n <= 104; n++ {
		_, err := tree.Get(ctx, address(n), "", nil)
		checkIs(t, err, blobstor.ErrCorrupt)
	}
	for n := 102; n <= 104; n++ { // A link, a pipe and a bad file are damaged copies: Put replaces them.
		put(t, tree, n, 10)
		has(t, tree, n, 10)
	}
	has(t, tree, 1, 1)
}

func TestMissingDirectory(t *testing.T) {
	tree := create(t, Options{})
	put(t, tree, 1, 10)
	put(t, tree, 2, 10)
	check(t, tree.Close())
	gone := filepath.Dir(pathOf(tree, address(1)))
	check(t, os.RemoveAll(gone))
	tree = reopen(t, tree.store.Dir.Path(), Options{})
	_, err := tree.Get(ctx, address(1), "", nil)
	checkIs(t, err, blobstor.ErrCorrupt) // It was there once: nobody knows that the blob was not.
	has(t, tree, 2, 10)
	good, bad := 0, 0
	for info, err := range tree.All(ctx, "") {
		if err == nil {
			good++
		} else if bad++; info.Location == "" {
			t.Fatalf("All: %v without a location", err)
		}
	}
	if good != 1 || bad != 1 {
		t.Fatalf("All yields %d blobs and %d errors", good, bad)
	}
	put(t, tree, 1, 10)
	has(t, tree, 1, 10)
}

func TestFileInPlaceOfADirectory(t *testing.T) {
	tree := create(t, Options{})
	check(t, tree.Close())
	dir := filepath.Dir(pathOf(tree, address(1)))
	check(t, os.RemoveAll(dir))
	check(t, os.WriteFile(dir, nil, 0o600))
	tree = reopen(t, tree.store.Dir.Path(), Options{})
	_, err := tree.Get(ctx, address(1), "", nil)
	checkIs(t, err, blobstor.ErrLayout)
	_, err = tree.Put(ctx, address(1), nil)
	checkIs(t, err, blobstor.ErrLayout)
	if !strings.Contains(err.Error(), "directory") {
		t.Fatalf("unclear: %v", err)
	}
}
