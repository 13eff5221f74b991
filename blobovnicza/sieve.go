package blobovnicza

import "math/bits"

// sieve is a second filter behind the first, which lets one key in 256 pass by chance: of these it stops six in seven,
// for half a byte a row. What passes both costs a read, which would be half of the time of a look-up in many files. It
// is a Bloom filter whose three bits for a key lie in one block, that is, in one cache line.
type sieve []byte

const (
	sieveBlock = 64  // bytes
	sieveKeys  = 128 // rows for each block
)

func sieveSize(rows uint32) int64 { return max(1, (int64(rows)+sieveKeys-1)/sieveKeys) * sieveBlock }

// sieveOf returns the sieve of an index with these rows.
func sieveOf(rows []row, seed uint64) sieve {
	s := make(sieve, sieveSize(uint32(len(rows))))
	for i := range rows {
		block, g := s.place(mix(rows[i].key + seed))
		for range 3 {
			block[g>>3&(sieveBlock-1)] |= 1 << (g & 7)
			g >>= 9
		}
	}
	return s
}

// has reports whether the key with this hash, the one that the first filter computes, may be there.
func (s sieve) has(hash uint64) bool {
	block, g := s.place(hash)
	for range 3 {
		if block[g>>3&(sieveBlock-1)]>>(g&7)&1 == 0 {
			return false
		}
		g >>= 9
	}
	return true
}

// place returns the block of a hash and 27 bits to choose from it.
func (s sieve) place(hash uint64) ([]byte, uint64) {
	g := hash * 0x9e3779b97f4a7c15
	block, _ := bits.Mul64(g, uint64(len(s)/sieveBlock))
	return s[block*sieveBlock:][:sieveBlock], g
}
