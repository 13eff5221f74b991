package blobovnicza

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// hit is what a look-up found out.
type hit struct {
	newest place // the newest record of the address, whole or damaged; zero if there is none
	stored place // the verified copy, if the look-up found one

	active uint32 // number of the active file at that time
	entry  entry  // what its index said
}

// lookup finds the newest record of r.addr that can be read as r wants it, from the newest file back. It returns
// ErrNotFound only if every place could be looked at.
func (l *leaf) lookup(key uint64, r *reading) (hit, error) {
	for {
		h, err := l.lookupIn(l.version.Load(), key, r)
		if err == nil || err == blobstor.ErrNotFound || !errors.Is(err, errDropped) { //nolint:errorlint // the common ones first
			return h, err
		}
	}
}

func (l *leaf) lookupIn(v *version, key uint64, r *reading) (h hit, err error) {
	last := len(v.files) - 1
	h.active = v.files[last].number
	var damage error
	for i := v.below(last, key); i >= 0; i = v.below(i-1, key) {
		f := v.files[i]
		e, err := f.find(key, r)
		if i == last {
			h.entry = e
		}
		if e == 0 {
			if err != nil { // what it may hold, a tombstone perhaps, decides about all older files
				return h, err
			}
			continue
		}
		if errors.Is(err, errDropped) {
			return h, err
		}
		if h.newest.file == 0 {
			h.newest = e.in(f.number)
		}
		if err != nil {
			damage = firstOf(damage, err)
			if e.tombstone() { // an older record was deleted by it
				return h, damage
			}
			continue
		}
		if e.tombstone() {
			return h, firstOf(damage, blobstor.ErrNotFound)
		}
		h.stored = r.place
		return h, nil
	}
	if damage == nil && l.hasLost() {
		damage = blobstor.ErrCorrupt
	}
	return h, firstOf(damage, blobstor.ErrNotFound)
}

// follow reads what an entry of f's index points to.
func (f *file) follow(e entry, r *reading) error {
	at, kind := r, kindPut
	if e.tombstone() {
		at, kind = &reading{addr: r.addr, mode: modeHeader}, kindTombstone
	}
	err := f.read(e.off(), e.length(), at)
	if err == nil && at.hdr.kind != kind {
		err = errNoRecord
	}
	return indexedRecord(err)
}

// indexedRecord turns "no record" into damage: the index knows that one was written there.
func indexedRecord(err error) error {
	if errors.Is(err, errNoRecord) {
		return blobstor.ErrCorrupt
	}
	return err
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// byHint serves r from a place that a caller remembered, and reports whether it could: the record must verify,
// and no tombstone may be newer.
func (l *leaf) byHint(p place, r *reading) bool {
	if !l.open.Load() {
		return false
	}
	v, dst := l.version.Load(), r.dst
	f := byNumber(v.files, p.file)
	if f == nil || f.read(p.off, p.length, r) != nil || r.hdr.kind != kindPut {
		return false
	}
	if l.tombs.empty() {
		return true
	}
	key := l.tree.sortKey(r.addr)
	if !l.tombs.has(key) {
		return true
	}
	last := len(v.files) - 1
	for i := v.below(last, key); i >= 0 && v.files[i].number >= p.file; i = v.below(i-1, key) {
		if e, err := v.files[i].get(key, &r.addr); err != nil || e.tombstone() {
			r.dst = dst // what was read does not count
			return false
		}
	}
	return true
}
