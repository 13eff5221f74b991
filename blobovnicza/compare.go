package blobovnicza

import "slices"

// compareIndex compares the rows with what the store looks records up in: its index file, or memory. Entries of what
// was written after the snapshot say nothing.
func (a *audit) compareIndex() {
	x := a.file.index.Load()
	if x.recent != nil {
		a.compareMemory(x.recent)
		return
	}
	t, err := a.file.leaf.openTable(a.disk)
	if err == nil {
		err = a.compareTable(t)
	}
	if err != nil {
		a.index.add("index file: %v", err)
	}
}

// compareTable compares the rows with an index file, both of which are sorted.
func (a *audit) compareTable(t *table) error {
	if t.number != a.file.number || t.end < a.end {
		a.index.add("index file is for %d bytes of file %d", t.end, t.number)
	}
	rows, found := a.rows, []row(nil)
	for e, err := range t.scan(&a.disk.idx) {
		if err != nil {
			return err
		}
		for len(rows) > 0 && rows[0].compare(&e) < 0 {
			a.index.add("no row for %v, which is at %d", rows[0].address, rows[0].entry.off())
			found, rows = append(found, rows[0]), rows[1:]
		}
		var own entry
		if len(rows) > 0 && rows[0].compare(&e) == 0 {
			own, rows = rows[0].entry, rows[1:]
		}
		if kept := a.compareRow(e, own, t); kept != 0 {
			found = append(found, row{e.key, e.address, kept})
		}
	}
	for _, r := range rows {
		a.index.add("no row for %v, which is at %d", r.address, r.entry.off())
	}
	a.rows = append(found, rows...)
	if err := a.compareTombstones(t); err != nil {
		return err
	}
	a.trusted = a.index.n == 0 && t.end == a.end && t.rows == uint32(len(a.rows))
	return nil
}

// compareRow compares a row of the index with what the data says of its address, and returns what holds.
func (a *audit) compareRow(e row, own entry, t *table) entry {
	switch at := e.entry.off(); {
	case !t.has(e.key):
		a.index.add("filter lacks %v", e.address)
	case e.entry == own, at >= a.end && !a.inHole(at):
	case a.inHole(at) && own.off() < at:
		a.known(e)
		return e.entry
	default:
		a.index.add("row of %v leads to %d, where no newest record of it is", e.address, at)
	}
	return own
}

// known notes the address of a record whose header is damaged.
func (a *audit) known(e row) {
	a.damage = append(a.damage, Damage{
		Offset: e.entry.off(), Length: e.entry.in(0).size(), Address: e.address, Known: true,
		Tombstone: e.entry.tombstone(), key: e.key, length: e.entry.length(),
	})
}

// compareTombstones compares the index's list of tombstones with its rows.
func (a *audit) compareTombstones(t *table) error {
	keys, err := t.tombstoneKeys(&a.disk.idx)
	if err != nil || t.end > a.end { // what is newer is in the list too
		return err
	}
	var want []uint64
	for i := range a.rows {
		if a.rows[i].entry.tombstone() {
			want = append(want, a.rows[i].key)
		}
	}
	if !slices.Equal(keys, want) {
		a.index.add("list of %d tombstones, want %d", len(keys), len(want))
	}
	return nil
}

// compareMemory compares the rows with an index in memory, which knows no addresses.
func (a *audit) compareMemory(r *recent) {
	held := make(map[entry]uint64, len(a.rows))
	for i := range a.rows {
		e := &a.rows[i]
		held[e.entry] = e.key
		if got := r.get(e.key, &e.address); got != e.entry && (got == 0 || got.off() < a.end && !a.inHole(got.off())) {
			a.index.add("no entry for %v, which is at %d", e.address, e.entry.off())
		}
	}
	for _, k := range r.all(a.file.leaf.tree.sortKey) {
		if key, ok := held[k.entry]; k.entry.off() < a.end && (!ok || key != k.key) && !a.inHole(k.entry.off()) {
			a.index.add("entry of key %x leads to %d, where no newest record of it is", k.key, k.entry.off())
		}
	}
}
