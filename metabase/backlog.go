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

	// The committer's.
	unsure       map[[recKey]byte]struct{} // objects whose record says better what entries they have
	count, bytes int                       // of entries
	last         uint64                    // of its keys in the log, when it is full
}

// backlogs are what the index lacks.
type backlogs struct {
	now   *backlog
	older *backlog // is written to the index; nil if none is
}

// A backlog is full with so many entries, or so many bytes. If the index cannot be written, records are refused from a
// multiple of that on.
const (
	pendingEntries = 64 << 10
	pendingBytes   = 16 << 20
	pendingMost    = 4
)

func newBacklog() *backlog {
	b := &backlog{unsure: map[[recKey]byte]struct{}{}}
	b.runs.Store(new([][]string))
	return b
}

// isFull reports whether it has so many entries, or what is as much.
func (b *backlog) isFull(entries int) bool {
	return max(b.count, len(b.unsure)) >= entries || b.bytes >= pendingBytes*max(1, entries/pendingEntries)
}

// objectOf returns the number and ID of the object that an entry is of.
func objectOf(entry string) (object [recKey]byte) {
	copy(object[:], entry[:prefix])
	copy(object[prefix:], entry[len(entry)-idSize:])
	return object
}

// isUnsure reports whether an entry is of an object whose record says better.
func (b *backlog) isUnsure(entry string) bool {
	if len(b.unsure) == 0 {
		return false
	}
	_, is := b.unsure[objectOf(entry)]
	return is
}

// add takes what a commit leaves pending, and objects whose entries may be out of date.
func (b *backlogs) add(entries []string, unsure []byte) {
	b.now.add(entries)
	b.now.doubt(unsure)
	if b.older != nil {
		b.older.doubt(unsure)
	}
}

func (b *backlog) doubt(objects []byte) {
	for ; b.count > 0 && len(objects) > 0; objects = objects[recKey:] {
		b.unsure[[recKey]byte(objects)] = struct{}{}
	}
}

// add takes entries. Runs that are not longer than the new one are merged with it, so there are few.
func (b *backlog) add(entries []string) {
	b.count += len(entries)
	for _, e := range entries {
		b.bytes += len(e)
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
	e.add(t.behind.now, from)
	if t.behind.older != nil {
		e.add(t.behind.older, from)
	}
	e.settle()
}

func (e *entries) add(b *backlog, from []byte) {
	for _, run := range *b.runs.Load() {
		at := sort.Search(len(run), func(i int) bool { return run[i] >= string(from) })
		e.runs = append(e.runs, run[at:])
	}
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
