package metabase

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// Check verifies the whole database: the pages of the file, every checksum, that every record has the keys it should
// have and no key is without its record, and that counters equal a recount. It returns all that it found, each error
// matching ErrCorrupt, and stops when ctx ends. It holds a read transaction for each container, so the file may grow
// when it runs beside writes.
func (db *DB) Check(ctx context.Context) error {
	if err := db.enter(); err != nil {
		return blobstor.Wrap("check", blobstor.Address{}, "", err)
	}
	err := db.file.Check(ctx)
	db.leave()
	ids, listed := db.Containers(ctx)
	errs := []error{err, listed, db.checkStrays(ctx)}
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, db.checkContainer(ctx, id))
	}
	return blobstor.Wrap("check", blobstor.Address{}, "", errors.Join(append(errs, ctx.Err())...))
}

// audit is what Check knows of a container.
type audit struct {
	t       *txn
	n       named
	id      blobstor.ID
	recount Counters
	keys    map[byte]int    // how many keys of each class the records account for
	pending map[string]bool // the objects that are pending
	errs    []error
}

// mostErrors is how many errors are kept of a container; damage comes in thousands.
const mostErrors = 100

func (a *audit) bad(format string, args ...any) {
	if len(a.errs) < mostErrors {
		a.errs = append(a.errs, corrupt("container %v: %s", a.id, fmt.Sprintf(format, args...)))
	}
}

func (db *DB) checkContainer(ctx context.Context, id blobstor.ID) error {
	var a audit
	err := db.view(ctx, "check", blobstor.Address{Container: id}, func(t *txn) error {
		n, ok := t.find(id)
		if !ok {
			return nil // it was dropped meanwhile
		}
		a = audit{t: t, n: n, id: id, keys: map[byte]int{}}
		var damage error
		if a.pending, damage = t.pendingObjects(); damage != nil {
			a.bad("%v", damage)
		}
		return a.run(ctx)
	})
	return errors.Join(append(a.errs, err)...)
}

// run verifies a container. What ctx cut short tells nothing, so it is compared with nothing.
func (a *audit) run(ctx context.Context) error {
	all := a.n.number.append(nil)
	a.each(ctx, recs, all, func(key, value []byte) error {
		addr := blobstor.Address{Container: a.id, Object: lastID(key)}
		p, err := parseRecord(addr, value)
		if err == nil && len(key) != recKey {
			err = corrupt("record key %x", key)
		}
		if err == nil {
			err = a.record(&p)
		}
		return err
	})
	for _, class := range []byte{attrs, rels, marks} {
		n := 0
		a.each(ctx, class, all, func([]byte, []byte) error { n++; return nil })
		if n != a.keys[class] && ctx.Err() == nil {
			a.bad("%d keys of %s, the records have %d", n, classNames[class], a.keys[class])
		}
	}
	got, err := a.t.readCounters(a.n.number)
	if err == nil && got != a.recount && ctx.Err() == nil {
		a.bad("counters %+v, a recount gives %+v", got, a.recount)
	}
	return err
}

// each calls do with every entry that begins with a prefix; what is damaged is reported and passed over.
func (a *audit) each(ctx context.Context, class byte, prefix []byte, do func(key, value []byte) error) {
	c := a.t.cursor(class, prefix, prefix)
	for ctx.Err() == nil && c.next() {
		value, err := unseal(c.full, c.value)
		if err == nil {
			err = do(c.key, value)
		}
		if err != nil {
			a.bad("%s %x: %v", classNames[class], c.key, err)
		}
	}
}

// record verifies that all keys of a record are there.
func (a *audit) record(p *packed) error {
	r, err := p.record()
	if err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	a.t.eachKey(a.n.number, &r, func(class byte, key []byte, value func([]byte) []byte) {
		a.keys[class]++
		var want []byte
		if value != nil {
			want = value(nil)
		}
		got, err := a.t.get(class, key)
		if err != nil || got == nil || !bytes.Equal(got, want) {
			a.bad("%v lacks %s %x: %v", r.Address, classNames[class], key, err)
		}
	})
	a.entries(&r)
	m, err := a.t.mark(a.n.number, r.Address.Object)
	if err != nil {
		return err
	}
	if m != None {
		a.keys[marks]++
	}
	by := countersOf(&r, m)
	a.recount.add(&by, 1)
	return nil
}

