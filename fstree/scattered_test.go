package fstree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// TestConformanceInReshape runs the suite over stores whose Reshape has begun and moves nothing: blobs lie at the
// old place, at the new one, or at both.
func TestConformanceInReshape(t *testing.T) {
	pairs := [][2]int{{1, 2}, {2, 0}}
	if testing.Short() {
		pairs = pairs[:1]
	}
	for _, depths := range pairs {
		t.Run(fmt.Sprintf("%d to %d", depths[0], depths[1]), func(t *testing.T) {
			t.Parallel()
			depth := depths[1]
			if depth == 0 {
				depth = -1
			}
			s := &stand{
				opts: Options{Depth: depth, MaxSize: 1 << 20},
				old:  depths[0],
				rigs: map[blobstor.Storage]rig{},
			}
			storagetest.Test(t, s.harness())
		})
	}
}

// begun makes a store in which a Reshape has begun and stopped before it moved anything.
func begun(tb testing.TB, dir string, o Options, old, depth int) *Tree {
	tb.Helper()
	o.Depth = old
	if old == 0 {
		o.Depth = -1
	}
	tree := reopen(tb, dir, o)
	_, err := tree.aim(ctx, depth)
	check(tb, err)
	return tree
}

// scattered is a tree in the middle of a Reshape that gives each new blob the old name, the new one, or both, as
// its address says.
type scattered struct{ *Tree }

func treeOf(st blobstor.Storage) *Tree {
	if s, ok := st.(scattered); ok {
		return s.Tree
	}
	return st.(*Tree)
}

func (s scattered) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	at, err := s.Tree.Put(ctx, addr, data)
	if err == nil {
		err = scatter(s.Tree, addr, int(addr.Object[31])%3)
	}
	return at, err
}

func (s scattered) NewWriter(ctx context.Context, size int64) (blobstor.Writer, error) {
	w, err := s.Tree.NewWriter(ctx, size)
	if err != nil {
		return nil, err
	}
	return scatteredWriter{w, s.Tree}, nil
}

type scatteredWriter struct {
	blobstor.Writer
	tree *Tree
}

func (w scatteredWriter) Commit(addr blobstor.Address) (blobstor.Location, error) {
	at, err := w.Writer.Commit(addr)
	if err == nil {
		err = scatter(w.tree, addr, int(addr.Object[31])%3)
	}
	return at, err
}

// What scatter does with a blob that lies at the new place.
const (
	toNew = iota
	toOld
	toBoth
)

// scatter durably gives a blob at the new place of a Reshape other names. One that lies elsewhere it leaves alone.
func scatter(tree *Tree, addr blobstor.Address, where int) error {
	p, l := tree.place(addr), tree.layout.Load()
	if where == toNew || tree.enterWrite(ctx) != nil {
		return nil // Or the tree was closed meanwhile.
	}
	defer tree.leaveWrite()
	old, err := tree.dirs.get(p.dir(l.old), true)
	if err != nil {
		return err
	}
	defer tree.dirs.put(old)
	dir, err := tree.dirs.get(p.dir(l.depth), true)
	if err != nil {
		return err
	}
	defer tree.dirs.put(dir)
	tree.names.lock(addr)
	defer tree.names.unlock(addr)
	err = dir.Link(p.name(), old.Dir, p.name())
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = old.Sync()
	}
	if err == nil && where == toOld {
		err = errors.Join(dir.Remove(p.name()), dir.Sync())
	}
	return err
}
