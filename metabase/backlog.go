package metabase

import (
	"slices"
	"sort"
	"strings"
	"sync/atomic"
)

// backlog holds the entries that pending objects may lack in the index of attributes, so that a Search finds them. It
// may hold more: entries whose commit failed, whose object is gone, or that are in the index by now; the record in the
// transaction of the search decides. One goroutine adds, that of the commit, before a transaction can see the object.
//
// The idea is that of the pending list of PostgreSQL's GIN indexes.
type backlog struct {
	runs atomic.Pointer[[][]string] // each in order and longer than the next one; a reader keeps the slices it has

	// Of the commits since the index was written; the committer's.
	unsure       map[[recKey]byte]struct{} // objects whose record says better what entries they have
	count, bytes int                       // of entries
	next         int                       // how many it takes to write it
	err          error                     // why that failed
}

// The index is written when so many entries are in the backlog, or so many bytes. If it cannot be written, records are
// refused from a multiple of that on.
const (
	pendingEntries = 64 << 10
	pendingBytes   = 16 << 20
	pendingMost    = 4
)

func (db *DB) newBacklog() *backlog {
	b := &backlog{next: db.pendingEntries(), unsure: map[[recKey]byte]struct{}{}}
	b.runs.Store(new([][]string))
	return b
}

// isFull reports whether it is time to write the index.
func (b *backlog) isFull() bool {
	return max(b.count, len(b.unsure)) >= b.next || b.bytes >= pendingBytes
}

// isUnsure reports whether an entry is of an object whose record says better.
func (b *backlog) isUnsure(entry string) bool {
	if len(b.unsure) == 0 {
		return false
	}
	var object [recKey]byte
	copy(object[:], entry[:prefix])
	copy(object[prefix:], entry[len(entry)-idSize:])
	_, is := b.unsure[object]
	return is
}

// add takes entries, and objects whose entries may be out of date. Runs that are not longer than the new one are merged
// with it, so there are few.
func (b *backlog) add(entries []string, unsure []byte) {
	b.count += len(entries)
	for _, e := range entries {
		b.bytes += len(e)
	}
	for ; b.count > 0 && len(unsure) > 0; unsure = unsure[recKey:] {
		b.unsure[[recKey]byte(unsure)] = struct{}{}
	}
	if len(entries) == 0 {
		return
	}
	slices.Sort(entries)
	runs := *b.runs.Load()
	n := len(runs)
	for ; n > 0 && len(runs[n-1]) <= len(entries); n-- {
		entries = mergeRuns(runs[n-1], entries)
	}
	runs = append(slices.Clone(runs[:n]), entries)
	b.runs.Store(&runs)
}

func mergeRuns(a, b []string) []string {
	all := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] <= b[0] {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// entries goes through the index of attributes and a backlog as if they were one.
type entries struct {
	file   cursor
	moved  bool // the cursor is at what comes next, or at the end
	more   bool // at what comes next
	runs   [][]string
	least  int // of the runs, the one whose first is the least; -1 if all are at their end
	prefix []byte
	buf    []byte

	runsRoom [8][]string // where they usually fit
	bufRoom  [keyRoom]byte
}

// begin goes to the first of those whose keys begin with a prefix, beginning at a key.
func (e *entries) begin(t *txn, from, prefix []byte) {
	e.file, e.moved, e.prefix = t.cursor(attrs, from, prefix), false, prefix
	e.runs, e.buf = e.runsRoom[:0], e.bufRoom[:0]
	for _, run := range *t.behind.runs.Load() {
		at := sort.Search(len(run), func(i int) bool { return run[i] >= string(from) })
		e.runs = append(e.runs, run[at:])
	}
	e.settle()
}

// settle finds the run that is next.
func (e *entries) settle() {
	e.least = -1
	for i, run := range e.runs {
		if len(run) > 0 && (e.least < 0 || run[0] < e.runs[e.least][0]) {
			e.least = i
		}
	}
	if e.least < 0 {
		return
	}
	if first, n := e.runs[e.least][0], len(e.prefix); len(first) < n || first[:n] != string(e.prefix) {
		e.least = -1 // what follows has another prefix too
	}
}

// next returns the next key, and whether only the backlog has it; nil is the end. The key is valid until the next call.
func (e *entries) next() (key []byte, pending bool, err error) {
	if !e.moved {
		e.more, e.moved = e.file.next(), true
	}
	order := -1 // the file's comes before the backlog's
	switch {
	case e.least < 0 && !e.more:
		return nil, false, nil
	case !e.more:
		order = 1
	case e.least >= 0:
		order = strings.Compare(string(e.file.key), e.runs[e.least][0])
	}
	if order >= 0 {
		e.buf = append(e.buf[:0], e.runs[e.least][0]...)
		e.pass()
	}
	if order > 0 {
		return e.buf, true, nil
	}
	e.moved = false
	_, err = unseal(e.file.full, e.file.value)
	return e.file.key, false, err
}

// pass leaves an entry of the backlog behind, in all runs that have it.
func (e *entries) pass() {
	for e.least >= 0 && e.runs[e.least][0] == string(e.buf) {
		e.runs[e.least] = e.runs[e.least][1:]
		e.settle()
	}
}
