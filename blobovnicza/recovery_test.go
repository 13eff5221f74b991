package blobovnicza

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// stored says what a test put into a store.
type stored struct {
	data    []byte
	at      blobstor.Location
	deleted bool
}

// smallStore fills a store of one leaf with a few small blobs and tombstones over several files, and closes it.
func smallStore(t testing.TB, dir string, blobs int) map[int]stored {
	t.Helper()
	s, err := Open(dir, &Options{Create: true, FileSize: 2 << 10, Compact: CompactOptions{Off: true}})
	check(t, err)
	defer func() { check(t, s.Close()) }()
	all := map[int]stored{}
	for n := range blobs {
		data := dataOf(n, n*37%300)
		at, err := s.Put(ctx, addrOf(n), data)
		check(t, err)
		all[n] = stored{data: data, at: at}
		if n%4 == 3 {
			check(t, s.Delete(ctx, addrOf(n-1), ""))
			all[n-1] = stored{data: all[n-1].data, at: all[n-1].at, deleted: true}
		}
	}
	return all
}

// copyStore copies a closed store into a new directory.
func copyStore(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	check(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// dataFiles returns the paths of the data files of a store of one leaf, oldest first.
func dataFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, treeDir, "*"+dataSuffix))
	check(t, err)
	return files
}

// removeIndexes removes the index files of a store of one leaf, as if a crash had come before they were written.
func removeIndexes(t testing.TB, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, treeDir, "*"+indexSuffix))
	check(t, err)
	for _, f := range files {
		check(t, os.Remove(f))
	}
}

// The last record is torn at every byte: it is gone, all else is there, and the store takes writes.
func TestTruncatedLastRecord(t *testing.T) {
	master := t.TempDir()
	all := smallStore(t, master, 6)
	files := dataFiles(t, master)
	_, p, _ := parseLocation(all[5].at) // put 5 was followed by nothing but the manifest of Close
	for size := p.off; size < p.off+recordSize(kindPut, p.length); size++ {
		dir := copyStore(t, master)
		removeIndexes(t, dir)
		check(t, os.Truncate(dataFiles(t, dir)[len(files)-1], size))
		s := mustOpen(t, dir, Options{})
		for n, want := range all {
			got, err := s.Get(ctx, addrOf(n), want.at, nil)
			switch {
			case n == 5 || want.deleted:
				if !errors.Is(err, blobstor.ErrNotFound) {
					t.Fatalf("cut at %d: blob %d: %v", size, n, err)
				}
			case err != nil || !bytes.Equal(got, want.data):
				t.Fatalf("cut at %d: blob %d: %v", size, n, err)
			}
		}
		_, err := s.Put(ctx, addrOf(5), all[5].data)
		check(t, err)
		check(t, s.Close())
		s = mustOpen(t, dir, Options{ReadOnly: true})
		if got, err := s.Get(ctx, addrOf(5), "", nil); err != nil || !bytes.Equal(got, all[5].data) {
			t.Fatalf("cut at %d: put again: %v", size, err)
		}
		check(t, s.Close())
	}
}

// A hole in the last commit, with whole records behind it, is covered by a void: they stay, and nothing is lost.
func TestTornHoleBecomesVoid(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	items := make([]blobstor.Item, 5)
	for n := range items {
		items[n] = blobstor.Item{Address: addrOf(n), Data: dataOf(n, 500)}
	}
	check(t, s.PutBatch(ctx, items)) // one commit
	dir = copyStore(t, dir)          // as a kill leaves it
	_, p, _ := parseLocation(items[2].Location)
	for _, off := range []int64{p.off + 3, p.off + headerSize} { // of the third record the header, then the payload
		torn := copyStore(t, dir)
		flip(t, dataFiles(t, torn)[0], off)
		for range 2 { // the second time the void is there
			s := mustOpen(t, torn, Options{})
			if stats := s.Stats(); stats.Objects != 4 || stats.Lost != 0 {
				t.Fatalf("stats %+v", stats)
			}
			for n := range items {
				if _, err := s.Get(ctx, addrOf(n), "", nil); errors.Is(err, blobstor.ErrNotFound) != (n == 2) {
					t.Errorf("blob %d: %v", n, err)
				}
			}
			check(t, s.Close())
		}
		s := mustOpen(t, torn, Options{})
		_, err := s.Put(ctx, addrOf(2), items[2].Data)
		check(t, err)
		check(t, s.Close())
		s = mustOpen(t, torn, Options{})
		if stats := s.Stats(); stats.Objects != 5 || stats.Torn != 0 || stats.Lost != 0 || stats.Dead == 0 {
			t.Errorf("after the void: %+v", stats)
		}
	}
}

