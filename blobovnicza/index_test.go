package blobovnicza

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/bits"
	"os"
	"slices"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

const goldenIndex = "testdata/golden/index-v1.idx"

var goldenSeed = fileSeed([16]byte{1, 2, 3}, 4, 5)

// goldenRows has two addresses with one key, and a tombstone.
func goldenRows() []row {
	return []row{
		{0x1111111111111111, addrOf(1), makeEntry(kindPut, 0x0a0b0c0d*align, 5)},
		{0x2222222222222222, addrOf(2), makeEntry(kindTombstone, 1600, 0)},
		{0x2222222222222222, addrOf(3), makeEntry(kindPut, 800, 0x01020304)},
	}
}

func goldenCover() coverage {
	return coverage{listed{5, 6, 2, 1, 2000, 1000, 300}, 1704, 9}
}

// Every index of version 1 is read by every later release.
func TestGoldenIndex(t *testing.T) {
	var now bytes.Buffer
	check(t, writeIndex(&now, goldenSeed, goldenCover(), goldenRows()))
	if *update {
		check(t, os.WriteFile(goldenIndex, now.Bytes(), 0o666))
	}
	b, err := os.ReadFile(goldenIndex)
	check(t, err)
	tab, err := openTable(bytes.NewReader(b), int64(len(b)), goldenSeed)
	check(t, err)
	if tab.coverage != goldenCover() {
		t.Errorf("covers %+v", tab.coverage)
	}
	check(t, askAll(t, tab, bytes.NewReader(b), goldenRows()))
	if !bytes.Equal(now.Bytes(), b) { // another filter would be as good, but who changed it?
		t.Error("the same index is written differently")
	}
}

// The bytes of the golden index, as the package comment describes them.
func TestGoldenIndexBytes(t *testing.T) {
	b, err := os.ReadFile(goldenIndex)
	check(t, err)
	want := func(what string, at int, hexa string) {
		t.Helper()
		if got := hex.EncodeToString(b[at:][:len(hexa)/2]); got != hexa {
			t.Errorf("%s\n%s, want\n%s", what, got, hexa)
		}
	}
	want("second row", 80, "2222222222222222"+
		"636f6e7461696e65720000000000000000000000000000000000000000000000"+
		"6f626a6563742032000000000000000000000000000000000000000000000000"+
		"000000c880000000")
	want("entry of the third", 232, "0000006401020304")
	const summary, tombs = indexBlockSize, indexBlockSize + 8 + 16 + 12 + 64
	want("first key", summary, "1111111111111111")
	want("segments", summary+16, "0000000400000001")
	want("tombstone", tombs, "2222222222222222")
	want("footer", tombs+8, "b147524901000000"+
		"00000005000000060000000200000001"+"00000000000007d0"+"00000000000003e8"+"000000000000012c"+
		"00000000000006a8"+"0000000000000009"+"00000003"+"00000001"+"0000000c")
	if len(b) != tombs+8+footerSize || slices.ContainsFunc(b[240:4092], func(c byte) bool { return c != 0 }) {
		t.Errorf("%d bytes, or a block that is not filled up with zeros", len(b))
	}
	documented := func(from, to int) string {
		crc := crc32.Update(goldenSeed, castagnoli, binary.BigEndian.AppendUint64(nil, uint64(from)))
		crc = crc32.Update(crc, castagnoli, b[from:to])
		return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
	}
	want("checksum of the block", 4092, documented(0, 4092))
	want("checksums", len(b)-12, documented(summary, tombs)+documented(tombs, tombs+8)+
		documented(tombs+8, len(b)-4))
}

// Nothing of the block before is left behind the rows of a block.
func TestIndexBlockIsFilledUp(t *testing.T) {
	last := indexOf(t, makeRows(rowsInBlock+1))[indexBlockSize:]
	if slices.ContainsFunc(last[rowSize:indexBlockSize-crcSize], func(c byte) bool { return c != 0 }) {
		t.Errorf("block of one row\n%x", last[:indexBlockSize])
	}
}

// The filter is what the package comment says, and not only what the library does.
func TestFilterAsDocumented(t *testing.T) {
	tab, _ := mustOpenTable(t, indexOf(t, makeRows(1000)))
	f := tab.filter
	documented := func(key uint64) bool {
		l, n := uint64(f.SegmentLength), uint64(f.SegmentCount)
		h := key + f.Seed
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		h ^= h >> 33
		p, _ := bits.Mul64(h, n*l)
		prints := f.Fingerprints[p] ^ f.Fingerprints[(p+l)^(h>>18%l)] ^ f.Fingerprints[(p+2*l)^(h%l)]
		if prints != byte(h^h>>32) {
			return false
		}
		g := h * 0x9e3779b97f4a7c15
		block, _ := bits.Mul64(g, uint64(len(tab.sieve)/64))
		for _, bit := range []uint64{g % 512, g >> 9 % 512, g >> 18 % 512} {
			if tab.sieve[block*64+bit/8]>>(bit%8)&1 == 0 {
				return false
			}
		}
		return true
	}
	for _, r := range makeRows(1000) {
		if !documented(r.key) {
			t.Fatalf("key %#x is missing", r.key)
		}
	}
	passed := 0
	for i := range 100_000 {
		key := sortKey([16]byte{}, addrOf(-i))
		if documented(key) != tab.has(key) {
			t.Fatalf("key %#x is %v", key, tab.has(key))
		}
		if tab.has(key) {
			passed++
		}
	}
	if passed < 20 || passed > 150 {
		t.Errorf("%d of 100000 absent keys pass", passed)
	}
}

