package blobovnicza

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// byHand are the options of tests that compact when they want to.
func byHand() Options {
	return Options{FileSize: 16 << 10, Compact: CompactOptions{Off: true, DeadRatio: 0.01}}
}

// putSmall puts blobs from up to before to, of 300 bytes and a few more, so that some forty of them fill a file of 16 KiB.
func putSmall(t testing.TB, s *Tree, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		_, err := s.Put(ctx, addrOf(n), smallData(n))
		check(t, err)
	}
}

func smallData(n int) []byte { return dataOf(n, 300+n%7) }

func remove(t testing.TB, s *Tree, ns ...int) {
	t.Helper()
	for _, n := range ns {
		check(t, s.Delete(ctx, addrOf(n), ""))
	}
}

// exists reports whether a leaf of a store of one leaf still lists the file of a location.
func exists(t testing.TB, s *Tree, at blobstor.Location) bool {
	t.Helper()
	_, p, ok := parseLocation(at)
	if !ok {
		t.Fatal("no location")
	}
	return byNumber(s.leaves[0].version.Load().files, p.file) != nil
}

// where returns the location of a blob.
func where(t testing.TB, s *Tree, n int) blobstor.Location {
	t.Helper()
	info, err := s.Stat(ctx, addrOf(n), "")
	check(t, err)
	return info.Location
}

// Space comes back in files and bytes; what stays is read by its old location and by none; counters are those of a
// recount, now and after a reopen.
func TestCompactGivesSpaceBack(t *testing.T) {
	for _, shape := range [][2]int{{1, 0}, {3, 1}} {
		dir, opts := t.TempDir(), byHand()
		opts.Width, opts.Depth = shape[0], shape[1]
		s := mustOpen(t, dir, opts)
		putSmall(t, s, 0, 200)
		old := map[int]blobstor.Location{}
		for n := range 200 {
			if n%5 == 0 {
				old[n] = where(t, s, n)
			} else {
				remove(t, s, n)
			}
		}
		files, before := onDisk(t, dir)
		check(t, s.Compact(ctx))
		verify := func(s *Tree) {
			t.Helper()
			for n := range 200 {
				want := smallData(n)
				if n%5 != 0 {
					want = nil
				}
				expect(t, s, n, want)
				if got, err := s.Get(ctx, addrOf(n), old[n], nil); want != nil && string(got) != string(want) {
					t.Errorf("blob %d by its old location: %v", n, err)
				}
			}
			recount(t, s)
		}
		verify(s)
		check(t, s.upkeep(ctx))
		left, after := onDisk(t, dir)
		if st := s.Stats(); left > files/2 || before-after < 60<<10 || st.Files != left || st.Compacted == 0 || st.Used != after {
			t.Errorf("%d files of %d bytes became %d of %d, %+v", files, before, left, after, st)
		}
		check(t, s.Close())
		verify(mustOpen(t, dir, opts))
	}
}

// A file without live records goes without a copy.
func TestCompactDropsDeadFiles(t *testing.T) {
	s := mustOpen(t, t.TempDir(), byHand())
	putSmall(t, s, 0, 60)
	for n := range 60 {
		remove(t, s, n)
	}
	putSmall(t, s, 100, 130)
	check(t, s.Compact(ctx))
	if st := s.Stats(); st.Moved > 60*recordSize(kindTombstone, 0) || st.Objects != 30 {
		t.Errorf("stats %+v", st)
	}
	recount(t, s)
}

// A tombstone stays as long as an older file has the blob that it hides, goes with that file, and never outlives a
// newer put.
func TestCompactKeepsTombstones(t *testing.T) {
	dir, opts := t.TempDir(), byHand()
	s := mustOpen(t, dir, opts)
	putSmall(t, s, 0, 200)
	first, second := where(t, s, 5), where(t, s, 60)
	check(t, s.upkeep(ctx))
	_, p, _ := parseLocation(first)
	flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off+headerSize) // it stays until blob 5 is put again
	remove(t, s, 1, 2, 60, 61, 62)
	putSmall(t, s, 2, 3)
	compactFlawed(t, s)
	makeSparse(t, s, 60)
	verify := func(kept bool) {
		t.Helper()
		if exists(t, s, first) != kept || exists(t, s, second) {
			t.Fatalf("first file there: %v, second: %v", exists(t, s, first), exists(t, s, second))
		}
		for n, want := range map[int]bool{1: kept, 2: false, 60: false, 61: false} {
			if got := tombstoneOf(t, s, n) != 0; got != want {
				t.Errorf("tombstone of %d: %v", n, got)
			}
		}
		for _, n := range []int{1, 60, 61, 62} {
			expect(t, s, n, nil)
		}
		expect(t, s, 2, smallData(2))
		recount(t, s)
	}
	for range 2 {
		compactFlawed(t, s)
		verify(true)
		check(t, s.Close())
		s = mustOpen(t, dir, opts)
		verify(true)
	}
	putSmall(t, s, 5, 6)
	for range 3 {
		check(t, s.Compact(ctx))
		makeSparse(t, s, 1)
	}
	expect(t, s, 5, smallData(5))
	if exists(t, s, first) {
		t.Error("the first file is still there")
	}
	verify(false)
}

