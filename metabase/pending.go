package metabase

import "strings"

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
	return appendText(list, entry[prefix:len(entry)-idSize])
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
	p.log = appendText(p.log, list)
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
