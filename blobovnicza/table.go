package blobovnicza

import (
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"

	"github.com/granary-store/granary/blobstor"
)

// errIndex is damage to an index file. Nothing is lost by it: the data file has all that was in it.
var errIndex = fmt.Errorf("%w: damaged index", blobstor.ErrCorrupt)

// table is an index file opened: in memory are the first key of every block and the filter, about 1.3 bytes for a
// row. It never changes and keeps no handle: what reads the file is told where to read.
type table struct {
	footer
	seed   uint32
	firsts keyList // of each block
	filter filter
	sieve  sieve

	cache *blockCache // may be nil
	id    uint64      // of the table in it
}

// openTable reads and verifies what of an index stays in memory. Damage is errIndex; so is the index of another
// file.
func openTable(r io.ReaderAt, size int64, seed uint32) (*table, error) {
	if size < footerSize {
		return nil, errIndex
	}
	b := make([]byte, footerSize)
	if err := readFull(r, b, size-footerSize); err != nil {
		return nil, err
	}
	f, ok := parseFooter(b, seed, size)
	if !ok {
		return nil, errIndex
	}
	b = make([]byte, f.summarySize())
	if err := readSection(r, b, f.summaryAt(), seed, f.summaryCRC); err != nil {
		return nil, err
	}
	t := &table{footer: f, seed: seed}
	keys := f.blocks() * keySize
	t.firsts = keyList(b[:keys:keys])
	t.sieve = sieve(b[f.sieveAt():])
	if t.filter, ok = parseFilter(b[keys:f.sieveAt()]); !ok || !t.firsts.ascending() {
		return nil, errIndex
	}
	return t, nil
}

// has reports whether the key may be in the index. It reads nothing.
func (t *table) has(key uint64) bool {
	return t.filter.Contains(key) && t.sieve.has(mix(key+t.filter.Seed))
}

// get returns the entry for an address, or zero. It reads a block only if has says so, and returns that as
// probed: a probe that finds nothing is the filters' mistake, or another address with the same key. Without strict the
// caller has asked the filters, and the checksum of the block is left out if the row is there: the caller verifies the
// record that it points to, and asks strictly if that is not what the row says.
func (t *table) get(r io.ReaderAt, key uint64, addr *blobstor.Address, strict bool) (e entry, probed bool, err error) {
	if strict && !t.has(key) {
		return 0, false, nil
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	// Rows of the key are in the last block that starts below it, and in all that start with it.
	below := t.firsts.search(key)
	for i := max(below-1, 0); i < below || i < t.firsts.len() && t.firsts.at(i) == key; i++ {
		b, proven, err := t.block(r, i, (*indexBlock)(s.record[:]))
		if err != nil {
			return 0, true, err
		}
		e := b.find(t.rowsIn(i), t.likely(i, key), key, addr)
		if (e == 0 || strict) && !proven && !b.valid(t.seed, int64(i)*indexBlockSize) {
			return 0, true, errIndex
		}
		if e != 0 {
			return e, true, nil
		}
	}
	return 0, true, nil
}

// block returns block i, from the cache or read into b; proven says that it was verified.
func (t *table) block(r io.ReaderAt, i int, b *indexBlock) (_ *indexBlock, proven bool, err error) {
	id := t.id<<32 | uint64(i)
	if t.cache != nil {
		if cached := t.cache.get(id); cached != nil {
			return cached, true, nil
		}
	}
	off := int64(i) * indexBlockSize
	if err := readFull(r, b[:], off); err != nil {
		return nil, false, err
	}
	if t.cache == nil || !t.cache.wants(id) || !b.valid(t.seed, off) {
		return b, false, nil
	}
	t.cache.put(id, b)
	return b, true, nil
}

// likely returns where in block i the key should be, for keys are evenly spread.
func (t *table) likely(i int, key uint64) int {
	n, from, to := t.rowsIn(i), t.firsts.at(i), uint64(math.MaxUint64)
	if i+1 < t.firsts.len() {
		to = t.firsts.at(i + 1)
	}
	if key <= from {
		return 0
	}
	return min(int((key-from)/((to-from)/uint64(n)+1)), n-1)
}

// rowsIn returns how many rows block i has: only the last has less than it can.
func (t *table) rowsIn(i int) int {
	return int(min(rowsInBlock, int64(t.rows)-int64(i)*rowsInBlock))
}

// scanBlocks are read in one call.
const scanBlocks = scanWindow / indexBlockSize

// scan yields all rows in order. An error is the last that it yields.
func (t *table) scan(r io.ReaderAt) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		n := t.firsts.len()
		buf := make([]byte, min(n, scanBlocks)*indexBlockSize)
		for i := 0; i < n; i += scanBlocks {
			chunk := buf[:min(n-i, scanBlocks)*indexBlockSize]
			if err := readFull(r, chunk, int64(i)*indexBlockSize); err != nil {
				yield(row{}, err)
				return
			}
			if !t.scanChunk(chunk, i, yield) {
				return
			}
		}
	}
}

// allRows returns all rows in order.
func (t *table) allRows(r io.ReaderAt) ([]row, error) {
	all := make([]row, 0, t.rows)
	for e, err := range t.scan(r) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// scanChunk yields the rows of blocks from the i-th on, and reports whether to go on.
func (t *table) scanChunk(chunk []byte, i int, yield func(row, error) bool) bool {
	for ; len(chunk) > 0; chunk, i = chunk[indexBlockSize:], i+1 {
		b := (*indexBlock)(chunk)
		if !b.valid(t.seed, int64(i)*indexBlockSize) {
			yield(row{}, errIndex)
			return false
		}
		for n := range t.rowsIn(i) {
			if !yield(b.row(n), nil) {
				return false
			}
		}
	}
	return true
}

// tombstoneKeys reads the sort keys of all tombstones, in order. A key that two of them share is there twice.
func (t *table) tombstoneKeys(r io.ReaderAt) ([]uint64, error) {
	list := make(keyList, int64(t.tombs)*keySize)
	if err := readSection(r, list, t.tombstonesAt(), t.seed, t.tombstonesCRC); err != nil {
		return nil, err
	}
	keys := make([]uint64, list.len())
	for i := range keys {
		keys[i] = list.at(i)
	}
	return keys, nil
}

// readSection fills b from off and verifies it.
func readSection(r io.ReaderAt, b []byte, off int64, seed, crc uint32) error {
	if err := readFull(r, b, off); err != nil {
		return err
	}
	if crc32.Update(placeCRC(seed, off), castagnoli, b) != crc {
		return errIndex
	}
	return nil
}

// readFull fills b from off; an end of the file before that is damage.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		if isEOF(err) {
			return errIndex
		}
		return err
	}
	return nil
}
