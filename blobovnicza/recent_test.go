package blobovnicza

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// An index in memory has the newest entry of each address, also of those that share a key, whichever came first.
func TestRecent(t *testing.T) {
	const n = 3*chunkRows + 100
	want := makeRows(n) // 120 of them have one key
	for i := range 30 {
		want[i].key = want[0].key + uint64(i/2) // and others the upper half of one
	}
	sortRows(want)
	came := slices.Clone(want)
	slices.Reverse(came)
	x := &recent{}
	for range 2 { // the second time they are put again
		for i := range came {
			x.put(came[i].key, &came[i].address, came[i].entry+1<<32)
			x.put(came[i].key, &came[i].address, came[i].entry)
		}
	}
	if got := x.sorted(); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d, or in another order", len(got), n)
	}
	loaded := &recent{}
	loaded.load(want)
	for i := range want {
		r := &want[i]
		if got, again := x.get(r.key, &r.address), loaded.get(r.key, &r.address); got != r.entry || again != r.entry {
			t.Fatalf("entry of %v: %x, loaded %x, want %x", r.address, got, again, r.entry)
		}
	}
	stranger := addrOf(n)
	for _, key := range []uint64{want[0].key, want[40].key, 5} {
		if got := x.get(key, &stranger); got != 0 {
			t.Errorf("key %x: an entry %x of another address", key, got)
		}
	}
	var tombs []uint64
	for i := range want {
		if want[i].entry.tombstone() {
			tombs = append(tombs, want[i].key)
		}
	}
	got := x.tombstoneKeys()
	if slices.Sort(got); !slices.Equal(got, tombs) {
		t.Errorf("%d tombstones, want %d", len(got), len(tombs))
	}
}

// A row that is there is overwritten without an allocation.
func TestRecentPutAgain(t *testing.T) {
	x, rows := &recent{}, makeRows(200)
	x.load(rows)
	allocs := testing.AllocsPerRun(10, func() {
		for i := range rows {
			x.put(rows[i].key, &rows[i].address, rows[i].entry)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// The index file of a full file is made without a look at the data. A record that is damaged meanwhile is one damaged
// blob, now and after a reopen: a miss stays a fact, the blob is listed, and compaction leaves the file and says so.
func TestIndexOfDamagedFile(t *testing.T) {
	ss := &sites{all: map[blobstor.Storage]*site{}}
	opts := byHand()
	opts.Create = true
	s := ss.open(t, t.TempDir(), opts)
	putSmall(t, s, 0, 10)
	at, first, dir := where(t, s, 5), s.leaves[0].active(), ss.of(s).dir
	_, p, _ := parseLocation(at)
	flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off+20)
	wantListed(t, s, 10) // of memory
	ss.of(s).faults.Add(crashtest.Fault{Op: durable.OpRead, Path: dataName(p.file), Forever: true, Err: syscall.EIO})
	check(t, s.leaves[0].retire(ctx, first, normal))
	check(t, s.upkeep(ctx))
	ss.of(s).faults.Clear()
	if first.recent() != nil {
		t.Fatal("no index file")
	}
	remove(t, s, 0, 1, 2)
	for range 2 {
		if _, err := s.Get(ctx, addrOf(5), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
			t.Errorf("damaged blob: %v", err)
		}
		expect(t, s, 6, smallData(6))
		expect(t, s, 1000, nil)
		wantListed(t, s, 7)
		compactFlawed(t, s)
		if !exists(t, s, at) {
			t.Error("the file is gone")
		}
		s = ss.reopen(t, s, opts)
	}
	_, err := s.Repair(ctx)
	check(t, err)
	wantClean(t, s)
	expect(t, s, 5, nil)
}

// wantListed fails the test unless All yields n blobs, each once and without an error, and blob 5 is one of them.
func wantListed(t *testing.T, s *Tree, n int) {
	t.Helper()
	sizes := map[blobstor.Address]int64{}
	all := 0
	for info, err := range s.All(ctx, "") {
		check(t, err)
		sizes[info.Address] = info.Size
		all++
	}
	if all != n || len(sizes) != n || sizes[addrOf(5)] != int64(len(smallData(5))) {
		t.Errorf("%d blobs, %d of them different, want %d; blob 5 has %d bytes", all, len(sizes), n, sizes[addrOf(5)])
	}
}

// An index file that is being made when Repair puts another index in memory does not come behind that.
func TestSaveIndexBesideRepair(t *testing.T) {
	s, st := faulty(t, byHand())
	s.stopKeeper()
	putSmall(t, s, 0, 100)
	l := s.leaves[0]
	f := l.version.Load().files[0]
	hold := newHoldUp(func(op durable.Op, path string) bool {
		return op == durable.OpRename && filepath.Base(path) == f.idx.name
	})
	hold.armed.Store(true)
	st.faults.Next = hold
	saved, repaired := make(chan error, 1), make(chan struct{})
	go func() { saved <- l.saveIndex(f) }()
	hold.wait(t, saved)
	r := &recent{}
	r.load(f.recent().sorted())
	go func() { f.setRecalled(r, true); close(repaired) }()
	select {
	case <-repaired:
	case <-time.After(10 * time.Millisecond):
	}
	close(hold.release)
	check(t, <-saved)
	<-repaired
	check(t, s.upkeep(ctx))
	if f.recent() != r {
		t.Error("what Repair found is not asked")
	}
}

// A filter of tombstones is made only when the version is of the same indexes as the files: else those of a file might
// be taken neither from its index file nor from memory.
func TestTombsOfChangingIndex(t *testing.T) {
	s := mustOpen(t, t.TempDir(), byHand())
	s.stopKeeper()
	putSmall(t, s, 0, 100)
	l := s.leaves[0]
	v := l.version.Load()
	f := v.files[0]
	inMemory := f.index.Load()
	check(t, s.upkeep(ctx))
	inFile := f.index.Load()
	for _, x := range []*index{inMemory, inFile} {
		f.index.Store(x)
		l.setFiles(v.files)
		if !l.setTombs(l.version.Load(), nil) {
			t.Errorf("%+v: no filter", x)
		}
		for _, other := range []*index{inMemory, inFile} {
			if f.index.Store(other); l.setTombs(l.version.Load(), nil) != (other == x) {
				t.Errorf("version of %+v, file of %+v", x, other)
			}
		}
	}
}

// BenchmarkSaveIndex writes the index file of a file of 256 MiB.
func BenchmarkSaveIndex(b *testing.B) {
	const blobs = 65_000
	dir := b.TempDir()
	fill(b, dir, Options{Create: true, NoSync: true}, 0, blobs, dataOf(1, 4096)[:3900])
	s := mustOpen(b, dir, Options{})
	l := s.leaves[0]
	f := l.active()
	b.ReportAllocs()
	for b.Loop() {
		check(b, l.writeIndexOf(f))
	}
}
