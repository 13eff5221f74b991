package blobovnicza

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/FastFilter/xorfilter"

	"github.com/granary-store/granary/blobstor"
)

const tableSeed = 0x01020304

// makeRows returns n rows in order; every seventh is a tombstone. Those from the 41st to the 160th, over three
// edges of blocks, share one key.
func makeRows(n int) []row {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	rows := make([]row, n)
	for i := range rows {
		k := kindPut
		if i%7 == 3 {
			k = kindTombstone
		}
		rows[i] = row{rng.Uint64(), addrOf(i), makeEntry(k, int64(i+1)*align, uint32(i))}
	}
	sortRows(rows)
	for i := 41; i < min(n, 160); i++ {
		rows[i].key = rows[40].key
	}
	sortRows(rows)
	return rows
}

// sortRows brings rows into the order of an index.
func sortRows(rows []row) { slices.SortFunc(rows, func(a, b row) int { return a.compare(&b) }) }

func coverOf(rows []row) coverage {
	return coverage{
		listed:   listed{1, uint32(len(rows) + 1), uint32(len(rows)), 3, 1 << 30, 1 << 29, 1 << 28},
		manifest: 1 << 20, commit: 77,
	}
}

func indexOf(t testing.TB, rows []row) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, writeIndex(&b, tableSeed, coverOf(rows), rows))
	return b.Bytes()
}

func mustOpenTable(t testing.TB, b []byte) (*table, io.ReaderAt) {
	t.Helper()
	r := bytes.NewReader(b)
	tab, err := openTable(r, int64(len(b)), tableSeed)
	check(t, err)
	return tab, r
}

// askAll asks a table of these rows all there is to ask. It returns the first error; a wrong answer fails the test.
func askAll(t *testing.T, tab *table, r io.ReaderAt, rows []row) error {
	t.Helper()
	var buried []uint64
	for i := range rows {
		e, probed, err := tab.get(r, rows[i].key, &rows[i].address, true)
		if err != nil {
			return err
		}
		if e != rows[i].entry || !probed {
			t.Fatalf("row %d: %x, probed %v, want %x", i, e, probed, rows[i].entry)
		}
		if e.tombstone() {
			buried = append(buried, rows[i].key)
		}
		stranger := rows[i].address
		stranger.Object[31] = 1
		if e, _, err = tab.get(r, rows[i].key, &stranger, true); err != nil {
			return err
		}
		if e != 0 {
			t.Fatalf("another address with the key of row %d: %x", i, e)
		}
	}
	n := 0
	for got, err := range tab.scan(r) {
		if err != nil {
			return err
		}
		if n >= len(rows) || got != rows[n] {
			t.Fatalf("scan: %+v is not row %d of %d", got, n, len(rows))
		}
		n++
	}
	if n != len(rows) {
		t.Fatalf("scan: %d rows of %d", n, len(rows))
	}
	keys, err := tab.tombstoneKeys(r)
	if err == nil && !slices.Equal(keys, buried) {
		t.Fatalf("%d sort keys of tombstones, want %d", len(keys), len(buried))
	}
	return err
}

func TestTable(t *testing.T) {
	sizes := []int{0, 1, 2, 3, 4, 5, 6, 50, 51, 52, 101, 102, 103, 154, 200, 1000, 300_000}
	if testing.Short() {
		sizes = sizes[:len(sizes)-1]
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rows := makeRows(n)
			b := indexOf(t, rows)
			tab, r := mustOpenTable(t, b)
			if tab.coverage != coverOf(rows) || int(tab.rows) != n || tab.size() != int64(len(b)) {
				t.Errorf("%+v of %d bytes", tab.footer, len(b))
			}
			check(t, askAll(t, tab, r, rows))
			wantMisses(t, tab, r)
			if heap := float64(len(tab.firsts) + len(tab.filter.Fingerprints)); n > 1000 {
				t.Logf("%d bytes, %.3f bytes of heap for a row", len(b), heap/float64(n))
				if heap > 1.4*float64(n) {
					t.Errorf("%.3f bytes of heap for a row", heap/float64(n))
				}
			}
		})
	}
}

