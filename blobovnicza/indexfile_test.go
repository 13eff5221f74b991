package blobovnicza

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// indexFiles returns the paths of the index files of a store of one leaf.
func indexFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, treeDir, "*"+indexSuffix))
	check(t, err)
	return files
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return b
}

// reopenBad opens a store whose index files were tampered with: all is as the history says, misses are misses, and
// afterwards every file has a whole index again.
func reopenBad(t testing.TB, dir string, h *history, what string) {
	t.Helper()
	s, err := Open(dir, &Options{FileSize: 6 << 10, Compact: CompactOptions{Off: true}})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	h.verify(t, s, what)
	expect(t, s, 5000, nil)
	check(t, s.upkeep(ctx))
	h.verify(t, s, what+", index files made again")
	check(t, s.Close())
	files := dataFiles(t, dir)
	if n := len(indexFiles(t, dir)); n != len(files) {
		t.Fatalf("%s: %d index files for %d files", what, n, len(files))
	}
	for _, f := range s.leaves[0].version.Load().files {
		x := readFile(t, filepath.Join(dir, treeDir, f.idx.name))
		if foot, ok := parseFooter(x[max(0, len(x)-footerSize):], f.seed, int64(len(x))); !ok || foot.end != f.end.Load() {
			t.Fatalf("%s: index of file %d is not whole", what, f.number)
		}
	}
}

// Index files that are missing, cut, damaged, another file's or another store's are made again, and no answer differs.
func TestBadIndexFiles(t *testing.T) {
	master, h := sparseStore(t)
	other, _ := sparseStore(t)
	count := len(indexFiles(t, master))
	step := 1
	if testing.Short() {
		step = 5
	}
	tamper := func(what string, with func(files []string)) {
		t.Helper()
		dir := copyStore(t, master)
		with(indexFiles(t, dir))
		reopenBad(t, dir, h, what)
	}
	for victim := range count {
		size := len(readFile(t, indexFiles(t, master)[victim]))
		tamper(fmt.Sprint("deleted ", victim), func(files []string) { check(t, os.Remove(files[victim])) })
		for i := 0; i < 10; i += step {
			tamper(fmt.Sprint("cut ", victim, i), func(files []string) {
				check(t, os.Truncate(files[victim], int64(size*i/10)))
			})
			tamper(fmt.Sprint("flipped ", victim, i), func(files []string) {
				flip(t, files[victim], int64(size*i/10+i))
			})
		}
		for _, back := range []int64{1, 5, footerSize - 10, footerSize + 3, footerSize + 20} {
			tamper(fmt.Sprint("flipped ", victim, " from the end ", back), func(files []string) {
				flip(t, files[victim], int64(size)-back)
			})
		}
		tamper(fmt.Sprint("swapped ", victim), func(files []string) {
			a, b := files[victim], files[(victim+1)%count]
			check(t, os.Rename(a, a+"x"))
			check(t, os.Rename(b, a))
			check(t, os.Rename(a+"x", b))
		})
		tamper(fmt.Sprint("another store's ", victim), func(files []string) {
			check(t, os.WriteFile(files[victim], readFile(t, indexFiles(t, other)[victim]), 0o600))
		})
	}
	tamper("all deleted", func(files []string) {
		for _, f := range files {
			check(t, os.Remove(f))
		}
	})
	tamper("no data file", func(files []string) {
		check(t, os.WriteFile(filepath.Join(filepath.Dir(files[0]), indexName(0xffff)), readFile(t, files[0]), 0o600))
	})
}

// Damage that Open finds is counted.
func TestBadIndexIsCounted(t *testing.T) {
	dir, h := sparseStore(t)
	flip(t, indexFiles(t, dir)[0], int64(len(readFile(t, indexFiles(t, dir)[0])))-2)
	s := mustOpen(t, dir, smallFiles())
	if n := s.Stats().Healed; n != 1 {
		t.Errorf("%d index files healed", n)
	}
	h.verify(t, s, "counted")
}

// An older copy of the active file's index covers a part of it, the rest is read from the file; of a file that is
// full by now it covers too little.
func TestStaleIndexFile(t *testing.T) {
	for _, more := range []int{1, 5, 40} {
		dir, h := sparseStore(t)
		files := indexFiles(t, dir)
		path := files[len(files)-1]
		old := readFile(t, path)
		s := mustOpen(t, dir, smallFiles())
		for n := 200; n < 200+more; n++ {
			check(t, h.put(s, n))
		}
		check(t, h.remove(s, 1))
		check(t, h.remove(s, 200))
		check(t, s.Close())
		if slices.Equal(old, readFile(t, path)) {
			t.Fatal("the index did not change")
		}
		check(t, os.WriteFile(path, old, 0o600))
		reopenBad(t, dir, h, fmt.Sprint("stale by ", more))
	}
}

