package pilorama

import (
	"bytes"
	"cmp"
	"context"
	"slices"
)

// Node is what is known of a node.
type Node struct {
	ID     NodeID
	Parent NodeID // Trash if it was removed itself; what is below it keeps its parent
	Birth  uint64 // the time of the first operation that put it anywhere
	Time   uint64 // of the last one
	Meta   []Attr
}

// Name returns the node's name.
func (n *Node) Name() string {
	if i := slices.IndexFunc(n.Meta, func(a Attr) bool { return a.Key == FileName }); i >= 0 {
		return n.Meta[i].Value
	}
	return ""
}

// Position is a place in the order of a node's children: by name, bytewise, then directories before others, then by
// birth and ID. It is a property of the node, equal in every replica. The zero value is the start.
type Position string

// Position returns the node's place among the children of its parent.
func (n *Node) Position() Position {
	kind := byte(anything)
	if len(n.Meta) == 1 && n.Meta[0].Key == FileName {
		kind = plain
	}
	b := append(appendEscaped(nil, n.Name()), 0, boundary, kind)
	return Position(appendUint64(appendUint64(b, n.Birth), uint64(n.ID)))
}

func (r *record) node(id NodeID) (Node, error) {
	meta, err := parseMeta(r.meta)
	return Node{id, r.parent, r.birth, r.time, meta}, err
}

// GetMeta returns a node, which is the caller's. The error matches [blobstor.ErrNotFound] if the tree or the node is
// not known; a node that was removed is, and has the parent Trash.
func (db *DB) GetMeta(ctx context.Context, tree Tree, id NodeID) (n Node, err error) {
	err = db.view(ctx, "get meta", tree, func(b *branch) error {
		r, ok, err := b.record(id)
		if err == nil && !ok {
			err = missing("no such node in tree " + tree.String())
		}
		if err == nil {
			n, err = r.node(id)
		}
		return err
	})
	return n, err
}

// GetByPath returns the nodes that have the last element of a path as their name and are below the directories before
// it; if latest is set only the one that was born last. Replicas that made the same directory at a time made two of one
// name, and it looks into both. The error matches [blobstor.ErrNotFound] if the tree is not known or has no such node.
func (db *DB) GetByPath(ctx context.Context, tree Tree, path []string, latest bool) (found []Node, err error) {
	if len(path) == 0 || len(path) > MaxPath {
		return nil, db.told("get by path", tree, invalid("a path of %d elements", len(path)))
	}
	err = db.view(ctx, "get by path", tree, func(b *branch) error {
		dirs := []NodeID{Root}
		for _, name := range path[:len(path)-1] {
			below, err := b.named(dirs, name, plain, 0, false)
			if err != nil {
				return err
			}
			dirs = below
		}
		ids, err := b.named(dirs, path[len(path)-1], plain, anything, latest)
		if err != nil {
			return err
		}
		if found, err = b.nodes(ids); err == nil && len(found) == 0 {
			err = missing("no such path in tree " + tree.String())
		}
		return err
	})
	if latest && len(found) > 1 {
		found = []Node{slices.MaxFunc(found, func(a, b Node) int {
			return cmp.Or(cmp.Compare(a.Birth, b.Birth), cmp.Compare(a.ID, b.ID))
		})}
	}
	return found, err
}

// named returns the children of these nodes that have a name and a kind from one to another; of each node and kind only
// the last if latest is set.
func (b *branch) named(dirs []NodeID, name string, from, to byte, latest bool) (ids []NodeID, err error) {
	for _, dir := range dirs {
		for kind := from; kind <= to; kind++ {
			prefix := append(b.n.namedKey(nil, dir, []byte(name)), kind)
			if latest {
				if key, value := b.t.lastOf(prefix); key != nil {
					_, id, err := b.child(key, value)
					if err != nil {
						return nil, err
					}
					ids = append(ids, id)
				}
				continue
			}
			err := b.t.scan(prefix, prefix, func(key, _ []byte) (bool, error) {
				_, id, err := childOf(key)
				ids = append(ids, id)
				return true, err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

// child returns what the entry of a child says, verified.
func (b *branch) child(key, value []byte) (Position, NodeID, error) {
	if _, err := unseal(key, value); err != nil {
		return "", 0, err
	}
	return childOf(key)
}

// nodes returns nodes that the index of children knows.
func (b *branch) nodes(ids []NodeID) (found []Node, err error) {
	for _, id := range ids {
		n, err := b.mustNode(id)
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, nil
}

func (b *branch) mustNode(id NodeID) (n Node, err error) {
	r, ok, err := b.record(id)
	if err == nil && !ok {
		err = corrupt("tree %v lacks node %d", b.tree, id)
	}
	if err == nil {
		n, err = r.node(id)
	}
	return n, err
}

// descend follows a path of directories, and returns the last that there is and how many are missing.
func (b *branch) descend(path []string) (at NodeID, missing int, err error) {
	for i, name := range path {
		key := append(b.n.namedKey(b.t.room[:], at, []byte(name)), plain)
		k, v := b.t.cursor().Seek(key)
		if !bytes.HasPrefix(k, key) {
			return at, len(path) - i, nil
		}
		if _, at, err = b.child(k, v); err != nil {
			return at, 0, err
		}
	}
	return at, 0, nil
}

// Children returns at most limit children of a node, by name, behind a position. They are the caller's. The error
// matches [blobstor.ErrNotFound] if the tree or the node is not known.
func (db *DB) Children(ctx context.Context, tree Tree, parent NodeID, after Position, limit int) (page []Node, err error) {
	err = db.view(ctx, "children", tree, func(b *branch) error {
		if err := b.wantKnown(parent); err != nil {
			return err
		}
		w := walk{b: b, deepest: 1, top: &frame{parent: parent, at: after, depth: 1}}
		entries, err := w.fill(limit)
		for i := range entries {
			page = append(page, entries[i].Node)
		}
		return err
	})
	return page, err
}

// wantKnown returns why nothing can be told about what is below a node.
func (b *branch) wantKnown(id NodeID) error {
	if id == Root || id == Trash {
		return nil
	}
	_, ok, err := b.record(id)
	if err == nil && !ok {
		err = missing("no such node in tree " + b.tree.String())
	}
	return err
}