// wantMisses asks for addresses that are not there: the filter alone answers nearly always.
func wantMisses(t *testing.T, tab *table, r io.ReaderAt) {
	t.Helper()
	const misses = 10_000
	probes := 0
	for i := range misses {
		addr := addrOf(-1 - i)
		e, probed, err := tab.get(r, sortKey([16]byte{}, addr), &addr, true)
		if e != 0 || err != nil {
			t.Fatalf("absent address: %x, %v", e, err)
		}
		if probed {
			probes++
		}
	}
	if probes > misses/100 && tab.rows > 10 {
		t.Errorf("%d of %d misses read a block", probes, misses)
	}
}

// The end of the key space, and a key that begins in the block before the one that starts with it.
func TestTableEdges(t *testing.T) {
	var rows []row
	for i := range 3 * rowsInBlock {
		rows = append(rows, row{[]uint64{0, 0, ^uint64(0)}[i/rowsInBlock], addrOf(i), entry(i+1) << 32})
	}
	rows[rowsInBlock-1].key, rows[rowsInBlock].key = 9, 9 // one at the end of its block, one at the start
	for i := rowsInBlock + 1; i < 2*rowsInBlock; i++ {
		rows[i].key = 10
	}
	sortRows(rows)
	tab, r := mustOpenTable(t, indexOf(t, rows))
	check(t, askAll(t, tab, r, rows))
}

// One changed byte anywhere is noticed, at the latest by the answer that it would change.
func TestTableDamage(t *testing.T) {
	rows := makeRows(110)
	b := indexOf(t, rows)
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 0; at < len(b); at += step {
		b[at] ^= 1 << (at % 8)
		r := bytes.NewReader(b)
		tab, err := openTable(r, int64(len(b)), tableSeed)
		if err == nil {
			err = askAll(t, tab, r, rows)
		}
		if !errors.Is(err, blobstor.ErrCorrupt) {
			t.Fatalf("byte %d of %d: %v", at, len(b), err)
		}
		b[at] ^= 1 << (at % 8)
	}
}

// A damaged part does not hide the others, and the error of each reading names what it is.
func TestTableDamageIsLocal(t *testing.T) {
	rows := makeRows(1000)
	b := indexOf(t, rows)
	tab, r := mustOpenTable(t, b)
	b[indexBlockSize] ^= 1 // the second block
	if _, _, err := tab.get(r, rows[0].key, &rows[0].address, true); err != nil {
		t.Error(err)
	}
	if _, _, err := tab.get(r, rows[60].key, &rows[60].address, true); !errors.Is(err, errIndex) {
		t.Errorf("row of the damaged block: %v", err)
	}
	n, errs := 0, 0
	for _, err := range tab.scan(r) {
		if n++; err != nil {
			errs++
		}
	}
	if n != rowsInBlock+1 || errs != 1 {
		t.Errorf("scan yields %d, %d of them errors", n, errs)
	}
	_, err := tab.tombstoneKeys(r)
	check(t, err)
}

func TestTableCut(t *testing.T) {
	rows := makeRows(60)
	b := indexOf(t, rows)
	whole, _ := mustOpenTable(t, b)
	for n := range b {
		r := bytes.NewReader(b[:n])
		if _, err := openTable(r, int64(n), tableSeed); !errors.Is(err, errIndex) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
		if _, err := openTable(r, int64(len(b)), tableSeed); !errors.Is(err, errIndex) {
			t.Fatalf("%d of %d bytes behind the directory's back: %v", n, len(b), err)
		}
		if int64(n) < whole.footerAt() {
			if err := askAll(t, whole, r, rows); !errors.Is(err, errIndex) {
				t.Fatalf("%d of %d bytes of an open index: %v", n, len(b), err)
			}
		}
	}
	if _, err := openTable(bytes.NewReader(append(b, 0)), int64(len(b)+1), tableSeed); !errors.Is(err, errIndex) {
		t.Errorf("a byte too much: %v", err)
	}
}

// What belongs to another file, or to another place in the same one, is no answer.
func TestTableForeign(t *testing.T) {
	rows := makeRows(200)
	b := indexOf(t, rows)
	if _, err := openTable(bytes.NewReader(b), int64(len(b)), tableSeed+1); !errors.Is(err, errIndex) {
		t.Errorf("index of another file: %v", err)
	}
	tab, _ := mustOpenTable(t, b)
	moved := slices.Clone(b)
	copy(moved, b[indexBlockSize:2*indexBlockSize])
	if _, _, err := tab.get(bytes.NewReader(moved), rows[0].key, &rows[0].address, true); !errors.Is(err, errIndex) {
		t.Errorf("block of another place: %v", err)
	}
	var other bytes.Buffer
	check(t, writeIndex(&other, tableSeed+1, coverOf(rows), rows))
	copy(moved, other.Bytes()[:indexBlockSize])
	if err := askAll(t, tab, bytes.NewReader(moved), rows); !errors.Is(err, errIndex) {
		t.Errorf("block of another file: %v", err)
	}
}