// Any one flipped byte: never wrong data, and never NotFound for a stored blob.
func TestFlippedByte(t *testing.T) {
	master := t.TempDir()
	all := smallStore(t, master, 14)
	step := 1
	if testing.Short() {
		step = 13
	}
	for i, path := range dataFiles(t, master) {
		info, err := os.Stat(path)
		check(t, err)
		dir := copyStore(t, master)
		path = dataFiles(t, dir)[i]
		for off := int64(0); off < info.Size(); off += int64(step) {
			flip(t, path, off)
			s, err := Open(dir, &Options{ReadOnly: true})
			if err != nil {
				t.Fatalf("%s at %d: %v", filepath.Base(path), off, err)
			}
			verifyDamaged(t, s, all, fmt.Sprintf("%s at %d", filepath.Base(path), off))
			check(t, s.Close())
			flip(t, path, off)
		}
	}
}

func verifyDamaged(t *testing.T, s *Tree, all map[int]stored, where string) {
	t.Helper()
	hurt := 0
	for n, want := range all {
		for _, at := range []blobstor.Location{want.at, ""} {
			got, err := s.Get(ctx, addrOf(n), at, nil)
			switch {
			case err == nil && !bytes.Equal(got, want.data):
				t.Fatalf("%s: blob %d comes back wrong", where, n)
			case err == nil && want.deleted, errors.Is(err, blobstor.ErrCorrupt):
				hurt++ // a lost tombstone brings its blob back: damage, but not wrong data
			case errors.Is(err, blobstor.ErrNotFound) != want.deleted:
				t.Fatalf("%s: blob %d: %v", where, n, err)
			}
		}
	}
	if lost := s.Stats().Lost > 0; lost {
		if _, err := s.Get(ctx, addrOf(1000), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
			t.Fatalf("%s: a miss beside lost addresses: %v", where, err)
		}
		return
	}
	if hurt > 2 {
		t.Fatalf("%s: one byte hurt %d reads, and no addresses are lost", where, hurt)
	}
}

// Damage in the middle hides addresses: the store opens, serves what it has, takes writes, and says so.
func TestLostAddresses(t *testing.T) {
	dir := t.TempDir()
	all := smallStore(t, dir, 10)
	_, p, _ := parseLocation(all[4].at)
	flip(t, filepath.Join(dir, treeDir, dataName(p.file)), p.off+20)
	removeIndexes(t, dir)
	for round := range 2 { // evidence of the loss outlives writes and a reopen
		s := mustOpen(t, dir, Options{})
		if s.Stats().Lost != 1 {
			t.Fatalf("round %d: %+v", round, s.Stats())
		}
		errs := 0
		for _, err := range s.All(ctx, "") {
			if err != nil {
				errs++
			}
		}
		if errs != 1 {
			t.Errorf("All yields %d errors, want the one lost range", errs)
		}
		miss := addrOf(100 + round)
		if _, err := s.Get(ctx, miss, "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
			t.Errorf("a miss: %v", err)
		}
		check(t, s.Delete(ctx, miss, ""))
		if _, err := s.Get(ctx, miss, "", nil); !errors.Is(err, blobstor.ErrNotFound) {
			t.Errorf("after the delete the absence is a fact: %v", err)
		}
		if round == 0 {
			_, err := s.Put(ctx, addrOf(4), all[4].data)
			check(t, err)
		}
		got, err := s.Get(ctx, addrOf(4), all[4].at, nil)
		if err != nil || !bytes.Equal(got, all[4].data) {
			t.Errorf("put again: %v", err)
		}
		check(t, s.Close())
	}
}