// resign makes all checksums right, as far as there is something to check.
func resign(b []byte, seed uint32) {
	at := len(b) - footerSize
	if at < 0 {
		return
	}
	foot := b[at:]
	sign := func() { binary.BigEndian.PutUint32(foot[footerSize-crcSize:], footerCRC(foot, seed, int64(at))) }
	sign()
	f, ok := parseFooter(foot, seed, int64(len(b)))
	if !ok {
		return
	}
	for off := int64(0); off < f.summaryAt(); off += indexBlockSize {
		block := (*indexBlock)(b[off:])
		binary.BigEndian.PutUint32(block[indexBlockSize-crcSize:], block.crc(seed, off))
	}
	section := func(field int, from, to int64) {
		crc := crc32.Update(placeCRC(seed, from), castagnoli, b[from:to])
		binary.BigEndian.PutUint32(foot[field:], crc)
	}
	section(76, f.summaryAt(), f.tombstonesAt())
	section(80, f.tombstonesAt(), f.footerAt())
	sign()
}

// Geometries that a look-up would leave, each with a right checksum.
func TestFilterGeometry(t *testing.T) {
	few, more := indexOf(t, makeRows(2)), indexOf(t, makeRows(25)) // 12 and 64 fingerprints
	at := indexBlockSize + 8 + 8
	for _, test := range []struct {
		whole         []byte
		length, count uint32
		ok            bool
	}{
		{few, 4, 1, true}, {few, 2, 4, true}, {more, 16, 2, true}, {more, 8, 6, true}, {more, 1, 62, true},
		{more, 16, 1, false}, {more, 16, 3, false}, // too few, too many
		{few, 3, 2, false}, // no power of two
		{more, 32, 0, false}, {more, 0, 62, false}, {more, 64, 0xffffffff, false}, {more, 1 << 31, 0xfffffffe, false},
		{more, 16, 1<<28 + 2, false}, // right if it wrapped around
	} {
		b := slices.Clone(test.whole)
		binary.BigEndian.PutUint32(b[at:], test.length)
		binary.BigEndian.PutUint32(b[at+4:], test.count)
		resign(b, tableSeed)
		_, err := openTable(bytes.NewReader(b), int64(len(b)), tableSeed)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, errIndex) {
			t.Errorf("%d segments of %d: %v", test.count, test.length, err)
		}
	}
}

// Footers that promise what the file does not have, each with a right checksum.
func TestFooterCounts(t *testing.T) {
	whole := indexOf(t, makeRows(110))
	for _, test := range []struct {
		name  string
		field int
		value []byte
	}{
		{"magic", 3, []byte("N")},
		{"version", 4, []byte{2}},
		{"reserved", 7, []byte{1}},
		{"file 0", 8, []byte{0, 0, 0, 0}},
		{"negative end", 24, []byte{0xff}},
		{"manifest behind the end", 48, []byte{0x7f}},
		{"negative manifest", 48, []byte{0xff}},
		{"all rows", 64, []byte{0xff, 0xff, 0xff, 0xff}},
		{"a block less", 64, []byte{0, 0, 0, 102}},
		{"all tombstones", 68, []byte{0xff, 0xff, 0xff, 0xff}},
		{"all fingerprints", 72, []byte{0xff, 0xff, 0xff, 0xff}},
	} {
		b := slices.Clone(whole)
		copy(b[len(b)-footerSize+test.field:], test.value)
		resign(b, tableSeed)
		if _, err := openTable(bytes.NewReader(b), int64(len(b)), tableSeed); !errors.Is(err, errIndex) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	b := slices.Clone(whole)
	clear(b[3*indexBlockSize+8:][:8]) // the second first key
	resign(b, tableSeed)
	if _, err := openTable(bytes.NewReader(b), int64(len(b)), tableSeed); !errors.Is(err, errIndex) {
		t.Errorf("first keys out of order: %v", err)
	}
}

// Whatever a file says, it is refused or every question to it has an end.
func FuzzIndex(f *testing.F) {
	for _, n := range []int{0, 1, 110} {
		b := indexOf(f, makeRows(n))
		f.Add(b, uint32(tableSeed), false)
		f.Add(b, uint32(5), true)
	}
	f.Add([]byte(indexMagic), uint32(0), false)
	f.Fuzz(func(t *testing.T, b []byte, seed uint32, sign bool) {
		b = slices.Clone(b)
		if sign {
			resign(b, seed)
		}
		r := bytes.NewReader(b)
		tab, err := openTable(r, int64(len(b)), seed)
		if err != nil {
			if !errors.Is(err, blobstor.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		n := 0
		for got, err := range tab.scan(r) {
			if n++; err == nil {
				_, _, err = tab.get(r, got.key, &got.address, true)
			}
			if err != nil && (sign || !errors.Is(err, blobstor.ErrCorrupt)) {
				t.Error(err)
			}
		}
		if n > int(tab.rows) || sign && n != int(tab.rows) {
			t.Errorf("%d rows of %d", n, tab.rows)
		}
		keys, err := tab.tombstoneKeys(r)
		if err == nil && len(keys) != int(tab.tombs) || err != nil && (sign || !errors.Is(err, blobstor.ErrCorrupt)) {
			t.Errorf("%d sort keys of tombstones, %v", len(keys), err)
		}
		for _, key := range append(keys, 0, ^uint64(0)) {
			tab.get(r, key, &blobstor.Address{}, true)
		}
	})
}