// failing is a disk whose n-th call fails.
type failing struct {
	io.ReaderAt
	n       int
	largest int // write
}

func (f *failing) fail() error {
	if f.n--; f.n == 0 {
		return syscall.EIO
	}
	return nil
}

func (f *failing) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.ReaderAt.ReadAt(b, off)
}

func (f *failing) Write(b []byte) (int, error) {
	f.largest = max(f.largest, len(b))
	if err := f.fail(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// The disk's errors are no damage.
func TestTableDiskErrors(t *testing.T) {
	rows := makeRows(100)
	b := indexOf(t, rows)
	want := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.EIO) || errors.Is(err, blobstor.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	tab, r := mustOpenTable(t, b)
	for n := 1; n <= 2; n++ {
		_, err := openTable(&failing{ReaderAt: r, n: n}, int64(len(b)), tableSeed)
		want("open", err)
	}
	_, _, err := tab.get(&failing{ReaderAt: r, n: 1}, rows[9].key, &rows[9].address, true)
	want("get", err)
	for _, err = range tab.scan(&failing{ReaderAt: r, n: 1}) {
	}
	want("scan", err)
	_, err = tab.tombstoneKeys(&failing{ReaderAt: r, n: 1})
	want("tombstones", err)
}

func TestWriteIndexFails(t *testing.T) {
	rows := makeRows(30_000) // three writes
	for n := 1; n <= 3; n++ {
		w := &failing{n: n}
		if err := writeIndex(w, tableSeed, coverOf(rows), rows); !errors.Is(err, syscall.EIO) {
			t.Errorf("write %d: %v", n, err)
		}
		if w.largest > writeSize {
			t.Errorf("%d bytes in one call", w.largest)
		}
	}
	defer func(n int) { xorfilter.MaxIterations = n }(xorfilter.MaxIterations)
	xorfilter.MaxIterations = 0
	if err := writeIndex(io.Discard, tableSeed, coverOf(rows), rows); err == nil {
		t.Error("an index without a filter")
	}
}

// Fingerprints alone are more than one call.
func TestWriteIndexCalls(t *testing.T) {
	var w failing
	x := indexWriter{w: bufio.NewWriterSize(&w, writeSize)}
	x.summary(nil, &filter{Fingerprints: make([]byte, 3*writeSize)})
	check(t, x.w.Flush())
	if w.largest > writeSize {
		t.Errorf("%d bytes in one call", w.largest)
	}
}

func TestTableGetAllocates(t *testing.T) {
	rows := makeRows(1000)
	tab, r := mustOpenTable(t, indexOf(t, rows))
	if n := testing.AllocsPerRun(100, func() { tab.get(r, rows[9].key, &rows[9].address, true) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A scan that is left early reads no further.
func TestTableScanStops(t *testing.T) {
	rows := makeRows(3 * scanBlocks * rowsInBlock)
	tab, r := mustOpenTable(t, indexOf(t, rows))
	for range tab.scan(&failing{ReaderAt: r, n: 2}) {
		break
	}
	n := 0
	for _, err := range tab.scan(&failing{ReaderAt: r, n: 2}) {
		if err != nil {
			break
		}
		n++
	}
	if n != scanBlocks*rowsInBlock {
		t.Errorf("%d rows of one call", n)
	}
}

func BenchmarkTableGet(b *testing.B) {
	rows := makeRows(100_000)
	path := filepath.Join(b.TempDir(), "idx")
	data := indexOf(b, rows)
	check(b, os.WriteFile(path, data, 0o600))
	f, err := os.Open(path)
	check(b, err)
	defer f.Close()
	tab, err := openTable(f, int64(len(data)), tableSeed)
	check(b, err)
	for name, bit := range map[string]uint64{"hit": 0, "miss": 1 << 40} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				row := &rows[n*7919%len(rows)]
				if e, _, err := tab.get(f, row.key^bit, &row.address, true); (e == 0) != (bit != 0) || err != nil {
					b.Fatal(e, err)
				}
			}
		})
	}
}
