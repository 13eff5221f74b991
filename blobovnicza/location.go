package blobovnicza

import (
	"encoding/binary"

	"github.com/granary-store/granary/blobstor"
)

// locationSize is part of the format: leaf (2 bytes), file (4), offset/8 (4), payload length (4), big-endian, so
// that locations sort in the order of leaves, files and offsets.
const locationSize = 14

func makeLocation(leaf uint16, p place) blobstor.Location {
	var b [locationSize]byte
	binary.BigEndian.PutUint16(b[:], leaf)
	binary.BigEndian.PutUint32(b[2:], p.file)
	binary.BigEndian.PutUint32(b[6:], uint32(p.off/align))
	binary.BigEndian.PutUint32(b[10:], p.length)
	return blobstor.Location(b[:])
}

// parseLocation reads a location of this package; ok is false for any other string. Whether the place exists is
// for the leaf to say.
func parseLocation(l blobstor.Location) (leaf uint16, p place, ok bool) {
	if len(l) != locationSize {
		return 0, place{}, false
	}
	var b [locationSize]byte
	copy(b[:], l)
	leaf = binary.BigEndian.Uint16(b[:])
	p.file = binary.BigEndian.Uint32(b[2:])
	p.off = int64(binary.BigEndian.Uint32(b[6:])) * align
	p.length = binary.BigEndian.Uint32(b[10:])
	return leaf, p, p.file != 0
}
