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
func (t *txn) planMarkAll(n named, id blobstor.ID, m Mark, seen map[blobstor.ID]bool) error {
	if seen[id] {
		return nil
	}
	seen[id] = true
	p, stored, err := t.record(n.number, blobstor.Address{Object: id})
	if err != nil {
		return err
	}
	if stored {
		p.head.Address.Object = id
		old, err := t.mark(n.number, id)
		if err != nil {
			return err
		}
		t.planMark(n.number, &p.head, old, m)
	}
	if m == None {
		if err := t.unbury(n, id); err != nil {
			return err
		}
	}
	return t.parts(n.number, id, func(part blobstor.ID) (bool, error) {
		return true, t.planMarkAll(n, part, m, seen)
	})
}

// planBurial plans what a tombstone does to its target.
func (t *txn) planBurial(n named, r *Record) error {
	return t.planMarkAll(n, r.Target, Garbage, map[blobstor.ID]bool{r.Address.Object: true})
}

// unbury plans that the tombstones that bury an object are garbage, or it would be removed again.
func (t *txn) unbury(n named, id blobstor.ID) error {
	return t.scan(rels, appendRel(nil, n.number, relBuries, &id), func(key, _ []byte) (bool, error) {
		by := blobstor.Address{Object: lastID(key)}
		p, stored, err := t.record(n.number, by)
		if err != nil || !stored {
			return true, err
		}
		old, err := t.mark(n.number, by.Object)
		if err == nil {
			t.planMark(n.number, &p.head, old, Garbage)
		}
		return true, err
	})
}

// Mark marks objects and all that are parts of them: [Garbage] and [Redundant] let [DB.Collect] remove them, and
// Garbage hides them at once. [None] revives them: their marks go, and the tombstones that bury them become garbage
// instead. An address without an object is the whole container: Garbage hides all of it, refuses further records and
// lets Collect remove it; None revives it. What is not stored is passed over. When Mark returns nil, all of it is
// durable; otherwise some of the addresses may be marked.
func (db *DB) Mark(ctx context.Context, m Mark, addrs ...blobstor.Address) error {
	steps := make([]step, len(addrs))
	for i, addr := range addrs {
		steps[i] = step{frees: m != None, plan: func(t *txn) error { return t.planMarkOf(addr, m) }}
	}
	if len(steps) == 0 || m >= markKinds {
		return blobstor.Wrap("mark", blobstor.Address{}, "", db.refusalOf(m))
	}
	if err := db.do(ctx, int64(200*len(addrs)), steps...); err != nil {
		return blobstor.Wrap("mark", addrs[0], "", err)
	}
	var errs []error
	for i := range steps {
		errs = append(errs, blobstor.Wrap("mark", addrs[i], "", steps[i].err))
	}
	return errors.Join(errs...)
}

// refusalOf returns why a call of Mark without addresses, or with an unknown mark, did nothing.
func (db *DB) refusalOf(m Mark) error {
	if m >= markKinds {
		return ErrRecord
	}
	if err := db.enterWrite(); err != nil {
		return err
	}
	db.leave()
	return nil
}

func (t *txn) planMarkOf(addr blobstor.Address, m Mark) error {
	n, ok := t.find(addr.Container)
	if !ok {
		return nil
	}
	if addr.Object.IsZero() {
		return t.planContainer(n, m)
	}
	return t.planMarkAll(n, addr.Object, m, map[blobstor.ID]bool{})
}
