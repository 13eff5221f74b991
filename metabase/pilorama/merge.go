package pilorama

import "slices"

// How operations become a tree
//
// The tree is what all operations make of it in the order of their times. The textbook way to insert one that is late
// is to undo all that are later, do it, and redo them (Kleppmann, Mulligan, Gomes, Beresford: A highly-available move
// operation for replicated trees). Most of that work changes nothing. Whether an operation would make a cycle depends
// on where its parent and the nodes above it are, and each of these is a parent that some operation names. A node that
// none names, a leaf, therefore decides nothing about other nodes, and its own operations are all done. So one on a
// leaf goes to its place among the operations on that leaf, whatever came between, and only those on parents are
// undone and redone.

// merge inserts operations that are not in the log, in the order of their times.
func (b *branch) merge(ops []move) error {
	var onParents []move
	for i := range ops {
		if err := b.setParent(ops[i].parent); err != nil {
			return err
		}
		is, err := b.isParent(ops[i].child)
		switch {
		case err != nil:
		case is:
			onParents = append(onParents, ops[i])
		default: // in turn: a directory that is made here becomes a parent by what follows
			err = b.insertLeaf(&ops[i])
		}
		if err != nil {
			return err
		}
	}
	if err := b.insert(onParents); err != nil {
		return err
	}
	b.last = max(b.last, ops[len(ops)-1].time)
	return b.flush()
}

// insertLeaf does an operation on a leaf, between the ones before and behind it.
func (b *branch) insertLeaf(op *move) error {
	n, err := b.node(op.child)
	if err != nil {
		return err
	}
	e := entry{move: *op, done: true}
	at := place{op.parent, op.time, op.meta}
	if !n.isIn || n.now.time < op.time {
		e.had, e.before = n.isIn, n.now.place
		b.put(n, at)
		return b.log(&e)
	}
	next, err := b.firstBehind(n, op.time)
	if err != nil {
		return err
	}
	if e.had, e.before = next.had, next.before; !e.had {
		n.now.birth = op.time
		b.touch(n)
	}
	if err := b.log(&e); err != nil {
		return err
	}
	next.had, next.before = true, at
	return b.log(&next)
}

// firstBehind returns the first operation behind a time that changed where a node is.
func (b *branch) firstBehind(n *node, time uint64) (entry, error) {
	e, err := b.mustEntry(n.now.time)
	for err == nil && e.had && e.before.time > time {
		e, err = b.mustEntry(e.before.time)
	}
	if err == nil && (e.child != n.id || !e.done) {
		err = corrupt("log entry %d of tree %v", e.time, b.tree)
	}
	return e, err
}

// insert does operations on parents. What is later than the first of them is undone before, and redone in turn.
func (b *branch) insert(ops []move) error {
	if len(ops) == 0 {
		return nil
	}
	undone, err := b.undo(ops[0].time)
	if err != nil {
		return err
	}
	for i := range ops {
		redo, _ := slices.BinarySearchFunc(undone, ops[i].time, func(e entry, t uint64) int {
			if e.time < t {
				return -1
			}
			return 1
		})
		if err := b.redo(undone[:redo]); err != nil {
			return err
		}
		undone = undone[redo:]
		if err := b.do(&ops[i], nil); err != nil {
			return err
		}
	}
	return b.redo(undone)
}

// undo takes back the operations on parents that are later than a time, and returns them.
func (b *branch) undo(time uint64) (undone []entry, err error) {
	if time >= b.last {
		return nil, nil
	}
	err = b.t.scan(b.n.wordKey(nil, redos, time+1), b.n.key(nil, redos), func(key, _ []byte) (bool, error) {
		e, err := b.mustEntry(timeOf(key))
		undone = append(undone, e)
		return true, err
	})
	for _, e := range slices.Backward(undone) {
		if err == nil && e.done {
			err = b.takeBack(&e)
		}
	}
	return undone, err
}

func (b *branch) takeBack(e *entry) error {
	n, err := b.node(e.child)
	if err != nil {
		return err
	}
	if !n.isIn || n.now.time != e.time {
		return corrupt("node %d of tree %v is not where operation %d put it", e.child, b.tree, e.time)
	}
	if n.isIn = e.had; e.had {
		n.now.place = e.before
	}
	b.touch(n)
	return nil
}

func (b *branch) redo(undone []entry) error {
	for i := range undone {
		if err := b.do(&undone[i].move, &undone[i]); err != nil {
			return err
		}
	}
	return nil
}

// do does an operation that is later than all that were done, unless that makes a cycle, and logs it. Old is what the
// log has of it.
func (b *branch) do(op *move, old *entry) error {
	n, err := b.node(op.child)
	if err != nil {
		return err
	}
	onParent, err := b.isParent(op.child)
	if err != nil {
		return err
	}
	cycle := op.child == op.parent
	if onParent && !cycle { // nothing is below a leaf
		if cycle, err = b.isBelow(op.parent, op.child); err != nil {
			return err
		}
	}
	e := entry{move: *op, done: !cycle}
	if e.done {
		if n.isIn {
			e.had, e.before = true, n.now.place
		}
		b.put(n, place{op.parent, op.time, op.meta})
	}
	if old != nil && old.done == e.done && old.had == e.had && old.before.time == e.before.time {
		return nil // of one time there is one operation
	}
	if onParent && old == nil {
		if err := b.setRedo(op.time); err != nil {
			return err
		}
	}
	return b.log(&e)
}
