package main

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/granary-store/granary/blobstor"
)

// A record is a header and the payload; numbers are big-endian, checksums CRC-32C:
//
//	offset  size
//	     0     4  kind: 1 put, 2 removed
//	     4     4  length of the payload
//	     8    64  address
//	    72     4  checksum of the payload
//	    76     4  checksum of the header before it, and of the offset at which it stands
//
// The offset is in the checksum so that a payload that holds a copy of the file is not mistaken for records.
type header struct {
	kind uint32
	size uint32
	addr blobstor.Address
	sum  uint32
}

const (
	kindPut     = 1
	kindRemoved = 2

	headerSize = 80
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// encode returns the header's bytes for a record at off.
func (h header) encode(off int64) []byte {
	b := binary.BigEndian.AppendUint32(nil, h.kind)
	b = binary.BigEndian.AppendUint32(b, h.size)
	b, _ = h.addr.AppendBinary(b)
	b = binary.BigEndian.AppendUint32(b, h.sum)
	return binary.BigEndian.AppendUint32(b, headerSum(b, off))
}

// decode reads a header that stands at off, and reports whether there is one.
func decode(b []byte, off int64) (h header, ok bool) {
	if len(b) < headerSize || binary.BigEndian.Uint32(b[76:]) != headerSum(b[:76], off) {
		return header{}, false
	}
	h.kind = binary.BigEndian.Uint32(b)
	h.size = binary.BigEndian.Uint32(b[4:])
	h.addr, _ = blobstor.AddressFromBytes(b[8:72])
	h.sum = binary.BigEndian.Uint32(b[72:])
	return h, h.kind == kindPut || h.kind == kindRemoved
}

func headerSum(b []byte, off int64) uint32 {
	return crc32.Update(checksum(b), castagnoli, binary.BigEndian.AppendUint64(nil, uint64(off)))
}

// location is the record's offset; big-endian numbers sort as bytes do, as locations must.
func location(off int64) blobstor.Location {
	return blobstor.Location(binary.BigEndian.AppendUint64(nil, uint64(off)))
}

// offset undoes location. A location of anybody else's is legal; it just says nothing.
func offset(at blobstor.Location) int64 {
	if len(at) != 8 {
		return -1
	}
	return int64(binary.BigEndian.Uint64([]byte(at)))
}
