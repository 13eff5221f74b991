package fstree

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/granary-store/granary/blobstor"
)

// Part of the format, never change; the package comment has the layout.
const (
	blockSize  = 64 << 10 // bytes of payload under one checksum: a range read verifies at least as much
	pieceSize  = 4 << 10  // bytes of a full piece of the table
	pieceSums  = pieceSize/4 - 1
	footerSize = 84
	version    = 1
	magic      = "fstree"
	footerBody = footerSize - 4 // what the footer's checksum covers
	footerID   = 72             // length and address, which the pieces' checksums cover too
)

// maxPayload keeps the length of a file far from the end of int64.
const maxPayload = 1 << 62

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// blocksOf returns how many checksums a payload has.
func blocksOf(size int64) int64 { return (size + blockSize - 1) / blockSize }

// tableSize returns the length of a payload's table in bytes.
func tableSize(size int64) int64 {
	blocks := blocksOf(size)
	return 4 * (blocks + (blocks+pieceSums-1)/pieceSums)
}

// storedSize returns the length of a payload's file in bytes.
func storedSize(size int64) int64 { return size + tableSize(size) + footerSize }

// appendTrailer appends table and footer of a payload with the given block checksums.
func appendTrailer(b []byte, sums []uint32, addr blobstor.Address, size int64) []byte {
	footer := appendFooter(make([]byte, 0, footerSize), addr, size)
	for n := 0; len(sums) > 0; n++ {
		k := min(len(sums), pieceSums)
		start := len(b)
		for _, sum := range sums[:k] {
			b = binary.BigEndian.AppendUint32(b, sum)
		}
		b = binary.BigEndian.AppendUint32(b, pieceSum(b[start:], footer, uint32(n)))
		sums = sums[k:]
	}
	return append(b, footer...)
}

func appendFooter(b []byte, addr blobstor.Address, size int64) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint64(b, uint64(size))
	b = append(b, addr.Container[:]...)
	b = append(b, addr.Object[:]...)
	b = binary.BigEndian.AppendUint16(b, version)
	b = append(b, magic...)
	return binary.BigEndian.AppendUint32(b, checksum(b[start:]))
}

// pieceSum is the checksum of piece n of a table, bound to its blob and its place there.
func pieceSum(sums, footer []byte, n uint32) uint32 {
	var number [4]byte
	binary.BigEndian.PutUint32(number[:], n)
	sum := checksum(sums)
	sum = crc32.Update(sum, castagnoli, footer[:footerID])
	return crc32.Update(sum, castagnoli, number[:])
}

// parseFooter reads the footer of the blob addr from the end of a file of stored bytes, and returns the length of
// the payload. All its errors match blobstor.ErrCorrupt.
func parseFooter(b []byte, addr blobstor.Address, stored int64) (size int64, err error) {
	if len(b) != footerSize || stored < footerSize {
		return 0, fmt.Errorf("%w: %d bytes are too few", blobstor.ErrCorrupt, stored)
	}
	if string(b[74:footerBody]) != magic || checksum(b[:footerBody]) != binary.BigEndian.Uint32(b[footerBody:]) {
		return 0, fmt.Errorf("%w: the footer is damaged", blobstor.ErrCorrupt)
	}
	if v := binary.BigEndian.Uint16(b[72:]); v != version {
		return 0, fmt.Errorf("%w: footer version %d is of a later release", blobstor.ErrCorrupt, v)
	}
	if string(b[8:40]) != string(addr.Container[:]) || string(b[40:72]) != string(addr.Object[:]) {
		return 0, fmt.Errorf("%w: the file is another blob's", blobstor.ErrCorrupt)
	}
	n := binary.BigEndian.Uint64(b)
	if n > maxPayload || storedSize(int64(n)) != stored {
		return 0, fmt.Errorf("%w: %d bytes of payload do not make a file of %d", blobstor.ErrCorrupt, n, stored)
	}
	return int64(n), nil
}

// checkPiece verifies piece n of a table.
func checkPiece(piece, footer []byte, n int64) error {
	body := piece[:len(piece)-4]
	if pieceSum(body, footer, uint32(n)) != binary.BigEndian.Uint32(piece[len(body):]) {
		return fmt.Errorf("%w: piece %d of the table is damaged", blobstor.ErrCorrupt, n)
	}
	return nil
}

// sumInPiece returns the i-th checksum of a piece.
func sumInPiece(piece []byte, i int64) uint32 { return binary.BigEndian.Uint32(piece[4*i:]) }

// location and locationKey turn a key into a location and back.
func location(key uint64) blobstor.Location {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], key)
	return blobstor.Location(b[:])
}

func locationKey[T ~string | ~[]byte](at T) uint64 { return binary.BigEndian.Uint64([]byte(at)) }
