package blobovnicza

import (
	"cmp"
	"slices"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// entry is the newest record of an address in one file: offset/8, the tombstone bit and the payload's length.
// The zero entry is none, since every file begins with a manifest.
type entry uint64

func makeEntry(k kind, off int64, length uint32) entry {
	e := entry(off/align)<<32 | entry(length)
	if k == kindTombstone {
		e |= tombstoneBit
	}
	return e
}

func (e entry) off() int64      { return int64(e>>32) * align }
func (e entry) length() uint32  { return uint32(e) &^ tombstoneBit }
func (e entry) tombstone() bool { return e&tombstoneBit != 0 }

// in returns the place of e in a file.
func (e entry) in(file uint32) place { return place{file, e.off(), e.length(), e.tombstone()} }

// index finds records by address. Keys are 64 bits of a hash, so an entry only says where to look: whose record
// it is stands in the record. An address whose key another one holds is kept by itself.
type index struct {
	mu      sync.RWMutex // guards what is below; never held across I/O
	filter  bloom        // of the keys: most look-ups are for new blobs, and a look into a large map is slow
	entries map[uint64]entry
	clashes map[blobstor.Address]entry
}

// get returns the entry for an address, or zero. Without an address it is the key's, whosoever that is; there are
// no clashes without one.
func (x *index) get(key uint64, addr *blobstor.Address) entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if !x.filter.has(key) {
		return 0
	}
	if len(x.clashes) > 0 && addr != nil {
		if e, ok := x.clashes[*addr]; ok {
			return e
		}
	}
	return x.entries[key]
}

// put sets the entry for an address. A clash says that the key belongs to another address.
func (x *index) put(key uint64, addr *blobstor.Address, e entry, clash bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !clash {
		if x.entries == nil {
			x.entries = make(map[uint64]entry)
		}
		x.entries[key] = e
		x.admit(key)
		return
	}
	if x.clashes == nil {
		x.clashes = make(map[blobstor.Address]entry)
	}
	x.clashes[*addr] = e
}

// admit adds a key that is in the map to the filter, or makes a larger filter of all of them.
func (x *index) admit(key uint64) {
	if !x.filter.full() {
		x.filter.add(key)
		return
	}
	x.filter = x.filter.grown()
	for key := range x.entries {
		x.filter.add(key)
	}
}

// keyed is an entry with its key.
type keyed struct {
	key   uint64
	entry entry
}

// sorted returns all entries in the order of their keys.
func (x *index) sorted(keyOf func(blobstor.Address) uint64) []keyed {
	x.mu.RLock()
	all := make([]keyed, 0, len(x.entries)+len(x.clashes))
	for key, e := range x.entries {
		all = append(all, keyed{key, e})
	}
	for addr, e := range x.clashes {
		all = append(all, keyed{keyOf(addr), e})
	}
	x.mu.RUnlock()
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	return all
}
