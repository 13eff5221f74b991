package fstree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// eachPair runs a test for each change of depth.
func eachPair(t *testing.T, test func(t *testing.T, old, depth int)) {
	t.Helper()
	for old := range maxDepth + 1 {
		for depth := range maxDepth + 1 {
			if old != depth {
				t.Run(fmt.Sprintf("%d to %d", old, depth), func(t *testing.T) { test(t, old, depth) })
			}
		}
	}
}

// option is the Depth option for a depth.
func option(depth int) int {
	if depth == 0 {
		return -1
	}
	return depth
}

// filled makes a store with blobs 0 to n-1, of which the i-th has i*31 bytes.
func filled(t testing.TB, o Options, n int) (*Tree, map[int]int) {
	t.Helper()
	tree, model := create(t, o), map[int]int{}
	for i := range n {
		put(t, tree, i, i*31)
		model[i] = i * 31
	}
	return tree, model
}

// checkPlaces checks that each blob of the model, and no other file, lies at the depth.
func checkPlaces(t testing.TB, tree *Tree, model map[int]int, depth int) {
	t.Helper()
	for n := range model {
		if !exists(pathAt(tree, address(n), depth)) {
			t.Fatalf("blob %d is not at depth %d", n, depth)
		}
	}
	if n := files(t, tree); n != len(model) {
		t.Fatalf("%d files for %d blobs", n, len(model))
	}
}

func TestReshape(t *testing.T) {
	eachPair(t, func(t *testing.T, old, depth int) {
		tree, model := filled(t, Options{Depth: option(old)}, 60)
		check(t, tree.Reshape(ctx, depth))
		checkAll(t, tree, model)
		checkPlaces(t, tree, model, depth)
		if s := tree.Stats(); s.Moved != 60 || s.Depth != depth || s.OldDepth != -1 {
			t.Fatalf("%+v", s)
		}
		check(t, tree.Reshape(ctx, depth)) // There is nothing to do.
		check(t, tree.Delete(ctx, address(1), ""))
		delete(model, 1)
		put(t, tree, 60, 10)
		model[60] = 10
		check(t, tree.Close())
		dir := tree.store.Dir.Path()
		_, err := Open(dir, &Options{Depth: option(old)})
		checkIs(t, err, blobstor.ErrLayout)
		tree = reopen(t, dir, Options{Depth: option(depth)})
		checkAll(t, tree, model)
		checkPlaces(t, tree, model, depth)
	})
}

// TestReshapeGoesOnElsewhere interrupts a Reshape after some steps, reopens the store, and goes on to each depth.
func TestReshapeGoesOnElsewhere(t *testing.T) {
	for third := range maxDepth + 1 {
		stop := errors.New("stop")
		links := 0
		o := Options{Depth: 1, tap: &tap{before: func(op durable.Op, path string) error {
			if op == durable.OpLink && filepath.Base(path) != "DESCRIPTOR" {
				if links++; links == 100 {
					return stop
				}
			}
			return nil
		}}}
		tree, model := filled(t, o, 60)
		checkIs(t, tree.Reshape(ctx, 2), stop)
		s := tree.Stats()
		if s.Depth != 2 || s.OldDepth != 1 || s.Moved == 0 || s.Moved == 60 {
			t.Fatalf("%+v", s)
		}
		checkAll(t, tree, model)
		put(t, tree, 60, 10)
		model[60] = 10
		check(t, tree.Close())
		dir := tree.store.Dir.Path()
		_, err := Open(dir, &Options{Depth: 3})
		checkIs(t, err, blobstor.ErrLayout)
		for _, depth := range []int{1, 2} { // Either is accepted now.
			for _, readOnly := range []bool{false, true} {
				tree = reopen(t, dir, Options{Depth: depth, ReadOnly: readOnly})
				checkAll(t, tree, model)
				check(t, tree.Close())
			}
		}
		tree = reopen(t, dir, Options{})
		check(t, tree.Reshape(ctx, third))
		checkAll(t, tree, model)
		checkPlaces(t, tree, model, third)
	}
}