// Blocks that go bad while the store is open are healed by what meets them first: a look-up, a walk or a compaction.
func TestIndexGoesBadWhileOpen(t *testing.T) {
	for name, meet := range map[string]func(s *Tree) error{
		"get": func(s *Tree) error {
			for n := range 500 { // a row that is damaged is found out when it is asked for
				s.Get(ctx, addrOf(n), "", nil)
			}
			return nil
		},
		"all": func(s *Tree) error {
			for _, err := range s.All(ctx, "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"compact": func(s *Tree) error { return s.Compact(ctx) },
	} {
		dir, h := sparseStore(t)
		opts := smallFiles()
		s := mustOpen(t, dir, opts)
		full := indexFiles(t, dir)[:s.Stats().Files-1]
		for _, path := range full {
			for row := range int64(3) { // of one, the blob may be in a newer file
				flip(t, path, row*rowSize+20)
			}
		}
		if err := meet(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Stats().Healed == 0 {
			t.Errorf("%s: nothing healed", name)
		}
		h.verify(t, s, name)
		if n := s.Stats().Healed; name == "all" && n != int64(len(full)) {
			t.Errorf("%s: %d of %d index files healed", name, n, len(full))
		}
		check(t, s.upkeep(ctx))
		check(t, s.Close())
		reopenBad(t, dir, h, name)
	}
}

// heapInUse returns the bytes that are in use.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// An open store takes at most two bytes of memory for each blob in full files.
func TestHeapOfFullFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a store of 300,000 blobs")
	}
	const blobs, perFile = 300_000, 60_000 // the default is four times as many
	dir := t.TempDir()
	opts := Options{NoSync: true, FileRecords: perFile, Compact: CompactOptions{Off: true}}
	s := mustOpen(t, dir, opts)
	items := make([]blobstor.Item, 1000)
	for n := 0; n < blobs; n += len(items) {
		for i := range items {
			items[i] = blobstor.Item{Address: addrOf(n + i), Data: []byte("tiny")}
		}
		check(t, s.PutBatch(ctx, items))
	}
	check(t, s.Close())
	s, items = nil, nil
	before := heapInUse()
	s = mustOpen(t, dir, opts)
	check(t, s.upkeep(ctx))
	active := s.leaves[0].active()
	inFull := blobs - active.objects.Load()
	activeIndex := 130 * active.objects.Load() // as Options.FileRecords says, and some
	grown := heapInUse() - before - activeIndex
	t.Logf("%d bytes for %d blobs in %d files", grown, inFull, s.Stats().Files)
	if grown > 2*inFull {
		t.Errorf("%.2f bytes a blob", float64(grown)/float64(inFull))
	}
	expect(t, s, 7, []byte("tiny"))
	runtime.KeepAlive(s)
}

// Where data and index of a file are both damaged, look-ups say so, and the file is not read from end to end for each.
func TestBeyondHealing(t *testing.T) {
	dir := t.TempDir()
	all := fileStore(t, dir)
	_, p, _ := parseLocation(all[0].at)
	flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off) // a header
	reads := &readCounter{}
	s, err := open(dir, &Options{Compact: CompactOptions{Off: true}}, reads)
	check(t, err)
	defer s.Close()
	path := filepath.Join(dir, treeDir, indexName(p.file))
	index := readFile(t, path)
	clear(index[:indexBlockSize])
	check(t, os.WriteFile(path, index, 0o600))
	for round := range 3 {
		reads.n.Store(0)
		if _, err := s.Get(ctx, addrOf(0), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
			t.Errorf("round %d: %v", round, err)
		}
		if n := reads.n.Load(); round > 0 && n > 1 { // the block
			t.Errorf("round %d: %d reads", round, n)
		}
	}
}

// readCounter counts reads.
type readCounter struct{ n atomic.Int64 }

func (r *readCounter) Before(op durable.Op, _ string, _ *durable.File) error {
	if op == durable.OpRead {
		r.n.Add(1)
	}
	return nil
}

func (*readCounter) After(durable.Op, string, *durable.File) {}

// A row whose block was not verified is believed only as far as its record proves it: whatever it leads to, and be it
// the bit that says that the blob was deleted, the answers stay right.
func TestDamagedRow(t *testing.T) {
	dir := t.TempDir()
	all := fileStore(t, dir)
	noticed := int64(0)
	for _, path := range indexFiles(t, dir) {
		whole := readFile(t, path)
		for off := rowSize - 8; whole[off-1]|whole[off-64] != 0; { // the rows that there are
			for _, mask := range []byte{0x01, 0x80, 0xff} {
				bad := bytes.Clone(whole)
				bad[off] ^= mask
				check(t, os.WriteFile(path, bad, 0o600))
				noticed += verifyAll(t, dir, all, fmt.Sprintf("%s at %d, %#x", filepath.Base(path), off, mask))
			}
			if off++; off%rowSize == 0 {
				off += rowSize - 8
			}
		}
		check(t, os.WriteFile(path, whole, 0o600))
	}
	if noticed == 0 {
		t.Error("no row was met")
	}
}

// verifyAll opens a store, compares what it says of each blob, and returns how many indexes it made again.
func verifyAll(t *testing.T, dir string, all map[int]stored, where string) int64 {
	t.Helper()
	s := mustOpen(t, dir, Options{ReadOnly: true})
	for n, want := range all {
		data := want.data
		if want.deleted {
			data = nil
		}
		if got, err := s.Get(ctx, addrOf(n), "", nil); errors.Is(err, blobstor.ErrNotFound) != want.deleted || !bytes.Equal(got, data) {
			t.Fatalf("%s: blob %d: %v", where, n, err)
		}
	}
	healed := s.Stats().Healed
	check(t, s.Close())
	return healed
}
