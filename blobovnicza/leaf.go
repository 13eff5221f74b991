package blobovnicza

import (
	"errors"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
	"github.com/granary-store/granary/internal/groupcommit"
)

// leaf is a directory of blobovniczas. The last of its files is active, the others are full and never change.
type leaf struct {
	tree    *Tree
	id      uint16
	dir     *durable.Dir
	commits *groupcommit.Committer[*request]

	files      atomic.Pointer[[]*file] // by number; replaced whole by the committer
	lost       []lostSpan              // damage whose addresses are unknown; fixed at Open
	missing    []listed                // listed files that are not there; every manifest goes on listing them
	tombstones atomic.Int64            // records ever indexed: while there are none, a hint needs no look-up

	writer // the committer's own
}

// lostSpan is a damaged part of a file: the addresses of the records in it are unknown.
type lostSpan struct {
	file uint32
	span
}

// active returns the file that takes writes.
func (l *leaf) active() *file {
	files := *l.files.Load()
	return files[len(files)-1]
}

// byNumber returns a file of the leaf, or nil. Numbers have few gaps, so the first guess is mostly right.
func byNumber(files []*file, number uint32) *file {
	if len(files) == 0 || number < files[0].number {
		return nil
	}
	for i := min(int(number-files[0].number), len(files)-1); i >= 0 && files[i].number >= number; i-- {
		if files[i].number == number {
			return files[i]
		}
	}
	return nil
}

// hit is what a look-up found out.
type hit struct {
	newest place // the newest record of the address, whole or damaged; zero if there is none
	stored place // the verified copy, if the look-up found one

	active uint32 // number of the active file at that time
	entry  entry  // what its index said
	clash  bool   // the entry is another address's
}

// lookup finds the newest record of r.addr that can be read as r wants it, from the newest file back. It returns
// ErrNotFound only if every place could be looked at.
func (l *leaf) lookup(key uint64, r *reading) (h hit, err error) {
	files := *l.files.Load()
	h.active = files[len(files)-1].number
	var damage error
	for i := len(files) - 1; i >= 0; i-- {
		f := files[i]
		e := f.index.get(key, &r.addr)
		if i == len(files)-1 {
			h.entry = e
		}
		if e == 0 {
			continue
		}
		err := f.follow(e, r)
		if errors.Is(err, errStranger) {
			h.clash = h.clash || i == len(files)-1
			continue
		}
		if h.newest.file == 0 {
			h.newest = e.in(f.number)
		}
		if err != nil {
			damage = firstOf(damage, err)
			continue
		}
		if e.tombstone() {
			return h, firstOf(damage, blobstor.ErrNotFound)
		}
		h.stored = r.place
		return h, nil
	}
	if damage == nil && len(l.lost) > 0 {
		damage = blobstor.ErrCorrupt
	}
	return h, firstOf(damage, blobstor.ErrNotFound)
}

// follow reads what an entry of f's index points to.
func (f *file) follow(e entry, r *reading) error {
	if e.tombstone() {
		t := reading{addr: r.addr, mode: modeHeader}
		return indexed(f.read(e.off(), 0, &t))
	}
	return indexed(f.read(e.off(), e.length(), r))
}

// indexed turns "no record" into damage: the index knows that one was written there.
func indexed(err error) error {
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
	files, dst := *l.files.Load(), r.dst
	f := byNumber(files, p.file)
	if f == nil || f.read(p.off, p.length, r) != nil || r.hdr.kind != kindPut {
		return false
	}
	if l.tombstones.Load() == 0 {
		return true
	}
	key := l.tree.sortKey(r.addr)
	for i := len(files) - 1; i >= 0 && files[i].number >= p.file; i-- {
		if files[i].index.get(key, &r.addr).tombstone() {
			r.dst = dst // what was read does not count
			return false
		}
	}
	return true
}

// apply makes a record at off visible: the index points to it, and the counters follow.
func (l *leaf) apply(files []*file, f *file, key uint64, h *header, off int64, clash bool) {
	if old := byNumber(files, h.replaced.file); old != nil {
		old.dead.Add(h.replaced.size())
		if e := old.index.get(key, &h.address); e != 0 && e.in(old.number) == h.replaced {
			old.count(h.replaced, -1)
		}
	}
	e := makeEntry(h.kind, off, h.length)
	f.index.put(key, &h.address, e, clash)
	f.count(e.in(f.number), 1)
	if h.kind == kindTombstone {
		l.tombstones.Add(1)
	}
}