// A missing data file, the active one included, is never an empty one.
func TestMissingDataFile(t *testing.T) {
	master := t.TempDir()
	all := smallStore(t, master, 24)
	count := len(dataFiles(t, master))
	if count < 3 {
		t.Fatalf("%d files, want at least 3", count)
	}
	for victim := range count {
		dir := copyStore(t, master)
		check(t, os.Remove(dataFiles(t, dir)[victim]))
		for round := range 2 {
			s := mustOpen(t, dir, Options{})
			served := 0
			for n, want := range all {
				_, err := s.Get(ctx, addrOf(n), want.at, nil)
				switch {
				case err == nil:
					served++
				case errors.Is(err, blobstor.ErrNotFound) && !want.deleted:
					t.Fatalf("file %d missing: blob %d: %v", victim, n, err)
				case !errors.Is(err, blobstor.ErrNotFound) && !errors.Is(err, blobstor.ErrCorrupt):
					t.Fatalf("file %d missing: blob %d: %v", victim, n, err)
				}
			}
			if _, err := s.Get(ctx, addrOf(1000), "", nil); served == 0 || !errors.Is(err, blobstor.ErrCorrupt) {
				t.Errorf("file %d missing, round %d: %d served; a miss is %v", victim, round, served, err)
			}
			_, err := s.Put(ctx, addrOf(2000+round), []byte("new"))
			check(t, err)
			check(t, s.Close())
		}
		s := mustOpen(t, dir, Options{})
		for round := range 2 {
			_, err := s.Get(ctx, addrOf(2000+round), "", nil)
			check(t, err)
		}
	}
}

// The only file of a leaf is gone.
func TestMissingOnlyFile(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir, 1)
	for _, f := range dataFiles(t, dir) {
		check(t, os.Remove(f))
	}
	s := mustOpen(t, dir, Options{ReadOnly: true})
	if _, err := s.Get(ctx, addrOf(0), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("read-only: %v", err)
	}
	check(t, s.Close())
	s = mustOpen(t, dir, Options{})
	if _, err := s.Get(ctx, addrOf(0), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("get: %v", err)
	}
	_, err := s.Put(ctx, addrOf(0), []byte("again"))
	check(t, err)
	check(t, s.Close())
	s = mustOpen(t, dir, Options{})
	_, err = s.Get(ctx, addrOf(0), "", nil)
	check(t, err)
	if _, err := s.Get(ctx, addrOf(1), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("the loss was forgotten: %v", err)
	}
}

// The first manifest of the active file is damaged, with records behind it or without: what it said of older files is
// lost, so misses prove nothing any more, also when the next file has a manifest again.
func TestDamagedManifest(t *testing.T) {
	for _, blobs := range []int{0, 3, 14} {
		dir := t.TempDir()
		all := smallStore(t, dir, blobs)
		files := dataFiles(t, dir)
		flip(t, files[len(files)-1], 10)
		removeIndexes(t, dir)
		if blobs == 3 {
			check(t, os.Truncate(files[0], 600)) // nor is there another manifest
		}
		for round := range 3 {
			s := mustOpen(t, dir, Options{})
			served := 0
			for n, want := range all {
				got, err := s.Get(ctx, addrOf(n), want.at, nil)
				if err == nil && !bytes.Equal(got, want.data) || errors.Is(err, blobstor.ErrNotFound) && !want.deleted {
					t.Errorf("%d blobs, round %d: blob %d: %v", blobs, round, n, err)
				}
				if err == nil {
					served++
				}
			}
			if _, err := s.Get(ctx, addrOf(1000), "", nil); !errors.Is(err, blobstor.ErrCorrupt) || blobs > 3 && served < 5 {
				t.Errorf("%d blobs, round %d: %d served, a miss is %v", blobs, round, served, err)
			}
			_, err := s.Put(ctx, addrOf(2000+round), []byte("new"))
			check(t, err)
			expect(t, s, 2000, []byte("new"))
			check(t, s.Close())
		}
	}
}

