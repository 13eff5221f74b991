package metabase

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// indexing is the writing of a full backlog to the index, in parts: one after each commit group, so that nobody waits for
// the whole of it. All of it is the committer's.
type indexing struct {
	b       *backlog // that is written; nil if none is
	entries []string // all of it
	done    int      // of these
	err     error    // why the last part could not be written
	skip    int      // groups to let pass before it is tried again
	failed  int      // times in a row
}

// indexParts is how many commits write a full backlog. Each can use the pages that the one before left, so the list of
// free pages, which every commit writes, stays short.
const indexParts = 16

// mostSkips is how many groups pass at most before a part that could not be written is tried again.
const mostSkips = 64

// index writes the next part of the index if a backlog is full, and more while the next one is full too. It runs behind a
// group that was woken. That it failed is no caller's error: all is still pending. It is tried again.
func (db *DB) index() {
	x := &db.indexing
	if x.skip--; x.skip >= 0 || db.file.Pressed() {
		return
	}
	for more := true; more && (x.b != nil || db.isFull()); more = db.isFull() {
		if x.b == nil {
			db.beginIndexing()
		}
		if x.err = db.writePart(); x.err != nil {
			x.failed++
			x.skip = min(1<<x.failed, mostSkips)
			db.tellFault("index", x.err)
			return
		}
		x.failed, x.skip = 0, 0
	}
}

func (db *DB) isFull() bool { return db.backlog.Load().now.isFull(db.pendingEntries()) }

func (db *DB) pendingEntries() int { return cmp.Or(db.opts.pending, pendingEntries) }

// planRoom refuses a record when far too much is pending because the index cannot be written.
func (t *txn) planRoom() error {
	if err := t.db.indexing.err; err != nil && t.db.backlog.Load().now.isFull(pendingMost*t.db.pendingEntries()) {
		return fmt.Errorf("write the index of attributes: %w", err)
	}
	return nil
}

// beginIndexing lets an empty backlog take what comes from now on.
func (db *DB) beginIndexing() {
	full := db.backlog.Load().now
	full.last = db.logged
	db.indexing = indexing{b: full}
	for _, run := range *full.runs.Load() {
		db.indexing.entries = mergeRuns(run, db.indexing.entries)
	}
	db.backlog.Store(&backlogs{now: newBacklog(), older: full})
}

// writePart writes the next part; behind the last one nobody needs the backlog any more.
func (db *DB) writePart() error {
	x := &db.indexing
	end := min(x.done+max(1, db.pendingEntries()/indexParts), len(x.entries))
	err := db.update("index", func(t *txn) error {
		x.write(t, x.entries[x.done:end], func(entry string) bool { return !x.b.isUnsure(entry) })
		if end < len(x.entries) {
			return nil
		}
		return x.finish(t)
	})
	if err != nil {
		return err
	}
	if x.done = end; end == len(x.entries) {
		*x = indexing{}
		db.backlog.Store(&backlogs{now: db.backlog.Load().now})
	}
	return nil
}

// finish writes the entries of objects of which the backlog is not sure, by their records, and removes its log. Of an
// object whose record cannot be read it writes what the backlog has, so that a Search meets it and says so.
func (x *indexing) finish(t *txn) error {
	unreadable := map[[recKey]byte]struct{}{}
	var late []string
	for object := range x.b.unsure {
		c := containerOf(object[:])
		p, stored, err := t.record(c, blobstor.Address{Object: lastID(object[:])})
		var r Record
		if stored && err == nil {
			r, err = p.record()
		}
		switch {
		case errors.Is(err, blobstor.ErrCorrupt):
			unreadable[object] = struct{}{}
		case err != nil:
			return err
		case stored:
			t.eachEntry(c, &r, func(key []byte) { late = append(late, string(key)) })
		}
	}
	x.write(t, late, func(string) bool { return true })
	if len(unreadable) > 0 {
		x.write(t, x.entries, func(entry string) bool { _, is := unreadable[objectOf(entry)]; return is })
	}
	x.removeLog(t)
	return nil
}

// removeLog removes the log of the backlog; its keys count downwards. What is damaged stays, or nobody would know that
// entries are missing.
func (x *indexing) removeLog(t *txn) {
	for c := t.cursor(pending, appendUint64(nil, ^x.b.last), nil); c.next(); {
		if _, err := unseal(c.full, c.value); err == nil {
			t.del(pending, t.keep(c.key))
		}
	}
	t.apply()
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
