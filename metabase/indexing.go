package metabase

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// A record is put without its entries in the index of attributes, each of which would lie on a page of its own: it is
// pending. The entries of many objects are written together, in order, so that they share pages. Until then a log has
// them, one key for each commit, from which a database that opens makes its backlog.

// pendingSet is what a transaction leaves pending.
type pendingSet struct {
	log     []byte   // of each object: number, ID, and the length and bytes of its list
	entries []string // of attributes
	unsure  []byte   // numbers and IDs of objects whose attributes go
}

// appendToList appends an entry to the list of an object: without the number and ID, which are those of the object.
func appendToList(list, entry []byte) []byte {
	middle := entry[prefix : len(entry)-idSize]
	return append(binary.AppendUvarint(list, uint64(len(middle))), middle...)
}

// entriesOf returns the entries of an object by its list, as parts of one string.
func entriesOf(object, list []byte) (entries []string, err error) {
	var n int
	for d := (decoder{b: list}); len(d.b) > 0; n++ {
		if d.text(); d.bad {
			return nil, corrupt("pending entries of %x", object)
		}
	}
	var text strings.Builder
	text.Grow(len(list) + n*recKey)
	entries = make([]string, 0, n)
	for d := (decoder{b: list}); len(d.b) > 0; {
		from := text.Len()
		text.Write(object[:prefix])
		text.Write(d.text())
		text.Write(object[prefix:])
		entries = append(entries, text.String()[from:])
	}
	return entries, nil
}

// suspend plans that a record is put without the entries of its attributes.
func (t *txn) suspend(c container, r *Record) {
	list := t.entryList[:0]
	t.eachEntry(c, r, func(key []byte) { list = appendToList(list, key) })
	if t.entryList = list; len(list) == 0 {
		return
	}
	p := &t.pending
	at := len(p.log)
	p.log = appendRecKey(p.log, c, &r.Address.Object)
	entries, _ := entriesOf(p.log[at:], list)
	p.log = append(binary.AppendUvarint(p.log, uint64(len(list))), list...)
	if p.entries == nil {
		p.entries = entries
	} else {
		p.entries = append(p.entries, entries...)
	}
}

// planPending plans that the log has what is pending. Its keys count downwards, so the last one lies on the page of the
// counters, which is written anyway.
func (t *txn) planPending() {
	if len(t.pending.log) == 0 {
		return
	}
	t.db.logged++
	t.put(pending, t.done(appendUint64(t.begin(), ^t.db.logged)), func(b []byte) []byte { return append(b, t.pending.log...) })
}

// eachPending calls do with every key of the log, and with each object that it has and its list.
func (t *txn) eachPending(do func(key, object, list []byte) error) error {
	return t.scan(pending, nil, func(key, value []byte) (bool, error) {
		for d := (decoder{b: value}); len(d.b) > 0; {
			object, list := d.take(uint64(recKey)), d.text()
			if d.bad || len(key) != 8 {
				return false, corrupt("pending objects %x", key)
			}
			if err := do(key, object, list); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// pendingObjects returns the objects that the log has.
func (t *txn) pendingObjects() (map[string]bool, error) {
	all := make(map[string]bool)
	err := t.eachPending(func(_, object, _ []byte) error {
		all[string(object)] = true
		return nil
	})
	return all, err
}

// loadBacklog makes the backlog from the log.
func (db *DB) loadBacklog(t *txn) error {
	b := db.newBacklog()
	var all []string
	var unsure []byte // they may have gone, or been replaced
	err := t.eachPending(func(key, object, list []byte) error {
		entries, err := entriesOf(object, list)
		all, unsure, db.logged = append(all, entries...), append(unsure, object...), max(db.logged, ^uint64Of(key))
		return err
	})
	if err != nil {
		return err
	}
	b.add(all, unsure)
	db.backlog.Store(b)
	return nil
}

// index writes what is pending, if it is enough. It is the committer's, behind a group that was woken. That it failed is
// no caller's error: all is still pending. It is tried again.
func (db *DB) index() {
	b := db.backlog.Load()
	if b.count < b.next && b.bytes < pendingBytes || db.file.Pressed() {
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
