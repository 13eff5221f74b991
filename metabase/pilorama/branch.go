package pilorama

import "bytes"

// branch is a tree within a transaction. In a write transaction it keeps what it knows of nodes, and what changes of
// them until flush writes it.
type branch struct {
	t      *txn
	tree   Tree
	n      number // 0 if nobody knows the tree
	height uint64 // where the log begins
	last   uint64 // the latest time that was given to an operation

	known   map[NodeID]*node
	changed []*node
	parents map[NodeID]bool
}

// node is a node whose record was read, and what it is to become.
type node struct {
	id          NodeID
	was, now    record
	wasIn, isIn bool // there is a record
	dirty       bool
}

// branch returns a tree, as the transaction sees it.
func (t *txn) branch(tree Tree) (*branch, error) {
	b := &branch{t: t, tree: tree}
	v, err := t.get(dictKey(t.room[:], tree))
	if v == nil || err != nil {
		return b, err
	}
	if len(v) != numberSize {
		return nil, corrupt("number of tree %v", tree)
	}
	b.n = numberOf(v)
	if b.height, err = b.readHeight(); err != nil {
		return nil, err
	}
	b.last = max(b.height, 1) - 1
	key, value := t.lastOf(b.n.key(t.room[:], logs))
	if key == nil {
		return b, nil
	}
	if _, err := unseal(key, value); err != nil {
		return nil, err
	}
	if b.last = max(b.last, timeOf(key)); b.last > MaxTime {
		return nil, corrupt("log of tree %v", tree)
	}
	return b, nil
}

// timeOf returns the word that a key ends with.
func timeOf(key []byte) uint64 { return uint64Of(key[len(key)-wordSize:]) }

func (b *branch) readHeight() (uint64, error) {
	v, err := b.t.get(b.n.key(b.t.room[:], heights))
	if v == nil || err != nil {
		return 0, err
	}
	if len(v) != wordSize {
		return 0, corrupt("where the log of tree %v begins", b.tree)
	}
	return uint64Of(v), nil
}

// record returns the record of a node as it is stored, and whether there is one.
func (b *branch) record(id NodeID) (r record, ok bool, err error) {
	v, err := b.t.get(b.n.wordKey(b.t.room[:], nodes, uint64(id)))
	if v == nil || err != nil {
		return r, false, err
	}
	r, err = parseRecord(v)
	return r, err == nil, err
}

// entry returns the operation of a time, and whether there is one.
func (b *branch) entry(time uint64) (e entry, ok bool, err error) {
	v, err := b.t.get(b.n.wordKey(b.t.room[:], logs, time))
	if v == nil || err != nil {
		return e, false, err
	}
	e, err = parseEntry(time, v)
	return e, err == nil, err
}

// mustEntry returns an operation that another entry tells of.
func (b *branch) mustEntry(time uint64) (entry, error) {
	e, ok, err := b.entry(time)
	if err == nil && !ok {
		err = corrupt("the log of tree %v lacks %d", b.tree, time)
	}
	return e, err
}

// isParent reports whether an operation named the node as a parent.
func (b *branch) isParent(id NodeID) (bool, error) {
	if id == Root || id == Trash || b.parents[id] {
		return true, nil
	}
	return b.t.has(b.n.wordKey(b.t.room[:], parents, uint64(id)))
}

// setParent notes that an operation names the node as a parent.
func (b *branch) setParent(id NodeID) error {
	if is, err := b.isParent(id); err != nil || is && b.parents[id] || id == Root || id == Trash {
		return err
	} else if !is {
		if err := b.t.put(b.n.wordKey(b.t.room[:], parents, uint64(id)), b.t.begin()); err != nil {
			return err
		}
		if err := b.setRedos(id); err != nil {
			return err
		}
	}
	b.parents[id] = true
	return nil
}

// setRedos notes the operations on a leaf that becomes a parent. All of them were done.
func (b *branch) setRedos(id NodeID) error {
	n, err := b.node(id)
	if err != nil {
		return err
	}
	for at, in := n.now.place, n.isIn; in && at.time >= b.height; {
		e, err := b.mustEntry(at.time)
		if err != nil {
			return err
		}
		if e.child != id || e.had && e.before.time >= at.time {
			return corrupt("log entry %d of tree %v", at.time, b.tree)
		}
		if err := b.setRedo(at.time); err != nil {
			return err
		}
		at, in = e.before, e.had
	}
	return nil
}

// setRedo notes that the operation of a time is on a parent.
func (b *branch) setRedo(time uint64) error {
	return b.t.put(b.n.wordKey(b.t.room[:], redos, time), b.t.begin())
}

// node returns a node to work with.
func (b *branch) node(id NodeID) (*node, error) {
	if n := b.known[id]; n != nil {
		return n, nil
	}
	r, ok, err := b.record(id)
	if err != nil {
		return nil, err
	}
	n := &node{id: id, was: r, now: r, wasIn: ok, isIn: ok}
	b.known[id] = n
	return n, nil
}

// put puts a node somewhere.
func (b *branch) put(n *node, at place) {
	n.now.place = at
	if !n.isIn {
		n.now.birth, n.isIn = at.time, true
	}
	b.touch(n)
}

func (b *branch) touch(n *node) {
	if !n.dirty {
		n.dirty = true
		b.changed = append(b.changed, n)
	}
}

// flush writes what changed of nodes.
func (b *branch) flush() error {
	for _, n := range b.changed {
		if err := b.write(n); err != nil {
			return err
		}
		n.was, n.wasIn, n.dirty = n.now, n.isIn, false
	}
	b.changed = b.changed[:0]
	return nil
}

func (b *branch) write(n *node) error {
	var room [128]byte
	var old, now []byte
	if n.wasIn {
		old = b.n.childKey(b.t.room[:], n.id, &n.was)
	}
	if n.isIn {
		now = b.n.childKey(room[:], n.id, &n.now)
	}
	if old != nil && !bytes.Equal(old, now) {
		if err := b.t.del(old); err != nil {
			return err
		}
		old = nil
	}
	if now != nil && old == nil {
		if err := b.t.put(now, b.t.begin()); err != nil {
			return err
		}
	}
	key := b.n.wordKey(b.t.room[:], nodes, uint64(n.id))
	switch {
	case n.isIn:
		return b.t.put(key, n.now.appendTo(b.t.begin()))
	case n.wasIn:
		return b.t.del(key)
	}
	return nil
}

// log writes an operation.
func (b *branch) log(e *entry) error {
	return b.t.put(b.n.wordKey(b.t.room[:], logs, e.time), e.appendTo(b.t.begin()))
}

// mostDepth is how far a walk to the root goes before it is damage: a whole tree has no cycles.
const mostDepth = 1 << 24

// isBelow reports whether a node is another one, or below it.
func (b *branch) isBelow(id, above NodeID) (bool, error) {
	for depth := 0; id != Root && id != Trash; depth++ {
		if id == above {
			return true, nil
		}
		n, err := b.node(id)
		if err != nil || !n.isIn {
			return false, err
		}
		if depth > mostDepth {
			return false, corrupt("a cycle in tree %v", b.tree)
		}
		id = n.now.parent
	}
	return false, nil
}
