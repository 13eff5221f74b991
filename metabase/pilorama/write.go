package pilorama

import "context"

// Add makes a node below another one and returns the operation that did it, for other replicas; its Child is the node.
// It makes the tree if nobody knows it. When it returns nil the operation is durable, unless the database was opened
// with NoSync. The error matches [blobstor.ErrNotFound] if the parent is not known or was removed, [blobstor.ErrTooLarge]
// if the attributes are, and ErrClock if no time is left; [blobstor.ErrUncertain] if the commit may or may not have
// happened. Other errors than that mean that nothing changed.
func (db *DB) Add(ctx context.Context, tree Tree, clock Clock, parent NodeID, meta []Attr) (Operation, error) {
	return db.writeOne(ctx, "add", tree, clock, meta, func(b *branch, meta []byte) (m move, err error) {
		if err := b.wantParent(parent); err != nil {
			return m, err
		}
		m, err = b.fresh(clock)
		m.parent, m.meta = parent, meta
		return m, err
	})
}

// AddByPath makes a node with these attributes below the last of a path of directories, and the directories that are
// missing. A directory is a node with a name and no other attribute; of several with the same name it is the oldest. It
// returns all operations; the Child of the last is the node. They are durable as those of Add are, all or none.
func (db *DB) AddByPath(ctx context.Context, tree Tree, clock Clock, path []string, meta []Attr) ([]Operation, error) {
	packed, size, err := packPath(path)
	own := []byte(nil)
	if err == nil {
		own, err = packMeta(meta)
	}
	if err != nil {
		return nil, wrap("add by path", tree, err)
	}
	return db.write(ctx, "add by path", tree, clock, size+int64(len(own))+moveOverhead, func(b *branch, did func(move) error) error {
		at, missing, err := b.descend(path)
		if err != nil {
			return err
		}
		metas := append(packed[len(path)-missing:len(path):len(path)], own)
		if !b.hasTime(clock, len(metas)) {
			return ErrClock
		}
		for _, meta := range metas {
			m, err := b.fresh(clock)
			if err != nil {
				return err
			}
			m.parent, m.meta = at, meta
			if err := did(m); err != nil {
				return err
			}
			at = m.child
		}
		return nil
	})
}

// packPath returns the attributes of directories, and their size.
func packPath(path []string) (metas [][]byte, size int64, err error) {
	if len(path) > MaxPath {
		return nil, 0, tooLarge("a path of %d elements", len(path))
	}
	for _, name := range path {
		meta, err := packMeta([]Attr{{FileName, name}})
		if err != nil {
			return nil, 0, err
		}
		metas = append(metas, meta)
		size += int64(len(meta)) + moveOverhead
	}
	return metas, size, nil
}

// Move puts a node below another parent, with these attributes, or with those that it has if meta is nil. It returns the
// operation, durable as that of Add is. The error matches [blobstor.ErrNotFound] if the node is not known, or the
// parent is not or was removed, and ErrCycle if the parent is the node or below it: then nothing is logged. A node that
// was removed may be moved back; its attributes were removed with it.
func (db *DB) Move(ctx context.Context, tree Tree, clock Clock, id, parent NodeID, meta []Attr) (Operation, error) {
	if err := movable(id); err != nil {
		return Operation{}, wrap("move", tree, err)
	}
	return db.writeOne(ctx, "move", tree, clock, meta, func(b *branch, packed []byte) (m move, err error) {
		n, err := b.wantNode(id)
		if err != nil {
			return m, err
		}
		if err := b.wantParent(parent); err != nil {
			return m, err
		}
		cycle, err := b.isBelow(parent, id)
		if err != nil {
			return m, err
		}
		if cycle {
			return m, ErrCycle
		}
		if meta == nil {
			packed = n.now.meta
		}
		time, ok := clock.next(b.last)
		if !ok {
			return m, ErrClock
		}
		return move{time, parent, id, packed}, nil
	})
}