func TestReshapeRefuses(t *testing.T) {
	tree, model := filled(t, Options{}, 5)
	for _, depth := range []int{-1, maxDepth + 1} {
		refusedUse(t, tree.Reshape(ctx, depth))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	checkIs(t, tree.Reshape(ended, 2), context.Canceled)
	check(t, tree.SetReadOnly(ctx, true))
	checkIs(t, tree.Reshape(ctx, 2), blobstor.ErrReadOnly)
	check(t, tree.SetReadOnly(ctx, false))
	checkAll(t, tree, model)
	check(t, tree.Close())
	checkIs(t, tree.Reshape(ctx, 2), blobstor.ErrClosed)
	tree = reopen(t, tree.store.Dir.Path(), Options{ReadOnly: true})
	checkIs(t, tree.Reshape(ctx, 2), blobstor.ErrReadOnly)
	checkIs(t, tree.Reshape(ctx, 1), blobstor.ErrReadOnly)
	if s := tree.Stats(); s.Depth != 1 || s.OldDepth != -1 {
		t.Fatalf("%+v", s)
	}
}

// TestReshapeEnds ends a Reshape in its middle in each way, and then lets it go on.
func TestReshapeEnds(t *testing.T) {
	ended, cancel := context.WithCancel(ctx)
	for name, c := range map[string]struct {
		ctx  context.Context
		end  func(tree *Tree)
		want error
	}{
		"ctx":       {ended, func(*Tree) { cancel() }, context.Canceled},
		"close":     {ctx, func(tree *Tree) { check(t, tree.Close()) }, blobstor.ErrClosed},
		"read-only": {ctx, func(tree *Tree) { check(t, tree.SetReadOnly(ctx, true)) }, blobstor.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			var tree *Tree
			once := sync.OnceFunc(func() {
				done := make(chan struct{})
				go func() { defer close(done); c.end(tree) }()
				if name == "ctx" {
					<-done // The others wait for the step that this is called from.
				} else {
					<-shutting(tree, name)
				}
			})
			armed := false
			o := Options{tap: &tap{before: func(op durable.Op, path string) error {
				if _, ok := parseName(filepath.Base(path)); ok && armed && op == durable.OpRemove {
					once()
				}
				return nil
			}}}
			var model map[int]int
			tree, model = filled(t, o, 40)
			armed = true
			checkIs(t, tree.Reshape(c.ctx, 2), c.want)
			if s := tree.Stats(); s.Moved == 0 || s.Moved == 40 || s.OldDepth != 1 {
				t.Fatalf("%+v", s)
			}
			check(t, tree.Close())
			tree = reopen(t, tree.store.Dir.Path(), Options{})
			checkAll(t, tree, model)
			check(t, tree.Reshape(ctx, 2))
			checkPlaces(t, tree, model, 2)
		})
	}
}

// shutting returns a channel that is closed once the tree's gate refuses calls.
func shutting(tree *Tree, what string) <-chan struct{} {
	g := &tree.writes
	if what == "close" {
		g = &tree.calls
	}
	refuses := make(chan struct{})
	go func() {
		defer close(refuses)
		for g.enter() == nil {
			g.leave()
		}
	}()
	return refuses
}

func TestLayoutOf(t *testing.T) {
	for _, bad := range [][4]uint32{{}, {5}, {0, 1}, {1, 5}, {2, 2}, {2, 0, 1}, {2, 0, 0, 1}, {1 << 31}} {
		_, err := layoutOf(bad)
		checkIs(t, err, blobstor.ErrLayout)
	}
	for _, good := range [][4]uint32{{1}, {4}, {1, 4}, {4, 1}, {2, 3}} {
		l, err := layoutOf(good)
		check(t, err)
		if l.shape() != good {
			t.Fatalf("%v became %v", good, l.shape())
		}
	}
}
