package metabase

import (
	"bytes"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// txn is a transaction of the database file. Its bucket is opened once and serves all of a commit group.
type txn struct {
	db     *DB
	tx     *bolt.Tx
	full   []byte   // the key that is looked for, with its class
	room   [96]byte // where it usually fits
	many   bool     // look-ups are to be expected, and share a cursor
	lookup *bolt.Cursor
	known  *dictionary // what the last commit left
	behind *backlogs   // what the index of attributes may lack
	epoch  uint64      // of the operation

	// What follows is of write transactions only.
	dict map[blobstor.ID]named // what this transaction changed, published after its commit
	scratch
	names   []named
	entry   []Record             // that is put; the step decides about their marks
	seen    map[blobstor.ID]bool // objects whose mark the step decided about
	pending pendingSet           // objects that are put
	sure    pendingSet           // those of steps that were carried out
	wrote   bool
	err     error // of a change that could not be applied
}

// scratch is memory that a write transaction leaves to the next one.
type scratch struct {
	changes   []change // of the step that is planned
	deltas    []delta
	arena     []byte // of keys and values; the file's library keeps values until commit
	counted   map[container]*Counters
	log       []byte // of what is pending
	entryList []byte // of one object
}

// mostLog is the most memory for the log that is kept: a Rebuild needs far more than others.
const mostLog = 1 << 20

// left returns what the next transaction may use.
func (t *txn) left() scratch {
	s := t.scratch
	clear(s.counted)
	s.changes, s.deltas, s.arena = s.changes[:0], s.deltas[:0], s.arena[:0]
	if s.log = t.pending.log[:0]; cap(s.log) > mostLog {
		s.log = nil
	}
	return s
}

// named is what the dictionary says of a container.
type named struct {
	id blobstor.ID

	number container
	marked bool // for removal, with all that is in it
	gone   bool
	has    Counters // as the commit left them that the transaction sees
	vague  bool     // has does not tell: anything may be there
}

type change struct {
	class      byte
	key, value []byte // a nil value deletes the key
}

type delta struct {
	of container
	Counters
}

// find returns the container's entry in the dictionary. A read transaction may see an older or newer commit than the
// dictionary in memory, whose counters then say nothing about what need not be looked for.
func (t *txn) find(id blobstor.ID) (n named, ok bool) {
	if n, ok = t.dict[id]; ok {
		ok = !n.gone
	} else {
		var at int
		if n, ok, at = t.known.get(id); ok && at != t.seenCommit() {
			n.vague, n.has = true, unknown
		}
	}
	if now := t.counted[n.number]; now != nil {
		n.has = *now
	}
	return n, ok
}

func (t *txn) bucket() *bolt.Bucket { return t.tx.Bucket(0) }

// seenCommit is the number of the last commit that the transaction sees.
func (t *txn) seenCommit() int {
	tx := t.bucket().Tx()
	if tx.Writable() {
		return tx.ID() - 1
	}
	return tx.ID()
}

// classed returns a key as it is in the bucket, until the next call.
func (t *txn) classed(class byte, key []byte) []byte {
	if t.full == nil {
		t.full = t.room[:0]
	}
	t.full = append(append(t.full[:0], class), key...)
	return t.full
}

// get returns an entry, verified; nil if there is none. It is valid as long as the transaction.
func (t *txn) get(class byte, key []byte) ([]byte, error) {
	full := t.classed(class, key)
	v := t.look(full)
	if v == nil {
		return nil, nil
	}
	return unseal(full, v)
}

// look returns an entry as it is.
func (t *txn) look(full []byte) []byte {
	if !t.many {
		return t.bucket().Get(full)
	}
	if t.lookup == nil {
		t.lookup = t.bucket().Cursor()
	}
	k, v := t.lookup.Seek(full)
	if !bytes.Equal(k, full) {
		return nil
	}
	return v
}

// scan yields the entries of a class whose keys begin with a prefix, verified, until yield returns false. It must not
// be used while entries change.
func (t *txn) scan(class byte, prefix []byte, yield func(key, value []byte) (bool, error)) error {
	return t.scanFrom(class, prefix, prefix, yield)
}

// scanFrom likewise, beginning at a key.
func (t *txn) scanFrom(class byte, from, prefix []byte, yield func(key, value []byte) (bool, error)) error {
	c := t.cursor(class, from, prefix)
	for c.next() {
		value, err := unseal(c.full, c.value)
		if err != nil {
			return err
		}
		if more, err := yield(c.key, value); !more || err != nil {
			return err
		}
	}
	return nil
}

// record returns the record of an object, and whether there is one.
func (t *txn) record(c container, addr blobstor.Address) (p packed, stored bool, err error) {
	var buf [recKey]byte
	v, err := t.get(recs, appendRecKey(buf[:0], c, &addr.Object))
	if v == nil || err != nil {
		return p, false, err
	}
	p, err = parseRecord(addr, v)
	return p, true, err
}

// mark returns the mark of an object.
func (t *txn) mark(c container, id blobstor.ID) (Mark, error) {
	var buf [recKey]byte
	v, err := t.get(marks, appendRecKey(buf[:0], c, &id))
	if v == nil || err != nil {
		return None, err
	}
	if len(v) != 1 || Mark(v[0]) >= markKinds {
		return None, corrupt("mark of %v", id)
	}
	return Mark(v[0]), nil
}

// begin returns an empty slice to which a key or value is appended; done ends it.
func (t *txn) begin() []byte {
	if cap(t.arena)-len(t.arena) < 1<<10 {
		t.arena = make([]byte, 0, 64<<10)
	}
	return t.arena[len(t.arena):]
}

func (t *txn) done(b []byte) []byte {
	if cap(t.arena)-len(t.arena) >= len(b) {
		t.arena = t.arena[:len(t.arena)+len(b)]
	}
	return b[:len(b):len(b)]
}

// keep returns a copy that lasts as long as the transaction.
func (t *txn) keep(b []byte) []byte { return t.done(append(t.begin(), b...)) }

// put plans that an entry is written: key, and a value that fill appends.
func (t *txn) put(class byte, key []byte, fill func(b []byte) []byte) {
	b := t.begin()
	if fill != nil {
		b = fill(b)
	}
	t.changes = append(t.changes, change{class, key, t.done(seal(t.classed(class, key), b, 0))})
}

// del plans that an entry is removed.
func (t *txn) del(class byte, key []byte) {
	t.changes = append(t.changes, change{class, key, nil})
}

// count plans that counters change.
func (t *txn) count(c container, by Counters) { t.deltas = append(t.deltas, delta{c, by}) }

// apply carries out what was planned.
func (t *txn) apply() {
	for i := range t.changes {
		t.write(t.classed(t.changes[i].class, t.changes[i].key), t.changes[i].value)
	}
	for i := range t.deltas {
		d := &t.deltas[i]
		n, err := t.counters(d.of)
		if t.err == nil {
			t.err = err
		}
		n.add(&d.Counters, 1)
	}
	for _, n := range t.names {
		if t.dict == nil {
			t.dict = make(map[blobstor.ID]named)
		}
		t.dict[n.id] = n
	}
	t.sure = t.pending
	t.discard()
}

// write writes an entry, or removes it if the value is nil.
func (t *txn) write(full, value []byte) {
	var err error
	if value == nil {
		err = t.bucket().Delete(full)
	} else {
		err = t.bucket().Put(full, value)
	}
	if t.err == nil {
		t.err = err
	}
	t.wrote = true
}

// discard forgets what was planned.
func (t *txn) discard() {
	t.changes, t.deltas, t.names = t.changes[:0], t.deltas[:0], t.names[:0]
	t.pending = t.sure
	t.entry, t.seen = nil, nil
}

// first reports whether the step has not decided about the mark of an object. It does so once: what it planned it does
// not read.
func (t *txn) first(id blobstor.ID) bool {
	for i := range t.entry {
		if t.entry[i].Address.Object == id {
			return false
		}
	}
	if t.seen[id] {
		return false
	}
	if t.seen == nil {
		t.seen = make(map[blobstor.ID]bool)
	}
	t.seen[id] = true
	return true
}
