package fstree

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// TestTwoNames works on blobs whose file has both names, as after a crash.
func TestTwoNames(t *testing.T) {
	for _, depths := range [][2]int{{1, 2}, {2, 0}} {
		dir := filepath.Join(memory(t), "store")
		tree := begun(t, dir, Options{}, depths[0], depths[1])
		model := map[int]int{}
		for n, size := range []int{10, 1000, 1000, lookLimit} {
			put(t, tree, n, size)
			check(t, scatter(tree, address(n), toBoth))
			model[n] = size
		}
		checkAll(t, tree, model) // Each once.
		check(t, tree.Delete(ctx, address(0), ""))
		delete(model, 0)
		lacks(t, tree, 0)
		checkIs(t, tree.Delete(ctx, address(0), ""), blobstor.ErrNotFound)

		for n := 2; n <= 3; n++ { // A Put heals, and no damaged name stays behind.
			mangle(t, tree, address(n), func(b []byte) []byte { b[50] ^= 1; return b })
			_, err := tree.Get(ctx, address(n), "", nil)
			checkIs(t, err, blobstor.ErrCorrupt)
			put(t, tree, n, model[n])
			checkAll(t, tree, model)
		}
		_, err := tree.aim(ctx, depths[0]) // Turned back, the other place is looked at first.
		check(t, err)
		checkAll(t, tree, model)
		check(t, tree.Reshape(ctx, depths[0]))
		checkAll(t, tree, model)
		checkPlaces(t, tree, model, depths[0])
	}
}

// TestTwoFiles works on blobs with a file of its own under each name, as after a copy of a store in the middle of
// a Reshape: a whole copy wins.
func TestTwoFiles(t *testing.T) {
	flip := func(path string) {
		b, err := os.ReadFile(path)
		check(t, err)
		b[50] ^= 1
		check(t, os.WriteFile(path, b, 0o600))
	}
	for _, damaged := range []string{"none", "old", "new", "both"} {
		tree := begun(t, filepath.Join(memory(t), "store"), Options{}, 1, 2)
		put(t, tree, 1, 1000)
		check(t, scatter(tree, address(1), toOld))
		old, fresh := pathAt(tree, address(1), 1), pathAt(tree, address(1), 2)
		b, err := os.ReadFile(old)
		check(t, err)
		check(t, os.WriteFile(fresh, b, 0o600))
		if damaged == "old" || damaged == "both" {
			flip(old)
		}
		if damaged == "new" || damaged == "both" {
			flip(fresh)
		}
		check(t, tree.Reshape(ctx, 2))
		if damaged == "both" {
			_, err := tree.Get(ctx, address(1), "", nil)
			checkIs(t, err, blobstor.ErrCorrupt)
		} else {
			has(t, tree, 1, 1000)
		}
		checkPlaces(t, tree, map[int]int{1: 1000}, 2)
	}
}

// TestReshapeKeepsDamage: a damaged blob moves as it is, and can be healed before and after.
func TestReshapeKeepsDamage(t *testing.T) {
	tree, model := filled(t, Options{}, 10)
	for _, n := range []int{5, 6} {
		mangle(t, tree, address(n), func(b []byte) []byte { return b[:20] })
	}
	_, err := tree.aim(ctx, 2)
	check(t, err)
	put(t, tree, 5, 5*31)
	check(t, tree.Reshape(ctx, 2))
	_, err = tree.Get(ctx, address(6), "", nil)
	checkIs(t, err, blobstor.ErrCorrupt)
	checkPlaces(t, tree, model, 2)
	put(t, tree, 6, 6*31)
	checkAll(t, tree, model)
	checkPlaces(t, tree, model, 2)
}

// TestReshapeMissingDirectory: nobody knows what was in a directory that is missing, so a Reshape must not end and
// call it nothing. All others are served, and a put into it goes well.
func TestReshapeMissingDirectory(t *testing.T) {
	tree := create(t, Options{})
	put(t, tree, 1, 10)
	put(t, tree, 2, 10)
	check(t, tree.Close())
	gone := filepath.Dir(pathOf(tree, address(1)))
	check(t, os.RemoveAll(gone))
	tree = reopen(t, tree.store.Dir.Path(), Options{})
	for range 2 {
		checkIs(t, tree.Reshape(ctx, 0), blobstor.ErrCorrupt)
		_, err := tree.Get(ctx, address(1), "", nil)
		checkIs(t, err, blobstor.ErrCorrupt)
		checkIs(t, tree.Delete(ctx, address(1), ""), blobstor.ErrCorrupt)
		has(t, tree, 2, 10)
	}
	put(t, tree, 1, 10)
	has(t, tree, 1, 10)
	check(t, os.Mkdir(gone, 0o700)) // The loss is accepted.
	check(t, tree.Reshape(ctx, 0))
	checkAll(t, tree, map[int]int{1: 10, 2: 10})
}

// TestReshapeSweepsFirst: stale temporaries do not stay where nobody looks for them any more.
func TestReshapeSweepsFirst(t *testing.T) {
	for _, between := range []bool{false, true} {
		tree := create(t, Options{rename: true})
		for n := range 20 {
			dir, err := tree.dirs.get(tree.place(address(n)).dir(1), false)
			check(t, err)
			_, err = dir.Temp()
			check(t, err)
			tree.dirs.put(dir)
		}
		if between {
			_, err := tree.aim(ctx, 2)
			check(t, err)
		}
		check(t, tree.store.Close()) // As a death would.
		tree = reopen(t, tree.store.Dir.Path(), Options{})
		check(t, tree.Reshape(ctx, 2))
		if n := files(t, tree); n != 0 {
			t.Fatalf("between=%v: %d files are left", between, n)
		}
	}
}

// TestReshapeOnFullDisk: the new directory of a stored blob cannot be made. Put of the blob needs none, Delete neither.
func TestReshapeOnFullDisk(t *testing.T) {
	r := watched(t, memory(t))
	tree := reopen(t, r.dir, Options{tap: r.faults})
	for n := range 3 {
		put(t, tree, n, 10)
	}
	_, err := tree.aim(ctx, 2)
	check(t, err)
	for _, op := range []durable.Op{durable.OpMkdir, durable.OpWrite} {
		r.faults.Add(crashtest.Fault{Op: op, Forever: true, Err: syscall.ENOSPC})
	}
	put(t, tree, 1, 10)
	check(t, tree.Delete(ctx, address(2), ""))
	_, err = tree.Put(ctx, address(3), content(3, 10))
	checkIs(t, err, blobstor.ErrNoSpace)
	checkIs(t, tree.Reshape(ctx, 2), blobstor.ErrNoSpace)
	checkAll(t, tree, map[int]int{0: 10, 1: 10})
	r.faults.Clear()
	check(t, tree.Reshape(ctx, 2))
	checkAll(t, tree, map[int]int{0: 10, 1: 10})
}
