package blobovnicza

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/FastFilter/xorfilter"
)

// writeIndex writes the index of a file whose checksums start with seed. The rows are in its order, one for each
// address. Beside them it needs about 35 bytes of memory for a row, most of it to build the filter.
func writeIndex(w io.Writer, seed uint32, cover coverage, rows []row) error {
	filter, err := xorfilter.NewBinaryFuse[uint8](distinctKeys(rows))
	if err != nil {
		return fmt.Errorf("filter of an index: %w", err)
	}
	f := footer{coverage: cover, rows: uint32(len(rows)), fingerprints: uint32(len(filter.Fingerprints))}
	x := indexWriter{w: bufio.NewWriterSize(w, writeSize), seed: seed}
	x.blocks(rows)
	f.summaryCRC = x.summary(rows, filter)
	f.tombs, f.tombstonesCRC = x.tombstones(rows)
	_, _ = x.w.Write(appendFooter(nil, &f, seed))
	return x.w.Flush() // a write that failed before fails it too
}

// distinctKeys returns each key of the rows once: the filter takes no key twice.
func distinctKeys(rows []row) []uint64 {
	keys := make([]uint64, 0, len(rows))
	for i := range rows {
		if i == 0 || rows[i].key != rows[i-1].key {
			keys = append(keys, rows[i].key)
		}
	}
	return keys
}

// indexWriter writes the parts of an index one after the other.
type indexWriter struct {
	w    *bufio.Writer
	seed uint32
	off  int64
	crc  uint32 // of the section so far
}

func (x *indexWriter) blocks(rows []row) {
	var b indexBlock
	for part := range slices.Chunk(rows, rowsInBlock) {
		b.set(part, x.seed, x.off)
		x.put(b[:])
	}
}

// summary writes what stays in memory of an open index, and returns its checksum.
func (x *indexWriter) summary(rows []row, f *filter) uint32 {
	x.begin()
	for i := 0; i < len(rows); i += rowsInBlock {
		x.putKey(rows[i].key)
	}
	x.put(appendFilterHead(nil, f))
	for part := range slices.Chunk(f.Fingerprints, writeSize) { // more in one call would not pass the buffer
		x.put(part)
	}
	for part := range slices.Chunk(sieveOf(rows, f.Seed), writeSize) {
		x.put(part)
	}
	return x.crc
}

// tombstones writes their sort keys, and returns how many there are and their checksum.
func (x *indexWriter) tombstones(rows []row) (n, crc uint32) {
	x.begin()
	for i := range rows {
		if rows[i].entry.tombstone() {
			x.putKey(rows[i].key)
			n++
		}
	}
	return n, x.crc
}

// begin starts a section.
func (x *indexWriter) begin() { x.crc = placeCRC(x.seed, x.off) }

func (x *indexWriter) put(b []byte) {
	x.crc = crc32.Update(x.crc, castagnoli, b)
	x.off += int64(len(b))
	_, _ = x.w.Write(b)
}

func (x *indexWriter) putKey(key uint64) { x.put(keyList(x.w.AvailableBuffer()).add(key)) }
