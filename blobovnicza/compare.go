package blobovnicza

import (
	"iter"
	"slices"
)

// compareIndex compares the rows with what the store looks records up in: its index file, or memory. Entries of what
// was written after the snapshot say nothing.
func (a *audit) compareIndex() {
	if r := a.file.recent(); r != nil {
		has := func(e *row) bool { return r.get(e.key, &e.address) != 0 }
		_ = a.compareRows(rowsOf(r.sorted(), nil), has) // there is no error in it
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

// compareTable compares the rows with an index file.
func (a *audit) compareTable(t *table) error {
	if t.number != a.file.number || t.end < a.end {
		a.index.add("index file is for %d bytes of file %d", t.end, t.number)
	}
	has := func(e *row) bool { return t.has(e.key) }
	if err := a.compareRows(t.scan(&a.disk.idx), has); err != nil {
		return err
	}
	if err := a.compareTombstones(t); err != nil {
		return err
	}
	a.trusted = a.index.n == 0 && t.end == a.end && t.rows == uint32(len(a.rows))
	return nil
}

// compareRows compares the rows with those of an index, both of which are sorted, and makes them those that hold. Has
// says of a row whether a look-up comes to it.
func (a *audit) compareRows(index iter.Seq2[row, error], has func(*row) bool) error {
	rows, found := a.rows, []row(nil)
	for e, err := range index {
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
		if !has(&e) {
			a.index.add("no look-up finds the row of %v", e.address)
		} else {
			own = a.compareRow(e, own)
		}
		if own != 0 {
			found = append(found, row{e.key, e.address, own})
		}
	}
	for _, r := range rows {
		a.index.add("no row for %v, which is at %d", r.address, r.entry.off())
	}
	a.rows = append(found, rows...)
	return nil
}

// compareRow compares a row of the index with what the data says of its address, and returns what holds.
func (a *audit) compareRow(e row, own entry) entry {
	switch at := e.entry.off(); {
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
