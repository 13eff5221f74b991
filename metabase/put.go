package metabase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// Entry is an element of a batch: an object and those that it is a part of. The callee fills Err in place.
type Entry struct {
	Records []Record
	Err     error
}

func (e *Entry) address() (a blobstor.Address) {
	if len(e.Records) > 0 {
		a = e.Records[0].Address
	}
	return a
}

// Put records an object and, behind it, objects that it is a part of: all of them or none. When it returns nil, that
// is durable. The blob must be durable before: a record without its blob is what never may be.
//
// An object that is stored stays as it is, except that its location is replaced by a new one, that its mark goes, and
// that a virtual one becomes real. It is refused, and nothing is written, with [ErrBuried] if a tombstone is there,
// [ErrExpired] if its last epoch is over, [ErrContainer] if its container is marked, [ErrRecord] if it is not valid;
// [ErrGarbage] if what it is a part of is marked; a tombstone also with [ErrHeld] if its target is held; a tombstone
// and a lock with [ErrTarget] if their target is one of them; a lock with [ErrBuried] or [ErrGarbage] if its target was
// removed. A refused record says nothing against the blob. A tombstone marks its target and all its parts as [Garbage].
// Nothing of recs is retained.
func (db *DB) Put(ctx context.Context, recs ...Record) error {
	es := []Entry{{Records: recs}}
	err := db.putAll(ctx, es, false)
	if err == nil {
		err = es[0].Err
	}
	return blobstor.Wrap("put", es[0].address(), "", err)
}

// PutBatch records many objects with few commits. Entries are refused alone, as Put would, each with its Err. An error
// of the disk is returned, and then nothing is known of entries without an error of their own; otherwise the result is
// the first entry's that was refused.
func (db *DB) PutBatch(ctx context.Context, es []Entry) error {
	return db.putEntries(ctx, es, false)
}

// putEntries is PutBatch; force takes what the status of the object speaks against, for a rebuild.
func (db *DB) putEntries(ctx context.Context, es []Entry, force bool) error {
	if err := db.putAll(ctx, es, force); err != nil {
		return blobstor.Wrap("put", blobstor.Address{}, "", err)
	}
	var first error
	for i := range es {
		if es[i].Err != nil {
			es[i].Err = blobstor.Wrap("put", es[i].address(), "", es[i].Err)
			if first == nil {
				first = es[i].Err
			}
		}
	}
	return first
}

// putAll commits the entries in groups that fit.
func (db *DB) putAll(ctx context.Context, es []Entry, force bool) error {
	if err := db.writable(); err != nil {
		return err // also if there is nothing to commit
	}
	most := int64(groupBytes / 2)
	if force {
		most = rebuildBytes
	}
	for len(es) > 0 {
		var steps []step
		var of []*Entry
		bytes, n := int64(0), 0
		for ; n < len(es) && (n == 0 || bytes < most); n++ {
			e := &es[n]
			if e.Err = validateEntry(e.Records); e.Err != nil {
				continue
			}
			frees := e.Records[0].Kind == Tombstone
			steps = append(steps, step{frees: frees, plan: func(t *txn) error { return t.planPut(e.Records, force) }})
			of = append(of, e)
			for i := range e.Records {
				bytes += int64(3*e.Records[i].encodedLen() + 500)
			}
		}
		if len(steps) > 0 {
			if err := db.do(ctx, bytes, steps...); err != nil {
				return err
			}
		}
		for i := range steps {
			of[i].Err = steps[i].err
		}
		es = es[n:]
	}
	return nil
}

func validateEntry(recs []Record) error {
	if len(recs) == 0 {
		return fmt.Errorf("%w: there is none", ErrRecord)
	}
	var errs []error
	for i := range recs {
		if err := recs[i].validate(); err != nil {
			errs = append(errs, err)
		}
		if recs[i].Address.Container != recs[0].Address.Container {
			errs = append(errs, fmt.Errorf("%w: two containers in one entry", ErrRecord))
		}
		if slices.ContainsFunc(recs, func(r Record) bool { return r.Target == recs[i].Address.Object }) {
			errs = append(errs, fmt.Errorf("%w: the target of one is in the same entry", ErrRecord))
		}
		for k := range i {
			if recs[k].Address == recs[i].Address {
				errs = append(errs, fmt.Errorf("%w: %v twice in one entry", ErrRecord, recs[i].Address))
			}
		}
	}
	return errors.Join(errs...)
}

