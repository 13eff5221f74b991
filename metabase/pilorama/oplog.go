package pilorama

import (
	"context"
	"iter"
)

// OpLog returns at most limit operations of the log in the order of their times, from a time on, which may be 0. They are
// the caller's. It includes those that changed nothing. The error matches [blobstor.ErrNotFound] if the tree is not
// known, and ErrTruncated if the log was truncated above from.
func (db *DB) OpLog(ctx context.Context, tree Tree, from uint64, limit int) (ops []Operation, err error) {
	err = db.view(ctx, "log", tree, func(b *branch) error {
		if from < b.height {
			return &TruncatedError{b.height}
		}
		if limit <= 0 {
			return nil
		}
		return b.t.scan(b.n.wordKey(nil, logs, from), b.n.key(nil, logs), func(key, value []byte) (bool, error) {
			e, err := parseEntry(timeOf(key), value)
			if err != nil {
				return false, err
			}
			op, err := e.unpack()
			ops = append(ops, op)
			return len(ops) < limit, err
		})
	})
	return ops, err
}

// Span returns where the log begins, 0 if nothing was truncated, and the last time that was given to an operation.
func (db *DB) Span(ctx context.Context, tree Tree) (height, last uint64, err error) {
	err = db.view(ctx, "span", tree, func(b *branch) error {
		height, last = b.height, b.last
		return nil
	})
	return height, last, err
}

// Truncate removes the operations before a height from the log, once every replica has all of them, and what was kept
// to undo them. The tree stays as it is. From the first commit on the log begins there, and an operation from before
// is refused with ErrTruncated, for its place cannot be found any more; the rest is done in small commits, and what a
// crash leaves of it is done by the next Truncate. A lower height than the last one changes nothing. The times given to
// operations later are not below the height.
func (db *DB) Truncate(ctx context.Context, tree Tree, height uint64) error {
	db.sweeping.Lock()
	defer db.sweeping.Unlock()
	err := tree.validate()
	if err == nil && height > MaxTime {
		err = invalid("height %d", height)
	}
	for more := true; err == nil && more; {
		err = db.do(ctx, &request{tree: tree, frees: true, local: func(b *branch) (err error) {
			more, err = b.truncate(height)
			return err
		}}, groupBytes)
	}
	return wrap("truncate", tree, err)
}

// truncate removes some operations, and reports whether more may be left.
func (b *branch) truncate(height uint64) (more bool, err error) {
	if b.n == 0 {
		return false, missing("tree " + b.tree.String())
	}
	if height > b.height {
		if err := b.t.put(b.n.key(b.t.room[:], heights), appendUint64(b.t.begin(), height)); err != nil {
			return false, err
		}
		b.height, b.last = height, max(b.last, height-1)
	}
	left := dropKeys
	for _, class := range []byte{redos, logs} {
		if left, err = b.t.delSome(b.n.key(nil, class), b.n.wordKey(nil, class, b.height), left); left <= 0 || err != nil {
			return true, err
		}
	}
	return false, nil
}

// Base yields operations that make the tree with which the log begins, in no order of time: all that a replica needs
// that is too far behind for the log. That one drops its tree, applies these, truncates at the same height (see
// [DB.Span]) and applies the log from there. They are few: at most two for each node. The same ones come while other
// calls write, until somebody truncates again, which ends it with ErrTruncated. It holds no transaction while the
// caller works.
func (db *DB) Base(ctx context.Context, tree Tree) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		height, _, err := db.Span(ctx, tree)
		for next, more := NodeID(0), true; more && err == nil; {
			var page []Operation
			err = db.view(ctx, "base", tree, func(b *branch) (err error) {
				if b.height != height {
					return &TruncatedError{b.height}
				}
				page, next, more, err = b.base(next, largestPage)
				return err
			})
			for i := 0; err == nil && i < len(page); i++ {
				if !yield(page[i], nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Operation{}, err)
		}
	}
}

// base returns the operations of some nodes, from one on, and the node to go on with.
func (b *branch) base(from NodeID, most int) (ops []Operation, next NodeID, more bool, err error) {
	prefix := b.n.key(nil, nodes)
	seen := 0
	err = b.t.scan(b.n.wordKey(nil, nodes, uint64(from)), prefix, func(key, value []byte) (bool, error) {
		if next = NodeID(timeOf(key)); seen == most {
			more = true
			return false, nil
		}
		seen++
		r, err := parseRecord(value)
		if err != nil {
			return false, err
		}
		at, ok, err := b.atBase(&r)
		if err != nil || !ok {
			return true, err
		}
		for _, time := range []uint64{r.birth, at.time} {
			m := move{time, at.parent, next, at.meta}
			op, err := m.unpack()
			if err != nil {
				return false, err
			}
			if ops = append(ops, op); r.birth == at.time {
				break
			}
		}
		return true, nil
	})
	return ops, next, more, err
}

// atBase returns where a node was when the log began, and whether it was anywhere.
func (b *branch) atBase(r *record) (at place, ok bool, err error) {
	for at = r.place; at.time >= b.height; {
		e, err := b.mustEntry(at.time)
		if err != nil || !e.had {
			return at, false, err
		}
		if e.before.time >= at.time {
			return at, false, corrupt("log entry %d of tree %v", at.time, b.tree)
		}
		at = e.before
	}
	return at, true, nil
}
