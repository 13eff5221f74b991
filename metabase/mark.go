package metabase

import (
	"context"
	"errors"

	"github.com/granary-store/granary/blobstor"
)

func (t *txn) putMark(c container, id *blobstor.ID, m Mark) {
	t.put(marks, t.recKey(c, id), func(b []byte) []byte { return append(b, byte(m)) })
}

// planMark plans that the mark of a stored object changes.
func (t *txn) planMark(c container, r *Record, from, to Mark) {
	if from == to {
		return
	}
	if to == None {
		t.del(marks, t.recKey(c, &r.Address.Object))
	} else {
		t.putMark(c, &r.Address.Object, to)
	}
	change := countersOf(r, to)
	before := countersOf(r, from)
	change.add(&before, -1)
	t.count(c, change)
}

// planMarkAll plans the mark of an object and of all that are parts of it.
func (t *txn) planMarkAll(n named, id blobstor.ID, m Mark) error {
	if !t.first(id) {
		return nil
	}
	p, stored, old, err := t.markedRecord(n, id)
	if err != nil {
		return err
	}
	if stored {
		t.planMark(n.number, &p.head, old, m)
	}
	if m == None {
		if err := t.unbury(n, id); err != nil {
			return err
		}
	}
	if p.head.Kind == Tombstone && old == Garbage && m != Garbage { // it counts again
		if err := t.planMarkAll(n, p.head.Target, Garbage); err != nil {
			return err
		}
	}
	return t.planMarkParts(n, id, m)
}

func (t *txn) planMarkParts(n named, id blobstor.ID, m Mark) error {
	return t.parts(n.number, id, func(part blobstor.ID) (bool, error) {
		return true, t.planMarkAll(n, part, m)
	})
}

// markedRecord returns the record of an object and its mark.
func (t *txn) markedRecord(n named, id blobstor.ID) (p packed, stored bool, m Mark, err error) {
	p, stored, err = t.record(n.number, blobstor.Address{Container: n.id, Object: id})
	if err == nil && stored {
		m, err = t.mark(n.number, id)
	}
	return p, stored, m, err
}

// planDoom plans that an object that is put, and that is to be removed with the one that it is a part of, takes along
// what it brings to that one: its own parts, and the others of its chain.
func (t *txn) planDoom(n named, r *Record) error {
	if err := t.planMarkParts(n, r.Address.Object, Garbage); err != nil || r.Chain == "" {
		return err
	}
	return t.chain(n.number, r.Chain, func(id blobstor.ID, _ bool) (bool, error) {
		return true, t.planMarkAll(n, id, Garbage)
	})
}

// unbury plans that the tombstones that bury an object are garbage, or it would be removed again.
func (t *txn) unbury(n named, id blobstor.ID) error {
	return t.scan(rels, appendRel(nil, n.number, relBuries, &id), func(key, _ []byte) (bool, error) {
		by := lastID(key)
		if !t.first(by) {
			return true, nil
		}
		p, stored, old, err := t.markedRecord(n, by)
		if err == nil && stored {
			t.planMark(n.number, &p.head, old, Garbage)
		}
		return true, err
	})
}

// Mark marks objects and all that are parts of them: [Garbage] and [Redundant] let [DB.Collect] remove them, and
// Garbage hides them at once. [None] revives them: their marks go, and the tombstones that bury them become garbage
// instead; a part of an object that is itself to go cannot be revived alone, which is [ErrGarbage] or [ErrBuried]. An
// address without an object is the whole container: Garbage hides all of it, refuses further records and lets Collect
// remove it, and so does Redundant; None revives it. What is not stored is passed over. A mark that there is not is
// [ErrRecord]. When Mark returns nil, all of it is durable; otherwise some of the addresses may be marked, and the
// errors of those that were refused are joined. Thousands of addresses take more than one commit.
func (db *DB) Mark(ctx context.Context, m Mark, addrs ...blobstor.Address) error {
	err := db.writable()
	if err == nil && m >= markKinds {
		err = ErrRecord
	}
	if err != nil {
		return blobstor.Wrap("mark", blobstor.Address{}, "", err)
	}
	steps := make([]step, len(addrs))
	for i, addr := range addrs {
		steps[i] = step{frees: m != None, plan: func(t *txn) error { return t.planMarkOf(addr, m) }}
	}
	done, err := db.doAll(ctx, 200, steps)
	var errs []error
	for i := range done {
		errs = append(errs, blobstor.Wrap("mark", addrs[i], "", steps[i].err))
	}
	if err != nil {
		errs = append(errs, blobstor.Wrap("mark", addrs[done], "", err))
	}
	return errors.Join(errs...)
}

func (t *txn) planMarkOf(addr blobstor.Address, m Mark) error {
	n, ok := t.find(addr.Container)
	if !ok {
		return nil
	}
	if addr.Object.IsZero() {
		n.marked = m != None
		t.planName(n)
		return nil
	}
	if m == None {
		if err := t.revivable(n, addr.Object); err != nil {
			return err
		}
	}
	return t.planMarkAll(n, addr.Object, m)
}

// revivable refuses to revive a part of what is to be removed.
func (t *txn) revivable(n named, id blobstor.ID) error {
	p, stored, err := t.record(n.number, blobstor.Address{Container: n.id, Object: id})
	if err != nil || !stored {
		return err
	}
	s, err := t.fate(n.number, &p.head)
	if err == nil && s != Missing {
		err = s.Err()
	}
	return err
}
