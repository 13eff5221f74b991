package metabase

import (
	"context"

	"github.com/granary-store/granary/blobstor"
)

// Mark is a program's decision that an object shall go.
type Mark uint8

// The marks.
const (
	None      Mark = iota
	Garbage        // it cannot be read any more, and [DB.Collect] removes it
	Redundant      // Collect removes it, but until then it can be read

	markKinds = iota
)

// State says whether an object can be read.
type State uint8

// The states of objects; the greater one decides between an object and what it is a part of.
const (
	Missing       State = iota // not stored here
	Available                  // also if it is marked [Redundant]
	Expired                    // its last epoch is over
	Marked                     // [Garbage]
	Buried                     // by a tombstone
	ContainerGone              // its container is marked
)

// Status is what the database decides about an object.
type Status struct {
	State    State
	Held     bool        // by a lock on it, or on an object that it is a part of
	By       blobstor.ID // the lock, or else the tombstone
	Mark     Mark
	Virtual  bool
	HasParts bool // other objects here are parts of it
	Location blobstor.Location
}

// Err returns the error that says why an object in this state cannot be read, nil if it can.
func (s State) Err() error {
	switch s {
	case Available:
		return nil
	case Expired:
		return ErrExpired
	case Marked:
		return ErrGarbage
	case Buried:
		return ErrBuried
	case ContainerGone:
		return ErrContainer
	}
	return blobstor.ErrNotFound
}

// deepest is how many objects up the parts of parts are followed. It also ends a circle of parents.
const deepest = 4

// verdict is what decides about an object, and its record.
type verdict struct {
	packed
	stored bool
	mark   Mark
	state  State
	held   bool
	by     blobstor.ID
}

// judge decides about an object. In this order: a marked container takes all with it; a hold keeps an object whatever
// else is said of it; then come tombstone, mark and expiry; an object that nothing is said of shares the state of the
// one that it is a part of. A hold on that one keeps its parts too.
func (t *txn) judge(n named, addr blobstor.Address) (v verdict, err error) {
	if v.packed, v.stored, err = t.record(n.number, addr); err != nil {
		return v, err
	}
	if !v.stored {
		v.head.Address = addr
	}
	err = t.judgeRecord(n, &v, deepest)
	return v, err
}

// judgeRecord decides about an object with the record that v has, or would have.
func (t *txn) judgeRecord(n named, v *verdict, depth int) (err error) {
	id := v.head.Address.Object
	v.state = Missing
	if v.stored {
		v.state = Available
	}
	if n.has.Garbage > 0 {
		if v.mark, err = t.mark(n.number, id); err != nil {
			return err
		}
	}
	if n.marked {
		v.state = ContainerGone
		return nil
	}
	if n.has.Locks > 0 {
		if v.by, v.held, err = t.heldBy(n.number, id); err != nil {
			return err
		}
	}
	if !v.held {
		if err := t.judgeOwn(n, v); err != nil {
			return err
		}
	}
	return t.inherit(n, v, depth)
}

// judgeOwn decides by what is said of the object itself, which is not held.
func (t *txn) judgeOwn(n named, v *verdict) error {
	var buried bool
	if n.has.Tombstones > 0 {
		var by blobstor.ID
		var err error
		if by, buried, err = t.buriedBy(n.number, v.head.Address.Object); err != nil {
			return err
		}
		v.by = by
	}
	switch {
	case buried:
		v.state = Buried
	case v.mark == Garbage && v.stored:
		v.state = Marked
	case v.stored && v.head.Expires != 0 && v.head.Expires < t.epoch:
		v.state = Expired
	}
	return nil
}

