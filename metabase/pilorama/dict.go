package pilorama

import (
	"context"

	"github.com/granary-store/granary/blobstor"
)

// open gives the tree a number if it has none.
func (b *branch) open() error {
	if b.n != 0 {
		return nil
	}
	key := append([]byte{settings}, keyNext...)
	v, err := b.t.get(key)
	if err != nil {
		return err
	}
	next := number(1)
	if v != nil {
		if len(v) != numberSize || numberOf(v) == 0 {
			return corrupt("the next number")
		}
		next = numberOf(v)
	}
	if err := b.t.put(key, (next + 1).append(b.t.begin())); err != nil {
		return err
	}
	b.n = next
	return b.t.put(dictKey(b.t.room[:], b.tree), next.append(b.t.begin()))
}

// List returns the names of a container's trees, in bytewise order; none if nobody knows the container.
func (db *DB) List(ctx context.Context, container blobstor.ID) (names []string, err error) {
	err = db.read(ctx, func(t *txn) error {
		trees, err := t.trees(&container)
		for i := range trees {
			names = append(names, trees[i].Name)
		}
		return err
	})
	return names, db.told("list", Tree{Container: container}, err)
}

// trees returns the trees of a container, or of all.
func (t *txn) trees(container *blobstor.ID) (trees []Tree, err error) {
	prefix := []byte{dict}
	if container != nil {
		prefix = append(prefix, container[:]...)
	}
	err = t.scan(prefix, prefix, func(key, _ []byte) (bool, error) {
		if len(key) <= 1+idSize {
			return false, corrupt("key of a tree: %x", key)
		}
		tree := Tree{Name: string(key[1+idSize:])}
		copy(tree.Container[:], key[1:])
		trees = append(trees, tree)
		return true, nil
	})
	return trees, err
}

// dropKeys is how many keys go in one commit.
const dropKeys = 2000

// Drop forgets a tree, or all trees of a container if the name is empty. From the first commit of each on the tree is
// unknown, and what is applied to it later makes a new one; the rest is done in small commits, and what a crash leaves
// of it is done by the next Drop. A tree that is not known is no error.
func (db *DB) Drop(ctx context.Context, tree Tree) error {
	db.sweeping.Lock()
	defer db.sweeping.Unlock()
	trees := []Tree{tree}
	err := error(nil)
	if tree.Name != "" {
		err = tree.validate()
	} else {
		err = db.read(ctx, func(t *txn) (err error) {
			trees, err = t.trees(&tree.Container)
			return err
		})
		db.tellFault("drop", err)
	}
	for i := 0; err == nil && i < len(trees); i++ {
		err = db.sweep(ctx, func(t *txn) error { return t.forget(trees[i]) })
	}
	for more := true; err == nil && more; {
		err = db.sweep(ctx, func(t *txn) (err error) {
			more, err = t.dropSome()
			return err
		})
	}
	return wrap("drop", tree, err)
}

// sweep commits removals, which need to know nothing of the trees but their numbers.
func (db *DB) sweep(ctx context.Context, fn func(t *txn) error) error {
	return db.do(ctx, &request{frees: true, local: func(b *branch) error { return fn(b.t) }}, groupBytes)
}

// forget makes a tree unknown, whatever its keys say, and notes that they are left.
func (t *txn) forget(tree Tree) error {
	key := dictKey(nil, tree)
	v, err := t.get(key)
	if v == nil || err != nil {
		return err
	}
	if len(v) != numberSize {
		return corrupt("number of tree %v", tree)
	}
	if err := t.put(append(append([]byte{settings}, keyDropped...), v...), t.begin()); err != nil {
		return err
	}
	return t.del(key)
}

// dropSome removes some keys of trees that were dropped, whatever they say, and reports whether more may be left.
func (t *txn) dropSome() (more bool, err error) {
	prefix := append([]byte{settings}, keyDropped...)
	entry, _ := t.cursor().Seek(prefix)
	if len(entry) != len(prefix)+numberSize || string(entry[:len(prefix)]) != string(prefix) {
		return false, nil
	}
	entry = append([]byte(nil), entry...)
	n := numberOf(entry[len(prefix):])
	left := dropKeys
	for _, class := range []byte{logs, nodes, children, parents, redos, heights} {
		if left, err = t.delSome(n.key(nil, class), nil, left); left <= 0 || err != nil {
			return true, err
		}
	}
	return true, t.del(entry)
}

// delSome removes the keys that begin with a prefix and are below an end, if there is one, at most so many, and returns
// how many more it might.
func (t *txn) delSome(prefix, end []byte, most int) (left int, err error) {
	var keys [][]byte
	c := t.bucket().Cursor()
	for k, _ := c.Seek(prefix); k != nil && len(keys) < most; k, _ = c.Next() {
		if string(k[:min(len(k), len(prefix))]) != string(prefix) || end != nil && string(k) >= string(end) {
			break
		}
		keys = append(keys, k)
	}
	for _, k := range keys {
		if err := t.del(k); err != nil {
			return 0, err
		}
	}
	return most - len(keys), nil
}
