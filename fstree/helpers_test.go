package fstree

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

var ctx = context.Background()

// thorough is set by GRANARY_THOROUGH=1. Without it tests that go through many moments take fewer, others each time.
var thorough = os.Getenv("GRANARY_THOROUGH") != ""

// memory is a directory in memory if there is one: tests that model the loss of power, or make many directories,
// need no disk.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fstree")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// create makes a store in a fresh directory.
func create(t testing.TB, o Options) *Tree {
	t.Helper()
	return reopen(t, filepath.Join(memory(t), "store"), o)
}

// reopen opens or makes a store. It is closed when the test ends.
func reopen(t testing.TB, dir string, o Options) *Tree {
	t.Helper()
	o.Create = !o.ReadOnly
	tree, err := Open(dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkIs(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("got %v, want %v", err, w)
		}
	}
}

// address returns the n-th address of the tests.
func address(n int) (a blobstor.Address) {
	rng := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), 1})
	rng.Read(a.Container[:])
	rng.Read(a.Object[:])
	return a
}

// content returns size bytes that belong to the n-th address.
func content(n, size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), 2}).Read(b)
	return b
}

func put(t testing.TB, tree *Tree, n, size int) blobstor.Address {
	t.Helper()
	_, err := tree.Put(ctx, address(n), content(n, size))
	check(t, err)
	return address(n)
}

// has checks that the n-th blob is there, whole.
func has(t testing.TB, tree *Tree, n, size int) {
	t.Helper()
	got, err := tree.Get(ctx, address(n), "", nil)
	check(t, err)
	if !bytes.Equal(got, content(n, size)) {
		t.Fatalf("blob %d: wrong content", n)
	}
}

func lacks(t testing.TB, tree *Tree, n int) {
	t.Helper()
	_, err := tree.Get(ctx, address(n), "", nil)
	checkIs(t, err, blobstor.ErrNotFound)
}

// pathOf returns where a blob's file is, or would go.
func pathOf(tree *Tree, addr blobstor.Address) string {
	depths := tree.layout.Load().depths()
	for _, depth := range depths {
		if path := pathAt(tree, addr, depth); exists(path) {
			return path
		}
	}
	return pathAt(tree, addr, depths[len(depths)-1])
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// pathAt returns where a blob's file is at a depth.
func pathAt(tree *Tree, addr blobstor.Address, depth int) string {
	p := tree.place(addr)
	key := p.dir(depth)
	path := p.name()
	for ; key != rootKey; key = key.parent() {
		path = filepath.Join(key.name(), path)
	}
	return filepath.Join(tree.store.Dir.Path(), path)
}

// mangle changes a blob's file.
func mangle(t testing.TB, tree *Tree, addr blobstor.Address, change func(b []byte) []byte) {
	t.Helper()
	path := pathOf(tree, addr)
	b, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, change(b), 0o600))
}

// files counts all files below the store's directory that hold blobs or temporaries.
func files(t testing.TB, tree *Tree) (n int) {
	t.Helper()
	own := []string{"DESCRIPTOR", "LOCK", durable.MarkClean, durable.MarkDirty, durable.MarkUnsynced}
	check(t, filepath.Walk(tree.store.Dir.Path(), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && !slices.Contains(own, info.Name()) {
			n++
		}
		return err
	}))
	return n
}

// tap is a durable.Tap of functions, which may be nil.
type tap struct {
	before func(op durable.Op, path string) error
	next   durable.Tap
}

func (t *tap) Before(op durable.Op, path string, f *durable.File) error {
	if err := t.before(op, path); err != nil || t.next == nil {
		return err
	}
	return t.next.Before(op, path, f)
}

func (t *tap) After(op durable.Op, path string, f *durable.File) {
	if t.next != nil {
		t.next.After(op, path, f)
	}
}

// streamedSize stores the n-th blob by a writer of unknown size.
func streamedSize(tree *Tree, n, size int) error {
	w, err := tree.NewWriter(ctx, -1)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := w.Write(content(n, size)); err != nil {
		return err
	}
	_, err = w.Commit(address(n))
	return err
}