// planPut plans the records of one entry.
func (t *txn) planPut(recs []Record, force bool) error {
	if err := t.planRoom(); err != nil {
		return err
	}
	n, err := t.open(recs[0].Address.Container)
	if err != nil {
		return err
	}
	t.entry = recs
	for i := range recs {
		if err := t.planRecord(n, &recs[i], force); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) planRecord(n named, r *Record, force bool) error {
	old, stored, err := t.record(n.number, r.Address)
	if err != nil {
		return err
	}
	c := candidate{verdict: verdict{stored: stored}, again: stored && (r.Virtual || !old.head.Virtual)}
	c.head = *r
	c.head.Attrs = nil
	if err := t.judgeNew(n, &c); err != nil {
		return err
	}
	if !force {
		if err := t.refuse(n, r, &c); err != nil {
			return err
		}
	}
	mark := None
	if c.above != Missing || c.buried {
		mark = Garbage
	}
	if c.again {
		err = t.planAgain(n.number, r, &old, c.mark, mark)
	} else {
		if stored {
			err = t.planRemoval(n.number, &old, c.mark)
		}
		t.planNew(n.number, r, mark)
	}
	if err == nil && c.above != Missing {
		err = t.planDoom(n, r)
	}
	if err == nil && r.Kind == Tombstone && (!stored || c.mark != None) {
		err = t.planMarkAll(n, r.Target, Garbage)
	}
	return err
}

// planAgain plans what the record of an object that is stored changes.
func (t *txn) planAgain(c container, r *Record, old *packed, from, to Mark) error {
	if r.Virtual {
		return nil
	}
	t.planMark(c, &old.head, from, to)
	if r.Location != "" && r.Location != old.head.Location {
		moved, err := old.record()
		if err != nil {
			return err
		}
		moved.Location = r.Location
		t.put(recs, t.recKey(c, &r.Address.Object), moved.appendTo)
	}
	return nil
}

func (t *txn) recKey(c container, id *blobstor.ID) []byte {
	return t.done(appendRecKey(t.begin(), c, id))
}

// planNew plans a record and all that refers to it.
func (t *txn) planNew(c container, r *Record, mark Mark) {
	t.put(recs, t.recKey(c, &r.Address.Object), r.appendTo)
	t.eachKey(c, r, func(class byte, key []byte, value func([]byte) []byte) { t.put(class, key, value) })
	t.suspend(c, r)
	if mark != None {
		t.putMark(c, &r.Address.Object, mark)
	}
	t.count(c, countersOf(r, mark))
}

// planRemoval plans that a record goes, and all that refers to it.
func (t *txn) planRemoval(c container, p *packed, mark Mark) error {
	r, err := p.record()
	if err != nil {
		return err
	}
	t.del(recs, t.recKey(c, &r.Address.Object))
	t.eachKey(c, &r, func(class byte, key []byte, _ func([]byte) []byte) { t.del(class, key) })
	t.eachEntry(c, &r, func(key []byte) { t.del(attrs, t.keep(key)) })
	t.pending.unsure = appendRecKey(t.pending.unsure, c, &r.Address.Object)
	if mark != None {
		t.del(marks, t.recKey(c, &r.Address.Object))
	}
	var less Counters
	by := countersOf(&r, mark)
	less.add(&by, -1)
	t.count(c, less)
	return nil
}

// eachKey calls do with every key that a record has besides its own, its mark's and the entries of its attributes, and
// with what appends the value.
func (t *txn) eachKey(c container, r *Record, do func(class byte, key []byte, value func([]byte) []byte)) {
	id := &r.Address.Object
	switch r.Kind {
	case Tombstone:
		do(rels, t.done(append(appendRel(t.begin(), c, relBuries, &r.Target), id[:]...)), nil)
	case Lock:
		do(rels, t.done(append(appendRel(t.begin(), c, relHolds, &r.Target), id[:]...)), nil)
	}
	if !r.Parent.IsZero() {
		do(rels, t.done(append(appendRel(t.begin(), c, relPart, &r.Parent), id[:]...)), func(b []byte) []byte { return append(b, r.Chain...) })
	}
	if r.Chain != "" {
		do(rels, t.done(append(appendChain(t.begin(), c, r.Chain), id[:]...)), func(b []byte) []byte {
			if r.Parent.IsZero() {
				return b
			}
			return append(b, r.Parent[:]...)
		})
	}
	if r.Expires != 0 {
		do(expires, t.done(appendExpiry(t.begin(), r.Expires, c, id)), nil)
	}
}

// eachEntry calls do with every key that a record has in the index of attributes. It is valid until do returns.
func (t *txn) eachEntry(c container, r *Record, do func(key []byte)) {
	id := &r.Address.Object
	for i := range r.Attrs {
		a := &r.Attrs[i]
		text, number := r.indexed(i)
		if text {
			do(append(appendTerminated(appendAttr(t.begin(), c, asText, a.Key), a.Value), id[:]...))
		}
		if !number {
			continue
		}
		if n, ok := parseNumber(a.Value); ok {
			do(append(append(appendAttr(t.begin(), c, asNumber, a.Key), n[:]...), id[:]...))
		}
	}
}
