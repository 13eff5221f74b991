package blobovnicza

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/FastFilter/xorfilter"

	"github.com/granary-store/granary/blobstor"
)

// Part of the format, never change. The package comment shows the layout.
const (
	indexMagic   = "\xb1GRI"
	indexVersion = 1

	indexBlockSize = 4096
	keySize        = 8
	rowSize        = keySize + blobstor.AddressSize + 8
	rowsInBlock    = 51
	filterHead     = 16
	footerSize     = 88
)

// row is a line of an index: the newest record of an address in its file.
type row struct {
	key     uint64
	address blobstor.Address
	entry   entry
}

// compare orders rows by key, and rows whose addresses share a key by address.
func (r *row) compare(b *row) int {
	switch {
	case r.key < b.key:
		return -1
	case r.key > b.key:
		return 1
	}
	return r.address.Compare(b.address)
}

// indexBlock is a number of rows under one checksum, which is bound to the file and the offset of the block.
type indexBlock [indexBlockSize]byte

// set makes the block one of these rows, for the place off.
func (b *indexBlock) set(rows []row, seed uint32, off int64) {
	clear(b[:])
	for i := range rows {
		at := b[i*rowSize:]
		binary.BigEndian.PutUint64(at, rows[i].key)
		copy(at[8:], rows[i].address.Container[:])
		copy(at[40:], rows[i].address.Object[:])
		binary.BigEndian.PutUint64(at[72:], uint64(rows[i].entry))
	}
	binary.BigEndian.PutUint32(b[indexBlockSize-crcSize:], b.crc(seed, off))
}

func (b *indexBlock) crc(seed uint32, off int64) uint32 {
	return crc32.Update(placeCRC(seed, off), castagnoli, b[:indexBlockSize-crcSize])
}

// valid reports whether the block is whole and was written for this place.
func (b *indexBlock) valid(seed uint32, off int64) bool {
	return binary.BigEndian.Uint32(b[indexBlockSize-crcSize:]) == b.crc(seed, off)
}

func (b *indexBlock) row(i int) row {
	at := b[i*rowSize:][:rowSize]
	return row{
		key:     binary.BigEndian.Uint64(at),
		address: blobstor.Address{Container: blobstor.ID(at[8:40]), Object: blobstor.ID(at[40:72])},
		entry:   entry(binary.BigEndian.Uint64(at[72:])),
	}
}

// find returns the entry of an address among the first n rows, or zero. It begins at a guess: a block that is not in
// the processor's caches costs it one or two accesses there, and a binary search six.
func (b *indexBlock) find(n, guess int, key uint64, addr *blobstor.Address) entry {
	for guess > 0 && b.key(guess-1) >= key {
		guess--
	}
	for i := guess; i < n; i++ {
		if b.key(i) < key {
			continue
		}
		at := b[i*rowSize:][:rowSize]
		if binary.BigEndian.Uint64(at) != key {
			break
		}
		if blobstor.ID(at[8:40]) == addr.Container && blobstor.ID(at[40:72]) == addr.Object {
			return entry(binary.BigEndian.Uint64(at[72:]))
		}
	}
	return 0
}

func (b *indexBlock) key(i int) uint64 { return binary.BigEndian.Uint64(b[i*rowSize:]) }

// keyList is a section of sort keys, kept as it lies in the file: that takes no second copy to read it.
type keyList []byte

func (k keyList) len() int               { return len(k) / keySize }
func (k keyList) at(i int) uint64        { return binary.BigEndian.Uint64(k[i*keySize:]) }
func (k keyList) add(key uint64) keyList { return binary.BigEndian.AppendUint64(k, key) }