// makeSparse deletes most of the blobs that lie in one file with the tombstone of n.
func makeSparse(t testing.TB, s *Tree, n int) {
	t.Helper()
	home := tombstoneOf(t, s, n)
	for i := 10; i < 200; i++ {
		if info, err := s.Stat(ctx, addrOf(i), ""); err == nil {
			if _, p, _ := parseLocation(info.Location); p.file == home {
				remove(t, s, i)
			}
		}
	}
}

// compactFlawed compacts a store that has a file with damaged blobs.
func compactFlawed(t testing.TB, s *Tree) {
	t.Helper()
	if err := s.Compact(ctx); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("compact: %v", err)
	}
}

// tombstoneOf returns the file of a store of one leaf that has a tombstone of the blob, or 0.
func tombstoneOf(t testing.TB, s *Tree, n int) uint32 {
	t.Helper()
	addr := addrOf(n)
	for _, f := range s.leaves[0].version.Load().files {
		e, err := f.get(s.sortKey(addr), &addr)
		check(t, err)
		if e.tombstone() {
			return f.number
		}
	}
	return 0
}

// A file with a damaged live blob stays, is an error when all others are done, and goes when that blob was put again
// or deleted.
func TestCompactLeavesDamage(t *testing.T) {
	for _, repair := range []string{"put", "delete"} {
		dir := t.TempDir()
		s := mustOpen(t, dir, byHand())
		putSmall(t, s, 0, 120)
		at, other := where(t, s, 5), where(t, s, 60)
		check(t, s.upkeep(ctx)) // then the address of the record is known
		_, p, _ := parseLocation(at)
		flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off+headerSize+1)
		remove(t, s, 0, 1, 2, 60, 61, 62)
		for range 2 {
			if err := s.Compact(ctx); !errors.Is(err, blobstor.ErrCorrupt) {
				t.Errorf("compact: %v", err)
			}
			if st := s.Stats(); !exists(t, s, at) || exists(t, s, other) || st.Flawed != 1 {
				t.Errorf("damaged file there: %v, other: %v, %+v", exists(t, s, at), exists(t, s, other), st)
			}
		}
		if _, err := s.Get(ctx, addrOf(5), at, nil); !errors.Is(err, blobstor.ErrCorrupt) {
			t.Errorf("damaged blob: %v", err)
		}
		want := smallData(5)
		if repair == "put" {
			putSmall(t, s, 5, 6)
		} else {
			remove(t, s, 5)
			want = nil
		}
		check(t, s.Compact(ctx))
		if st := s.Stats(); exists(t, s, at) || st.Flawed != 0 {
			t.Errorf("after %s the file is still there, %+v", repair, st)
		}
		expect(t, s, 5, want)
		expect(t, s, 6, smallData(6))
		recount(t, s)
	}
}

// Damage that leaves neither a file's index nor its records readable does not keep the others from being compacted.
func TestCompactPassesUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, byHand())
	putSmall(t, s, 0, 120)
	at, other := where(t, s, 5), where(t, s, 60)
	check(t, s.upkeep(ctx))
	_, p, _ := parseLocation(at)
	remove(t, s, 0, 1, 2, 3, 4, 60, 61, 62)
	flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off+20)
	flip(t, filepath.Join(dir, treeDir, indexName(p.file)), 100)
	if err := s.Compact(ctx); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("compact: %v", err)
	}
	if !exists(t, s, at) || exists(t, s, other) {
		t.Errorf("damaged file there: %v, other: %v", exists(t, s, at), exists(t, s, other))
	}
}
