package pilorama

import (
	"bytes"
	"context"
	"iter"
	"math"

	"github.com/granary-store/granary/internal/bolt"
)

// Entry is a node that [DB.Subtree] yields.
type Entry struct {
	Node
	Depth int // 1 for children of the node at which it began

	at *frame
}

// Cursor says where a Subtree goes on that was left: behind this entry, with what is below it.
type Cursor string

// Cursor returns the place of the entry; that of the zero Entry is the start.
func (e *Entry) Cursor() Cursor { return Cursor(e.at.encode(nil)) }

// frame is a place among the children of one node, and those of the nodes above it.
type frame struct {
	parent NodeID
	at     Position // of the last child that was read
	up     *frame
	depth  int
}

// Subtree yields what is below a node: each node before what is below it, children by name. It goes depth levels down,
// all the way if depth is not positive, and begins behind a cursor, if that is not empty; it must be of a walk from the
// same node. What is not moved while it runs comes exactly once.
//
// It holds no transaction while the caller works, and its memory depends on the depth alone. An error ends it, and
// matches [blobstor.ErrNotFound] if the tree or the node is not known.
func (db *DB) Subtree(ctx context.Context, tree Tree, from NodeID, depth int, after Cursor) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		w := walk{deepest: depth, top: &frame{parent: from, depth: 1}}
		if depth <= 0 {
			w.deepest = math.MaxInt
		}
		if err := w.resume(from, after); err != nil {
			yield(Entry{}, db.told("subtree", tree, err))
			return
		}
		known := false
		for size := firstPage; w.top != nil; size = min(2*size, largestPage) {
			var page []Entry
			err := db.view(ctx, "subtree", tree, func(b *branch) (err error) {
				if !known {
					if err := b.wantKnown(from); err != nil {
						return err
					}
				}
				known, w.b = true, b
				page, err = w.fill(size)
				return err
			})
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// Pages are read in one transaction each. The first is small, for who waits for it.
const (
	firstPage   = 16
	largestPage = 512
)

// walk goes through what is below a node.
type walk struct {
	b       *branch
	deepest int
	top     *frame // nil at the end
}

// resume puts the walk behind a cursor.
func (w *walk) resume(from NodeID, after Cursor) error {
	if after == "" {
		return nil
	}
	f, err := parseCursor([]byte(after))
	if err != nil {
		return err
	}
	bottom := f
	for bottom.up != nil {
		bottom = bottom.up
	}
	if bottom.parent != from {
		return invalid("a cursor of another walk")
	}
	w.top = f
	w.enter(NodeID(uint64Of([]byte(f.at[len(f.at)-wordSize:]))))
	return nil
}

// enter goes below the node that the walk has come to.
func (w *walk) enter(id NodeID) {
	if w.top.depth < w.deepest {
		w.top = &frame{parent: id, up: w.top, depth: w.top.depth + 1}
	}
}

// fill returns the next entries, at most so many.
func (w *walk) fill(most int) (page []Entry, err error) {
	c := w.b.t.bucket().Cursor()
	var in *frame // among whose children the cursor is
	for w.top != nil && len(page) < most {
		key, value := w.next(c, in)
		if key == nil {
			w.top, in = w.top.up, nil
			continue
		}
		at, id, err := w.b.child(key, value)
		if err != nil {
			return page, err
		}
		n, err := w.b.mustNode(id)
		if err != nil {
			return page, err
		}
		w.top = &frame{w.top.parent, at, w.top.up, w.top.depth}
		page = append(page, Entry{n, w.top.depth, w.top})
		in = w.top
		has, err := w.b.isParent(id)
		if err != nil {
			return page, err
		}
		if has {
			w.enter(id)
		}
	}
	return page, nil
}

// next returns the child behind the one that the walk has come to. The cursor is at that one if it is in its frame.
func (w *walk) next(c *bolt.Cursor, in *frame) (key, value []byte) {
	prefix := w.b.n.childrenKey(nil, w.top.parent)
	if in == w.top {
		key, value = c.Next()
	} else {
		from := append(prefix, w.top.at...)
		key, value = c.Seek(from)
		if w.top.at != "" && bytes.Equal(key, from) {
			key, value = c.Next()
		}
	}
	if !bytes.HasPrefix(key, prefix) {
		return nil, nil
	}
	return key, value
}