// search returns how many keys are less than key.
func (k keyList) search(key uint64) int {
	from, to := 0, k.len()
	for from < to {
		if middle := (from + to) / 2; k.at(middle) < key {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

func (k keyList) ascending() bool {
	for i := 1; i < k.len(); i++ {
		if k.at(i) < k.at(i-1) {
			return false
		}
	}
	return true
}

// filter says of a key that it is certainly not in the index, or that it may be; one in 256 passes by chance.
type filter = xorfilter.BinaryFuse[uint8]

// appendFilterHead appends what a filter has before its fingerprints.
func appendFilterHead(b []byte, f *filter) []byte {
	b = binary.BigEndian.AppendUint64(b, f.Seed)
	b = binary.BigEndian.AppendUint32(b, f.SegmentLength)
	return binary.BigEndian.AppendUint32(b, f.SegmentCount)
}

// parseFilter makes a filter of a section, whose bytes it keeps; ok is false if a look into it could go beyond
// them.
func parseFilter(b []byte) (f filter, ok bool) {
	f = filter{
		Seed:          binary.BigEndian.Uint64(b),
		SegmentLength: binary.BigEndian.Uint32(b[8:]),
		SegmentCount:  binary.BigEndian.Uint32(b[12:]),
		Fingerprints:  b[filterHead:],
	}
	length, count := uint64(f.SegmentLength), uint64(f.SegmentCount)
	power := length > 0 && length&(length-1) == 0
	if !power || count == 0 || (count+2)*length != uint64(len(f.Fingerprints)) {
		return filter{}, false
	}
	f.SegmentLengthMask = f.SegmentLength - 1
	f.SegmentCountLength = f.SegmentCount * f.SegmentLength
	return f, true
}

// coverage says which records an index covers: those of the data file before end. The counters are the data
// file's, as a manifest has them.
type coverage struct {
	listed
	manifest int64  // offset of the newest manifest before end
	commit   uint64 // highest commit number before end
}

// footer is the end of an index, and says where everything before it lies.
type footer struct {
	coverage
	rows          uint32
	tombs         uint32 // sort keys of tombstones
	fingerprints  uint32 // bytes of the filter's
	summaryCRC    uint32 // of first keys, filter and sieve
	tombstonesCRC uint32
}

// An index is blocks, then the summary (first keys, filter, sieve), the sort keys of tombstones, and the footer.
func (f *footer) blocks() int64       { return (int64(f.rows) + rowsInBlock - 1) / rowsInBlock }
func (f *footer) summaryAt() int64    { return f.blocks() * indexBlockSize }
func (f *footer) sieveAt() int64      { return f.blocks()*keySize + filterHead + int64(f.fingerprints) } // in the summary
func (f *footer) summarySize() int64  { return f.sieveAt() + sieveSize(f.rows) }
func (f *footer) tombstonesAt() int64 { return f.summaryAt() + f.summarySize() }
func (f *footer) footerAt() int64     { return f.tombstonesAt() + int64(f.tombs)*keySize }
func (f *footer) size() int64         { return f.footerAt() + footerSize }

// listsOne heads the payload of a manifest that lists one file.
const listsOne = "\x00\x00\x00\x01\x00\x00\x00\x00"

// appendFooter appends the footer for its place behind all that it describes.
func appendFooter(b []byte, f *footer, seed uint32) []byte {
	start := len(b)
	b = append(b, indexMagic...)
	b = append(b, indexVersion, 0, 0, 0)
	b = append(b, appendManifest(nil, []listed{f.listed})[manifestHead:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.manifest))
	b = binary.BigEndian.AppendUint64(b, f.commit)
	b = binary.BigEndian.AppendUint32(b, f.rows)
	b = binary.BigEndian.AppendUint32(b, f.tombs)
	b = binary.BigEndian.AppendUint32(b, f.fingerprints)
	b = binary.BigEndian.AppendUint32(b, f.summaryCRC)
	b = binary.BigEndian.AppendUint32(b, f.tombstonesCRC)
	return binary.BigEndian.AppendUint32(b, footerCRC(b[start:], seed, f.footerAt()))
}

func footerCRC(b []byte, seed uint32, off int64) uint32 {
	return crc32.Update(placeCRC(seed, off), castagnoli, b[:footerSize-crcSize])
}

// parseFooter reads the footer of an index of the given size; ok is false if what it describes is not of this
// size, so what it counts is there.
func parseFooter(b []byte, seed uint32, size int64) (f footer, ok bool) {
	if len(b) != footerSize || string(b[:4]) != indexMagic || b[4] != indexVersion || b[5]|b[6]|b[7] != 0 {
		return f, false
	}
	if binary.BigEndian.Uint32(b[footerSize-crcSize:]) != footerCRC(b, seed, size-footerSize) {
		return f, false
	}
	own, ok := parseManifest(append([]byte(listsOne), b[8:48]...), math.MaxUint32)
	if !ok {
		return f, false
	}
	f = footer{
		coverage: coverage{
			listed:   own[0],
			manifest: int64(binary.BigEndian.Uint64(b[48:])),
			commit:   binary.BigEndian.Uint64(b[56:]),
		},
		rows:          binary.BigEndian.Uint32(b[64:]),
		tombs:         binary.BigEndian.Uint32(b[68:]),
		fingerprints:  binary.BigEndian.Uint32(b[72:]),
		summaryCRC:    binary.BigEndian.Uint32(b[76:]),
		tombstonesCRC: binary.BigEndian.Uint32(b[80:]),
	}
	if f.manifest < 0 || f.manifest > f.end || f.size() != size {
		return footer{}, false
	}
	return f, true
}