// inherit lets the object share what is decided about the one that it is a part of.
func (t *txn) inherit(n named, v *verdict, depth int) error {
	if v.held || depth == 0 {
		return nil
	}
	parent, err := t.parentOf(n.number, &v.head)
	if err != nil || parent.IsZero() {
		return err
	}
	addr := blobstor.Address{Container: v.head.Address.Container, Object: parent}
	var p verdict
	if p.packed, p.stored, err = t.above(n.number, addr); err != nil {
		return err
	}
	if err := t.judgeRecord(n, &p, depth-1); err != nil {
		return err
	}
	switch {
	case p.held:
		v.held, v.by = true, p.by
		if v.stored {
			v.state = Available
		}
	case p.state > v.state && p.state != Available:
		v.state, v.by = p.state, p.by
	}
	return nil
}

// heldBy returns a lock that holds the object. A lock counts as long as it has neither expired nor a mark.
func (t *txn) heldBy(c container, id blobstor.ID) (by blobstor.ID, held bool, err error) {
	return t.relation(c, relHolds, id, func(lock *packed, mark Mark) bool {
		return mark != Garbage && (lock.head.Expires == 0 || lock.head.Expires >= t.epoch)
	})
}

// buriedBy returns a tombstone that buries the object. One that has expired counts until it is removed, or the object
// would come back.
func (t *txn) buriedBy(c container, id blobstor.ID) (by blobstor.ID, buried bool, err error) {
	return t.relation(c, relBuries, id, func(_ *packed, mark Mark) bool { return mark != Garbage })
}

// fate returns what is to become of the objects that a record is a part of, whatever holds them: Buried, Marked or
// neither.
func (t *txn) fate(c container, r *Record) (s State, err error) {
	for range deepest {
		parent, err := t.parentOf(c, r)
		if err != nil || parent.IsZero() {
			return s, err
		}
		if _, buried, err := t.buriedBy(c, parent); buried || err != nil {
			return Buried, err
		}
		m, err := t.mark(c, parent)
		if err != nil {
			return s, err
		}
		if m == Garbage {
			s = Marked
		}
		p, _, err := t.above(c, blobstor.Address{Object: parent})
		if err != nil {
			return s, err
		}
		r = &p.head
	}
	return s, nil
}

// Status decides about an object. An object that is not stored is [Missing], or [Buried] if a tombstone says so; it can
// be held too. The decision is for the epoch that [Options.Epoch] returns when the call begins.
func (db *DB) Status(ctx context.Context, addr blobstor.Address) (s Status, err error) {
	err = db.view(ctx, "status", addr, func(t *txn) error {
		n, ok := t.find(addr.Container)
		if !ok {
			return nil
		}
		v, err := t.judge(n, addr)
		if err != nil {
			return err
		}
		s = Status{State: v.state, Held: v.held, By: v.by, Mark: v.mark, Virtual: v.head.Virtual, Location: v.head.Location}
		s.HasParts, err = t.hasParts(n.number, addr.Object)
		return err
	})
	return s, err
}

// Get returns the record of an object that can be read. Otherwise the error says why not: ErrNotFound, or one of
// [ErrBuried], [ErrGarbage], [ErrExpired] and [ErrContainer], which match it. The record is the caller's.
func (db *DB) Get(ctx context.Context, addr blobstor.Address) (r Record, err error) {
	err = db.view(ctx, "get", addr, func(t *txn) error {
		v, err := t.readable(addr)
		if err != nil {
			return err
		}
		r, err = v.record()
		return err
	})
	return r, err
}

// Exists reports whether an object can be read. One that is not stored is false and no error; one that was removed or
// has expired is false and the error that [DB.Get] returns.
func (db *DB) Exists(ctx context.Context, addr blobstor.Address) (bool, error) {
	err := db.view(ctx, "exists", addr, func(t *txn) error {
		_, err := t.readable(addr)
		return err
	})
	if isAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// readable returns the verdict about an object that can be read.
func (t *txn) readable(addr blobstor.Address) (v verdict, err error) {
	n, ok := t.find(addr.Container)
	if !ok {
		return v, blobstor.ErrNotFound
	}
	if v, err = t.judge(n, addr); err == nil {
		err = v.state.Err()
	}
	return v, err
}
