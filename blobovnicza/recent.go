package blobovnicza

import (
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// recent finds records by address. Keys are 64 bits of a hash, so an entry only says where to look: whose record
// it is stands in the record. An address whose key another one holds is kept by itself.
type recent struct {
	mu      sync.RWMutex // guards what is below; never held across I/O
	filter  bloom        // of the keys: most look-ups are for new blobs, and a look into a large map is slow
	entries map[uint64]entry
	clashes map[blobstor.Address]entry
}

// get returns the entry for an address, or zero. Without an address it is the key's, whosoever that is; there are
// no clashes without one.
func (x *recent) get(key uint64, addr *blobstor.Address) entry {
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
func (x *recent) put(key uint64, addr *blobstor.Address, e entry, clash bool) {
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
func (x *recent) admit(key uint64) {
	if !x.filter.full() {
		x.filter.add(key)
		return
	}
	x.filter = x.filter.grown()
	for key := range x.entries {
		x.filter.add(key)
	}
}

// expect makes room for n entries in an empty index.
func (x *recent) expect(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.entries, x.filter = make(map[uint64]entry, n), bloomFor(n)
}

// load fills an empty index from entries in the order of keys.
func (x *recent) load(all []row) {
	x.expect(len(all))
	for i := range all {
		clash := i > 0 && all[i-1].key == all[i].key
		x.put(all[i].key, &all[i].address, all[i].entry, clash)
	}
}

// keyed is an entry with its key.
type keyed struct {
	key   uint64
	entry entry
}

// all returns all entries, in no order.
func (x *recent) all(keyOf func(blobstor.Address) uint64) []keyed {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]keyed, 0, len(x.entries)+len(x.clashes))
	for key, e := range x.entries {
		all = append(all, keyed{key, e})
	}
	for addr, e := range x.clashes {
		all = append(all, keyed{keyOf(addr), e})
	}
	return all
}
