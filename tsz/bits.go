package tsz

import "encoding/binary"

// load returns the 8 bytes at b[o:], first byte in the top bits.
func load(b []byte, o int) uint64 { return binary.BigEndian.Uint64(b[o : o+8]) }

// maxPut is the most bits that one put can append.
const maxPut = 56

// put appends the low n bits of v, 1 <= n <= maxPut, behind the used bits of acc, which are fewer than 8, and returns
// where that leads: the number of whole bytes, the open byte in the top of a word, and how many of its bits are used.
//
// It stores a whole word each time, so that no branch depends on the data; what counts of it are the bytes before
// the new pos. They are never written again.
func put(b []byte, pos int, acc uint64, used uint, v uint64, n uint) (int, uint64, uint) {
	n += used
	acc |= v << (-n & 63)
	binary.BigEndian.PutUint64(b[pos:pos+8], acc)
	return pos + int(n>>3), acc << (n & 56), n & 7
}

// bucket is one way to code a difference of intervals: a prefix, then that many bits.
type bucket struct {
	prefix    uint64
	length, n uint8 // bits of the prefix and bits behind it
}

// The buckets of a stream, by the number of bits of what code gives for a difference. They are asymmetric:
// n bits hold -(2^(n-1)-1) to 2^(n-1). Part of the format, never change them.
var buckets = makeBuckets()

func makeBuckets() (all [65]bucket) {
	for bits := range all {
		switch {
		case bits <= 6:
			all[bits] = bucket{0b10, 2, 7}
		case bits <= 8:
			all[bits] = bucket{0b110, 3, 9}
		case bits <= 11:
			all[bits] = bucket{0b1110, 4, 12}
		case bits <= 31:
			all[bits] = bucket{0b11110, 5, 32}
		default:
			all[bits] = bucket{0b111110, 6, 64}
		}
	}
	return all
}
