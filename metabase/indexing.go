package metabase

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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
	list := make([]byte, 0, 1<<10)
	t.eachEntry(c, r, func(key []byte) { list = appendToList(list, key) })
	if len(list) == 0 {
		return
	}
	p := &t.pending
	at := len(p.log)
	p.log = appendRecKey(p.log, c, &r.Address.Object)
	entries, _ := entriesOf(p.log[at:], list)
	p.log = append(binary.AppendUvarint(p.log, uint64(len(list))), list...)
	p.entries = append(p.entries, entries...)
}

// planPending plans that the log has what is pending.
func (t *txn) planPending() {
	if len(t.pending.log) == 0 {
		return
	}
	t.db.logged++
	t.put(pending, t.done(appendUint64(t.begin(), t.db.logged)), func(b []byte) []byte { return append(b, t.pending.log...) })
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
	var all []string
	err := t.eachPending(func(key, object, list []byte) error {
		entries, err := entriesOf(object, list)
		all, db.logged = append(all, entries...), uint64Of(key)
		return err
	})
	if err != nil {
		return err
	}
	b := db.newBacklog()
	b.add(all)
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
	var todo indexing
	if err := db.file.View(func(tx *bolt.Tx) error { return todo.collect(&txn{db: db, tx: tx, known: &db.dict}) }); err != nil {
		return err
	}
	for done := false; !done; {
		err := db.update("index", func(t *txn) { done = todo.step(t) })
		if err != nil {
			return err
		}
	}
	db.backlog.Store(db.newBacklog())
	return nil
}

// indexing is the writing of the index.
type indexing struct {
	keys    [][]byte // of the log
	entries [][]byte // to write, in order
}

// collect finds what is pending. An object that is gone is not any more. Of one whose record cannot be read the log tells
// the entries, so that a Search meets it and says so.
func (x *indexing) collect(t *txn) error {
	err := t.eachPending(func(key, object, list []byte) error {
		if n := len(x.keys); n == 0 || !bytes.Equal(x.keys[n-1], key) {
			x.keys = append(x.keys, t.keep(key))
		}
		c := containerOf(object)
		p, stored, err := t.record(c, blobstor.Address{Object: lastID(object)})
		if stored && err == nil {
			var r Record
			if r, err = p.record(); err == nil {
				t.eachEntry(c, &r, func(key []byte) { x.entries = append(x.entries, t.keep(key)) })
			}
		}
		if errors.Is(err, blobstor.ErrCorrupt) {
			var entries []string
			entries, err = entriesOf(object, list)
			for _, e := range entries {
				x.entries = append(x.entries, []byte(e))
			}
		}
		return err
	})
	slices.SortFunc(x.entries, bytes.Compare)
	return err
}

// indexSteps is how many commits write a full backlog to the index. Each can use the pages that the one before left, so
// the list of free pages, which every commit writes, stays short.
const indexSteps = 16

// step plans the next part, and reports whether it is the last. What is in the index is written again.
func (x *indexing) step(t *txn) (last bool) {
	n := min(max(1, t.db.pendingEntries()/indexSteps), len(x.entries))
	for _, key := range x.entries[:n] {
		t.put(attrs, key, nil)
	}
	if x.entries = x.entries[n:]; len(x.entries) == 0 {
		for _, key := range x.keys {
			t.del(pending, key)
		}
	}
	t.apply()
	return len(x.entries) == 0
}
