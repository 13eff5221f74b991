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
	if len(object) != recKey {
		return nil, corrupt("pending object %x", object)
	}
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

// eachPending calls do with every key of the log, and with each object that it has and its list. A key that is damaged is
// passed over; that there is one is the error in the end.
func (t *txn) eachPending(do func(key, object, list []byte)) (damage error) {
	for c := t.cursor(pending, nil, nil); c.next(); {
		value, err := unseal(c.full, c.value)
		for d := (decoder{b: value}); len(d.b) > 0 && err == nil; {
			object, list := d.take(uint64(recKey)), d.text()
			if _, err = entriesOf(object, list); err == nil {
				do(c.key, object, list)
			}
		}
		if err != nil || len(c.key) != 8 {
			damage = corrupt("log of pending objects, %x", c.key)
		}
	}
	return damage
}

// pendingObjects returns the objects that the log has, also if some of it is damaged.
func (t *txn) pendingObjects() (all map[string]bool, damage error) {
	all = make(map[string]bool)
	damage = t.eachPending(func(_, object, _ []byte) { all[string(object)] = true })
	return all, damage
}

// loadBacklog makes the backlog from the log. If some of that is damaged, nobody knows what the index lacks, and a Search
// that needs it says so.
func (db *DB) loadBacklog(t *txn) {
	b := newBacklog()
	var all []string
	var unsure []byte // they may have gone, or been replaced
	db.lost = t.eachPending(func(key, object, list []byte) {
		entries, _ := entriesOf(object, list)
		all, unsure, db.logged = append(all, entries...), append(unsure, object...), max(db.logged, ^uint64Of(key))
	})
	b.add(all)
	b.doubt(unsure)
	db.backlog.Store(&backlogs{now: b})
}
