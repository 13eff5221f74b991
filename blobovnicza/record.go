package blobovnicza

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"github.com/granary-store/granary/blobstor"
)

// Part of the format, never change. The package comment shows the layout.
const (
	recordMagic   = "\xb1GRN"
	recordVersion = 1

	headerSize = 104
	crcSize    = 4
	align      = 8
	blockSize  = 64 << 10 // payload bytes under one checksum
)

// kind says what a record is.
type kind byte

// Part of the format, never change.
const (
	kindManifest  kind = 1
	kindPut       kind = 2
	kindTombstone kind = 3
	kindVoid      kind = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// place is where a record lies in its leaf. The zero place is none: no file has the number 0.
type place struct {
	file      uint32
	off       int64
	length    uint32 // of the payload
	tombstone bool
}

// tombstoneBit is part of the format: in a replaced place and in an index it marks the length of a tombstone.
const tombstoneBit = 1 << 31

func (p place) size() int64 { return recordSize(kindPut, p.length) }

// header describes a record. Its checksum is bound to the file and the offset that it was written for.
type header struct {
	kind     kind
	address  blobstor.Address
	length   uint32 // of the payload
	synced   int64  // the file was synced up to here when the record was written
	commit   uint64
	replaced place
	crc      uint32 // also seeds the payload's checksums
}

// recordSize returns the bytes that a record with this payload takes.
func recordSize(k kind, length uint32) int64 {
	if k == kindVoid {
		return headerSize + int64(length)
	}
	size := headerSize + int64(length) + crcSize*blocks(length)
	return (size + align - 1) &^ (align - 1)
}

func (h *header) size() int64 { return recordSize(h.kind, h.length) }

// blocks returns how many checksums a payload has.
func blocks(length uint32) int64 { return (int64(length) + blockSize - 1) / blockSize }

// fileSeed starts every checksum of a file, so that a record copied into another file is not a record.
func fileSeed(store [16]byte, leaf uint16, number uint32) uint32 {
	b := binary.BigEndian.AppendUint16(store[:], leaf)
	b = binary.BigEndian.AppendUint32(b, number)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint32(sum[:])
}

// sortKey places an address: no choice of IDs can crowd a leaf, because the store's ID is random.
func sortKey(store [16]byte, addr blobstor.Address) uint64 {
	var b [16 + blobstor.AddressSize]byte
	copy(b[:], store[:])
	copy(b[16:], addr.Container[:])
	copy(b[48:], addr.Object[:])
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:])
}

// appendHeader appends the header of a record at off and sets h.crc.
func appendHeader(b []byte, h *header, seed uint32, off int64) []byte {
	start := len(b)
	b = append(b, recordMagic...)
	b = append(b, recordVersion, byte(h.kind), 0, 0)
	b = append(b, h.address.Container[:]...)
	b = append(b, h.address.Object[:]...)
	b = binary.BigEndian.AppendUint32(b, h.length)
	b = binary.BigEndian.AppendUint32(b, uint32(h.synced/align))
	b = binary.BigEndian.AppendUint64(b, h.commit)
	b = binary.BigEndian.AppendUint32(b, h.replaced.file)
	b = binary.BigEndian.AppendUint32(b, uint32(h.replaced.off/align))
	length := h.replaced.length
	if h.replaced.tombstone {
		length |= tombstoneBit
	}
	b = binary.BigEndian.AppendUint32(b, length)
	h.crc = headerCRC(b[start:], seed, off)
	return binary.BigEndian.AppendUint32(b, h.crc)
}

// headerCRC covers the offset and all of the header before the checksum itself.
func headerCRC(b []byte, seed uint32, off int64) uint32 {
	return crc32.Update(placeCRC(seed, off), castagnoli, b[:headerSize-crcSize])
}

// placeCRC starts the checksum of what lies at off: it is that of the offset in 8 bytes.
func placeCRC(seed uint32, off int64) uint32 {
	// By hand: a slice of the offset for crc32.Update would be an allocation in every read.
	crc := ^seed
	for shift := 56; shift >= 0; shift -= 8 {
		crc = castagnoli[byte(crc)^byte(off>>shift)] ^ crc>>8
	}
	return ^crc
}

// parseHeader reads the header at off; ok is false if there is none that was written for this place.
func parseHeader(b []byte, seed uint32, off int64) (h header, ok bool) {
	if len(b) < headerSize || string(b[:4]) != recordMagic || b[4] != recordVersion || b[6]|b[7] != 0 {
		return h, false
	}
	h.crc = binary.BigEndian.Uint32(b[headerSize-crcSize:])
	if h.crc != headerCRC(b, seed, off) {
		return header{}, false
	}
	h.kind = kind(b[5])
	h.address = blobstor.Address{Container: blobstor.ID(b[8:40]), Object: blobstor.ID(b[40:72])}
	h.length = binary.BigEndian.Uint32(b[72:])
	h.synced = int64(binary.BigEndian.Uint32(b[76:])) * align
	h.commit = binary.BigEndian.Uint64(b[80:])
	h.replaced.file = binary.BigEndian.Uint32(b[88:])
	h.replaced.off = int64(binary.BigEndian.Uint32(b[92:])) * align
	h.replaced.length = binary.BigEndian.Uint32(b[96:]) &^ tombstoneBit
	h.replaced.tombstone = b[96]>>7 == 1
	if h.kind < kindManifest || h.kind > kindVoid || h.kind == kindVoid && h.length%align != 0 {
		return header{}, false
	}
	return h, true
}

// appendTrailer appends what follows a payload: its checksums and the padding of the record.
func appendTrailer(b []byte, h *header, payload []byte) []byte {
	for len(payload) > 0 {
		n := min(len(payload), blockSize)
		b = binary.BigEndian.AppendUint32(b, crc32.Update(h.crc, castagnoli, payload[:n]))
		payload = payload[n:]
	}
	pad := h.size() - headerSize - int64(h.length) - crcSize*blocks(h.length)
	return append(b, make([]byte, pad)...)
}

// verifyBlocks reports whether payload, which starts on a block, matches its checksums.
func verifyBlocks(h *header, payload, sums []byte) bool {
	for len(payload) > 0 {
		n := min(len(payload), blockSize)
		if binary.BigEndian.Uint32(sums) != crc32.Update(h.crc, castagnoli, payload[:n]) {
			return false
		}
		payload, sums = payload[n:], sums[crcSize:]
	}
	return true
}

// findMagic returns the index of the first aligned place in b that may start a record, or -1. b itself starts
// aligned.
func findMagic(b []byte) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(recordMagic))
		if i < 0 {
			return -1
		}
		if from += i; from%align == 0 {
			return from
		}
		from++
	}
}
