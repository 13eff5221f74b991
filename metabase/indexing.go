package metabase

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// index writes what is pending, if it is enough. It is the committer's, behind a group that was woken. That it failed is
// no caller's error: all is still pending. It is tried again.
func (db *DB) index() {
	b := db.backlog.Load()
	if !b.isFull() || db.file.Pressed() {
		return
	}
	if b.err = db.indexPending(); b.err != nil {
		b.next = min(2*b.next, pendingMost*db.pendingEntries())
		db.tellFault("index", b.err)
	}
}

func (db *DB) pendingEntries() int { return cmp.Or(db.opts.pending, pendingEntries) }

// planRoom refuses a record when far too much is pending because the index cannot be written.
func (t *txn) planRoom() error {
	b := t.db.backlog.Load()
	if b.err != nil && b.count >= pendingMost*t.db.pendingEntries() {
		return fmt.Errorf("write the index of attributes: %w", b.err)
	}
	return nil
}

func (db *DB) indexPending() error {
	todo := indexing{b: db.backlog.Load(), each: max(1, db.pendingEntries()/indexSteps)}
	err := db.file.View(func(tx *bolt.Tx) error { return todo.collect(&txn{db: db, tx: tx, known: &db.dict}) })
	for done := false; !done && err == nil; {
		err = db.update("index", func(t *txn) { done = todo.step(t) })
	}
	if err == nil {
		db.backlog.Store(db.newBacklog())
	}
	return err
}

// indexing is the writing of a backlog to the index.
type indexing struct {
	b       *backlog
	entries []string // that are left
	late    []string // those of objects of which the backlog is not sure, by their records
	each    int      // how many a commit writes
}

// collect finds what to write.
func (x *indexing) collect(t *txn) error {
	for object := range x.b.unsure {
		c := containerOf(object[:])
		p, stored, err := t.record(c, blobstor.Address{Object: lastID(object[:])})
		var r Record
		if stored && err == nil {
			r, err = p.record()
		}
		switch {
		case errors.Is(err, blobstor.ErrCorrupt):
			delete(x.b.unsure, object) // a Search shall meet it and say so
		case err != nil:
			return err
		case stored:
			t.eachEntry(c, &r, func(key []byte) { x.late = append(x.late, string(key)) })
		}
	}
	runs := *x.b.runs.Load()
	for i := len(runs) - 1; i >= 0; i-- {
		x.entries = mergeRuns(runs[i], x.entries)
	}
	return nil
}

// indexSteps is how many commits write a full backlog to the index. Each can use the pages that the one before left, so
// the list of free pages, which every commit writes, stays short.
const indexSteps = 16

// step writes the next part, and with the last one removes the log. It reports whether this is the last.
func (x *indexing) step(t *txn) (last bool) {
	n := min(x.each, len(x.entries))
	x.write(t, x.entries[:n], func(entry string) bool { return !x.b.isUnsure(entry) })
	if x.entries = x.entries[n:]; len(x.entries) > 0 {
		return false
	}
	x.write(t, x.late, func(string) bool { return true })
	for c := t.cursor(pending, nil, nil); c.next(); {
		t.del(pending, t.keep(c.key))
	}
	t.apply()
	return true
}

// write writes the entries that count, but for those of containers that were dropped. They may be there.
func (x *indexing) write(t *txn, entries []string, counts func(string) bool) {
	var of string // the container
	known := false
	for _, entry := range entries {
		if entry[:prefix] != of {
			of = entry[:prefix]
			known = t.db.dict.knows(containerOf([]byte(of)))
		}
		if known && counts(entry) {
			t.full = append(append(t.full[:0], attrs), entry...)
			t.write(t.full, t.done(seal(t.full, t.begin(), 0)))
		}
	}
}