// Files of another store, or swapped among each other, hold no records here. Without indexes that is noticed at once;
// with them it is known what is lost, and Check tells why.
func TestForeignFile(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		dir, other := t.TempDir(), t.TempDir()
		all := smallStore(t, dir, 24)
		smallStore(t, other, 24)
		files := dataFiles(t, dir)
		check(t, os.WriteFile(files[0], readFile(t, dataFiles(t, other)[0]), 0o600))
		check(t, os.WriteFile(files[1], readFile(t, files[2]), 0o600))
		if !indexed {
			removeIndexes(t, dir)
		}
		s := mustOpen(t, dir, Options{Compact: CompactOptions{Off: true}})
		for n, want := range all {
			got, err := s.Get(ctx, addrOf(n), want.at, nil)
			if err == nil && !bytes.Equal(got, want.data) {
				t.Fatalf("blob %d is another's", n)
			}
			if errors.Is(err, blobstor.ErrNotFound) && !want.deleted {
				t.Fatalf("blob %d: %v", n, err)
			}
		}
		if !indexed && s.Stats().Lost == 0 {
			t.Error("no loss noticed")
		}
		r, err := s.Check(ctx)
		check(t, err)
		for i := range 2 {
			if !r.Files[i].Foreign {
				t.Errorf("indexed %v: Check says of file %d: %+v", indexed, i, r.Files[i])
			}
		}
	}
}

// A record inside a payload, copied from the store itself, is not taken for one.
func TestForgedRecordInPayload(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	at, err := s.Put(ctx, addrOf(1), []byte("victim"))
	check(t, err)
	_, p, _ := parseLocation(at)
	check(t, s.Close())
	raw, err := os.ReadFile(dataFiles(t, dir)[0])
	check(t, err)
	forged := raw[p.off:]
	s = mustOpen(t, dir, Options{})
	host, err := s.Put(ctx, addrOf(2), append(bytes.Clone(forged), forged...))
	check(t, err)
	_, q, _ := parseLocation(host)
	check(t, s.Delete(ctx, addrOf(1), ""))
	inside := makeLocation(0, place{file: q.file, off: q.off + headerSize, length: p.length})
	if _, err := s.Get(ctx, addrOf(1), inside, nil); !errors.Is(err, blobstor.ErrNotFound) {
		t.Errorf("a location into a payload: %v", err)
	}
	check(t, s.Close())
	flip(t, dataFiles(t, dir)[0], q.off) // now replay looks for records inside the payload
	s = mustOpen(t, dir, Options{})
	if _, err := s.Get(ctx, addrOf(1), "", nil); !errors.Is(err, blobstor.ErrNotFound) {
		t.Errorf("a record came out of a payload: %v", err)
	}
}

// Open trusts a file that Close or a seal has ended, and makes any other durable before it believes it.
func TestOpenSyncsWhatWasNotClosed(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{FileSize: 4 << 10})
	for n := range 8 {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, 1000))
		check(t, err)
	}
	killed := copyStore(t, dir)
	check(t, s.Close())
	faults := &crashtest.Faults{}
	faults.Add(crashtest.Fault{Op: durable.OpSync, Path: treeDir, Forever: true, Err: syscall.EIO})
	if s, err := open(killed, &Options{}, faults); !errors.Is(err, syscall.EIO) {
		check(t, s.Close())
		t.Errorf("open after a kill, with a failing sync: %v", err)
	}
	s, err := open(dir, &Options{}, faults)
	check(t, err)
	for n := range 8 {
		expect(t, s, n, dataOf(n, 1000))
	}
	check(t, s.Close()) // nothing was written, so there is nothing to prove
}

// Zeros after the end are legal.
func TestZerosAfterTheEnd(t *testing.T) {
	dir := t.TempDir()
	all := smallStore(t, dir, 3)
	f, err := os.OpenFile(dataFiles(t, dir)[0], os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	_, err = f.Write(make([]byte, 3<<20))
	check(t, errors.Join(err, f.Close()))
	for _, readOnly := range []bool{true, false} {
		s := mustOpen(t, dir, Options{ReadOnly: readOnly})
		if stats := s.Stats(); stats.Lost != 0 || stats.Torn != 0 || stats.Objects != int64(len(all)) {
			t.Errorf("stats %+v", stats)
		}
		check(t, s.Close())
	}
}