// entries verifies that the attributes of a record have their entries, or that the record says that they may be missing.
func (a *audit) entries(r *Record) {
	waits := a.pending[string(appendRecKey(nil, a.n.number, &r.Address.Object))]
	a.t.eachEntry(a.n.number, r, func(key []byte) {
		got, err := a.t.get(attrs, key)
		if got != nil || !waits {
			a.keys[attrs]++
		}
		if err != nil || got == nil && !waits || len(got) > 0 {
			a.bad("%v lacks %s %x: %v", r.Address, classNames[attrs], key, err)
		}
	})
}

// checkStrays looks for keys of containers that are not known, and for entries of expiry without their record.
func (db *DB) checkStrays(ctx context.Context) error {
	var a audit
	err := db.view(ctx, "check", blobstor.Address{}, func(t *txn) error {
		names, err := t.scanNames()
		if err != nil {
			return err
		}
		a.t = t
		a.each(ctx, settings, keyDropped, func(key, _ []byte) error {
			if len(key) == len(keyDropped)+prefix {
				names[containerOf(key[len(keyDropped):])] = named{gone: true}
			}
			return nil
		})
		if err := ctx.Err(); err != nil {
			return err // names may lack some
		}
		for _, class := range []byte{recs, attrs, rels, marks, counts} {
			a.strays(class, names)
		}
		a.each(ctx, expires, nil, func(key, _ []byte) error { return a.expiry(key, names) })
		return nil
	})
	return errors.Join(append(a.errs, err)...)
}

// strays looks for containers that are not known, from one to the next.
func (a *audit) strays(class byte, names map[container]named) {
	c := a.t.cursor(class, nil, nil)
	for more := c.next(); more; {
		if len(c.key) < prefix {
			a.bad("%s %x", classNames[class], c.key)
			more = c.next()
			continue
		}
		n := containerOf(c.key)
		if _, ok := names[n]; !ok {
			a.bad("%s of container %d, which nobody knows", classNames[class], n)
		}
		next := following(n.append([]byte{class}))
		if more = c.seek(next); more && bytes.Compare(c.full, next) < 0 {
			a.bad("%s %x is out of order", classNames[class], c.key)
			return
		}
	}
}

func (a *audit) expiry(key []byte, names map[container]named) error {
	if len(key) != 8+recKey {
		return corrupt("key of %d bytes", len(key))
	}
	n, ok := names[containerOf(key[8:])]
	if !ok || n.gone {
		return nil // of a container that was dropped
	}
	p, stored, err := a.t.record(n.number, blobstor.Address{Container: n.id, Object: lastID(key)})
	if err == nil && (!stored || p.head.Expires != uint64Of(key)) {
		err = corrupt("its object does not expire then")
	}
	return err
}

// Compact copies the database to a fresh file, which takes the place of the old one when it is durable. Reads go on;
// writes wait. The disk needs room for both.
func (db *DB) Compact(ctx context.Context) error {
	err := db.enterWrite()
	if err == nil {
		err = db.file.Compact(ctx)
		db.leave()
	}
	if err == nil {
		// Commits are counted anew, and until the next one the dictionary would not say what to look for.
		_ = db.doOne(ctx, 0, func(*txn) error { return nil })
	}
	return blobstor.Wrap("compact", blobstor.Address{}, "", err)
}

// Reset replaces the database by an empty one. It waits for all calls inside, and others wait for it. When it returns
// nil, that is durable. After an error, or a crash, all is as it was, unless it is not known which of the two is on the
// disk: then every call returns ErrFailed until the database is closed and opened.
func (db *DB) Reset(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	err := ctx.Err()
	switch {
	case db.closed:
		err = blobstor.ErrClosed
	case db.readOnly:
		err = blobstor.ErrReadOnly
	}
	if err == nil {
		err = db.file.Replace(ctx, func(_ context.Context, _ *bolt.Tx, to func(func(*bolt.Tx) error) error) error {
			return to(db.initialize)
		})
	}
	if err == nil {
		db.dict.clear()
		db.backlog.Store(&backlogs{now: newBacklog()})
		db.indexing, db.lost = indexing{}, nil
		db.at = place{}
	}
	return blobstor.Wrap("reset", blobstor.Address{}, "", err)
}