// Remove moves a node, with all that is below it, to the trash. It returns the operation, durable as that of Add is. The
// error matches [blobstor.ErrNotFound] if the node is not known or was removed.
func (db *DB) Remove(ctx context.Context, tree Tree, clock Clock, id NodeID) (Operation, error) {
	if err := movable(id); err != nil {
		return Operation{}, wrap("remove", tree, err)
	}
	return db.writeOne(ctx, "remove", tree, clock, nil, func(b *branch, _ []byte) (m move, err error) {
		n, err := b.wantNode(id)
		switch {
		case err != nil:
			return m, err
		case n.now.parent == Trash:
			return m, missing("the node was removed")
		}
		time, ok := clock.next(b.last)
		if !ok {
			return m, ErrClock
		}
		return move{time, Trash, id, nil}, nil
	})
}

func movable(id NodeID) error {
	if id == Root || id == Trash {
		return invalid("the root and the trash are never moved")
	}
	return nil
}

// writeOne commits one operation that is decided in the transaction.
func (db *DB) writeOne(ctx context.Context, name string, tree Tree, clock Clock, meta []Attr, decide func(b *branch, meta []byte) (move, error)) (op Operation, err error) {
	packed, err := packMeta(meta)
	if err != nil {
		return op, wrap(name, tree, err)
	}
	ops, err := db.write(ctx, name, tree, clock, int64(len(packed))+moveOverhead, func(b *branch, did func(move) error) error {
		m, err := decide(b, packed)
		if err != nil {
			return err
		}
		return did(m)
	})
	if err != nil {
		return op, err
	}
	return ops[0], nil
}

// write commits operations that are decided in the transaction, which sees those of the group before.
func (db *DB) write(ctx context.Context, name string, tree Tree, clock Clock, bytes int64, decide func(b *branch, did func(move) error) error) (ops []Operation, err error) {
	if err = tree.validate(); err == nil {
		err = clock.validate()
	}
	if err == nil {
		err = db.do(ctx, &request{tree: tree, local: func(b *branch) error {
			ops = ops[:0]
			return decide(b, func(m move) error {
				if err := b.open(); err != nil {
					return err
				}
				op, err := m.unpack()
				if err != nil {
					return err
				}
				ops = append(ops, op)
				return b.append(&m)
			})
		}}, bytes)
	}
	if err != nil {
		return nil, wrap(name, tree, err)
	}
	return ops, nil
}

// append does an operation that is later than all others.
func (b *branch) append(m *move) error {
	if err := b.setParent(m.parent); err != nil {
		return err
	}
	if err := b.do(m, nil); err != nil {
		return err
	}
	b.last = m.time
	return b.flush()
}

// fresh returns an operation that makes a node: its time, which is the node, is nobody's yet.
func (b *branch) fresh(clock Clock) (m move, err error) {
	last := b.last
	for {
		time, ok := clock.next(last)
		if !ok {
			return m, ErrClock
		}
		id := NodeID(time)
		n, err := b.node(id)
		if err != nil {
			return m, err
		}
		if is, err := b.isParent(id); err != nil || !is && !n.isIn {
			return move{time: time, child: id}, err
		}
		last = time
	}
}

// hasTime reports whether so many operations certainly have times.
func (b *branch) hasTime(clock Clock, ops int) bool {
	const spare = 1 << 10 // times that foreign nodes may have taken
	return (MaxTime-b.last)/clock.Size > uint64(ops)+spare
}

// wantNode returns a node that must be known.
func (b *branch) wantNode(id NodeID) (*node, error) {
	n, err := b.node(id)
	if err == nil && !n.isIn {
		err = missing("no such node in tree " + b.tree.String())
	}
	return n, err
}

// wantParent returns why nothing may be put below a node.
func (b *branch) wantParent(id NodeID) error {
	switch id {
	case Root:
		return nil
	case Trash:
		return invalid("the trash is for Remove")
	}
	n, err := b.wantNode(id)
	if err == nil && n.now.parent == Trash {
		err = missing("the parent was removed")
	}
	return err
}
