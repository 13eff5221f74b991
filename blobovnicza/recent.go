package blobovnicza

import (
	"slices"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// recent is an index in memory: a row for each address, in the order in which they came. Keys are 64 bits of a hash;
// an address whose key another one holds is found by itself.
type recent struct {
	mu      sync.RWMutex // guards what is below; never held across I/O
	filter  bloom        // of the keys: most look-ups are for new blobs, and a look into a large map is slow
	numbers map[uint64]uint32
	clashes map[blobstor.Address]uint32
	chunks  [][]row // by number; each but the last has chunkRows, so that no large one is ever copied to grow
}

const chunkRows = 1024

// get returns the entry for an address, or zero.
func (x *recent) get(key uint64, addr *blobstor.Address) entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if r, _ := x.find(key, addr); r != nil {
		return r.entry
	}
	return 0
}

// find returns the row of an address, or nil; held says whether any address has the key.
func (x *recent) find(key uint64, addr *blobstor.Address) (r *row, held bool) {
	if !x.filter.has(key) {
		return nil, false
	}
	n, held := x.numbers[key]
	if !held {
		return nil, false
	}
	if r = x.at(n); r.address == *addr {
		return r, true
	}
	if n, ok := x.clashes[*addr]; ok {
		return x.at(n), true
	}
	return nil, true
}

func (x *recent) at(number uint32) *row { return &x.chunks[number/chunkRows][number%chunkRows] }

// put sets the entry for an address.
func (x *recent) put(key uint64, addr *blobstor.Address, e entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, held := x.find(key, addr)
	if r != nil {
		r.entry = e
		return
	}
	n := x.add(row{key, *addr, e})
	if held {
		if x.clashes == nil {
			x.clashes = make(map[blobstor.Address]uint32)
		}
		x.clashes[*addr] = n
		return
	}
	if x.numbers == nil {
		x.numbers = make(map[uint64]uint32)
	}
	x.numbers[key] = n
	x.admit(key)
}

// add appends a row and returns its number. The first chunk begins small, for a tree may have many leaves.
func (x *recent) add(r row) uint32 {
	last := len(x.chunks) - 1
	switch {
	case last < 0:
		x.chunks = append(x.chunks, nil)
		last++
	case len(x.chunks[last]) == chunkRows:
		x.chunks = append(x.chunks, make([]row, 0, chunkRows))
		last++
	}
	x.chunks[last] = append(x.chunks[last], r)
	return uint32(last*chunkRows + len(x.chunks[last]) - 1)
}

// admit adds a key that is in the map to the filter, or makes a larger filter of all of them.
func (x *recent) admit(key uint64) {
	if !x.filter.full() {
		x.filter.add(key)
		return
	}
	x.filter = x.filter.grown()
	for key := range x.numbers {
		x.filter.add(key)
	}
}

// expect makes room for n addresses in an empty index.
func (x *recent) expect(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.numbers, x.filter = make(map[uint64]uint32, n), bloomFor(n)
}

// load fills an empty index.
func (x *recent) load(rows []row) {
	x.expect(len(rows))
	for i := range rows {
		x.put(rows[i].key, &rows[i].address, rows[i].entry)
	}
}

// tombstoneKeys returns the sort keys of all tombstones.
func (x *recent) tombstoneKeys() (keys []uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, chunk := range x.chunks {
		for i := range chunk {
			if chunk[i].entry.tombstone() {
				keys = append(keys, chunk[i].key)
			}
		}
	}
	return keys
}

// order returns for each row the upper half of its key, and below that its number.
func (x *recent) order() []uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	order := make([]uint64, 0, len(x.chunks)*chunkRows)
	for _, chunk := range x.chunks {
		for i := range chunk {
			order = append(order, chunk[i].key>>32<<32|uint64(len(order)))
		}
	}
	return order
}

// sorted returns all rows in the order of an index. It sorts numbers, for rows are large, and takes a few rows at a
// time, for puts wait meanwhile: one that is put again is there as it was or as it is.
func (x *recent) sorted() []row {
	order := x.order()
	slices.Sort(order)
	rows := make([]row, 0, len(order))
	for part := range slices.Chunk(order, chunkRows) {
		x.mu.RLock()
		for _, o := range part {
			rows = append(rows, *x.at(uint32(o)))
		}
		x.mu.RUnlock()
	}
	for i := range rows { // where that half does not tell
		for ; i > 0 && rows[i].compare(&rows[i-1]) < 0; i-- {
			rows[i-1], rows[i] = rows[i], rows[i-1]
		}
	}
	return rows
}
