package blobovnicza

import "sync/atomic"

// bloom answers "certainly not there" for most keys that were never added, at the cost of one cache line. Of the 16
// bits that a key gets, four are set, all in one block of 512; about one key in 300 passes by chance. The zero bloom
// is empty. One may add while others ask.
type bloom struct {
	blocks [][8]uint64
	keys   int
}

// keysInBlock gives each key 16 bits of the 512.
const keysInBlock = 32

// full reports whether a filter with more blocks should take over: see grown.
func (b *bloom) full() bool { return b.keys >= len(b.blocks)*keysInBlock }

// grown returns an empty filter for twice the keys.
func (b *bloom) grown() bloom { return bloom{blocks: make([][8]uint64, max(2*len(b.blocks), 64))} }

// bloomFor returns an empty filter for n keys.
func bloomFor(n int) bloom { return bloom{blocks: make([][8]uint64, max(n/keysInBlock+1, 64))} }

func (b *bloom) add(key uint64) {
	block, bits := b.place(key)
	for range 4 {
		atomic.OrUint64(&block[bits>>6&7], 1<<(bits&63))
		bits >>= 9
	}
	b.keys++
}

// has reports whether key may have been added.
func (b *bloom) has(key uint64) bool {
	if len(b.blocks) == 0 {
		return false
	}
	block, bits := b.place(key)
	for range 4 {
		if atomic.LoadUint64(&block[bits>>6&7])>>(bits&63)&1 == 0 {
			return false
		}
		bits >>= 9
	}
	return true
}

// place spreads the key, whose low bits are alike in one leaf, and returns its block and 36 bits to choose from it.
func (b *bloom) place(key uint64) (*[8]uint64, uint64) {
	key *= 0x9e3779b97f4a7c15
	key ^= key >> 32
	return &b.blocks[(key>>36)*uint64(len(b.blocks))>>28], key
}
