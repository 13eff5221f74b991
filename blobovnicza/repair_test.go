package blobovnicza

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
)

// readable returns the blobs that can be read, and fails the test if one comes back wrong.
func readable(t testing.TB, s *Tree, all map[int]stored) map[int]bool {
	t.Helper()
	ok := map[int]bool{}
	for n, want := range all {
		for _, at := range []blobstor.Location{want.at, ""} {
			got, err := s.Get(ctx, addrOf(n), at, nil)
			if err == nil && !bytes.Equal(got, want.data) {
				t.Fatalf("blob %d comes back wrong", n)
			}
			if err == nil && !want.deleted {
				ok[n] = true
			}
		}
	}
	return ok
}

// wantRepaired fails the test unless nothing is wrong, all that was readable is so, and the rest is gone or deleted.
// Where a tombstone may have been lost, deleted blobs may be back.
func wantRepaired(t *testing.T, s *Tree, all map[int]stored, before map[int]bool, back bool) {
	t.Helper()
	wantClean(t, s)
	for n, want := range all {
		got, err := s.Get(ctx, addrOf(n), want.at, nil)
		switch {
		case before[n] && (err != nil || !bytes.Equal(got, want.data)):
			t.Errorf("blob %d was readable, now: %v", n, err)
		case err == nil && want.deleted && !back:
			t.Errorf("blob %d is back", n)
		case err != nil && !errors.Is(err, blobstor.ErrNotFound):
			t.Errorf("blob %d: %v", n, err)
		}
	}
	expect(t, s, 1000, nil) // a miss is a fact
}

// Each kind of damage is repaired, once and for all.
func TestRepair(t *testing.T) {
	master := t.TempDir()
	all := fileStore(t, master)
	opts := Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}}
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			s, st := d.hurt(t, master, all, opts)
			before := readable(t, s, all)
			r, err := s.Check(ctx)
			check(t, err)
			found := findings(r)
			r, err = s.Repair(ctx)
			check(t, err)
			if got := findings(r); got != found {
				t.Errorf("Repair found %q, Check %q", got, found)
			}
			back := len(d.lost) == 0
			wantRepaired(t, s, all, before, back)
			for _, n := range d.lost {
				expect(t, s, n, nil)
			}
			written := s.Stats().Records
			r, err = s.Repair(ctx)
			check(t, err)
			if !r.OK() || s.Stats().Records != written {
				t.Errorf("a second Repair finds %q, and writes %d records", findings(r), s.Stats().Records-written)
			}
			check(t, s.Close())
			s = mustOpen(t, st.dir, opts)
			wantRepaired(t, s, all, before, back)
			check(t, s.Compact(ctx))
			wantRepaired(t, s, all, before, back)
			if s.Stats().Flawed != 0 || s.Stats().Lost != 0 {
				t.Errorf("%+v", s.Stats())
			}
		})
	}
}

// The power goes at every step of a Repair: nothing that was readable is lost, and the next Repair does the rest.
func TestRepairPowerLoss(t *testing.T) {
	master := t.TempDir()
	all := fileStore(t, master)
	opts := Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}}
	for _, d := range damages() {
		if testing.Short() && !slices.Contains([]string{"payload", "header without index", "data swapped", "data truncated"}, d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			for at := 1; ; at++ {
				s, st := d.hurt(t, master, all, opts)
				before := readable(t, s, all)
				dir := filepath.Join(t.TempDir(), "after")
				steps := &crashtest.Steps{Next: st.record, At: at, Do: func() { check(t, st.record.PowerLoss(dir)) }}
				s.writing.Lock() // the keeper looks at it too
				st.faults.Next = steps
				s.writing.Unlock()
				_, err := s.Repair(ctx)
				check(t, err)
				check(t, s.Close())
				if steps.Count() < at {
					return
				}
				s = mustOpen(t, dir, opts)
				for n := range before {
					if !readable(t, s, all)[n] {
						t.Errorf("step %d: blob %d is lost", at, n)
					}
				}
				_, err = s.Repair(ctx)
				check(t, err)
				wantRepaired(t, s, all, before, len(d.lost) == 0)
				check(t, s.Close())
				if t.Failed() {
					return
				}
			}
		})
	}
}

// A blob whose newest record is damaged is stored again from an older copy; one that was deleted stays so when its
// tombstone is damaged.
func TestRepairUsesOtherCopies(t *testing.T) {
	dir := t.TempDir()
	opts := Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}}
	s := mustOpen(t, dir, opts)
	for n := range 6 {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, 300))
		check(t, err)
	}
	old, err := s.Stat(ctx, addrOf(0), "")
	check(t, err)
	path := dataFiles(t, dir)[0]
	_, p, _ := parseLocation(old.Location)
	flip(t, path, p.off+headerSize)
	at, err := s.Put(ctx, addrOf(0), dataOf(0, 300)) // it heals the copy
	check(t, err)
	flip(t, path, p.off+headerSize)
	check(t, s.Delete(ctx, addrOf(1), ""))
	for n := 10; n < 20; n++ {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, 300))
		check(t, err)
	}
	check(t, s.upkeep(ctx))
	_, q, _ := parseLocation(at)
	flip(t, filepath.Join(dir, treeDir, dataName(q.file)), q.off+headerSize)
	flip(t, filepath.Join(dir, treeDir, dataName(q.file)), q.off+q.size()+20) // the tombstone behind it
	if _, err := s.Get(ctx, addrOf(1), "", nil); !errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("behind a damaged tombstone: %v", err)
	}
	r, err := s.Repair(ctx)
	check(t, err)
	rescued := 0
	for _, f := range r.Files {
		for _, d := range f.Damage {
			if d.Rescued {
				rescued++
			}
		}
	}
	if rescued != 1 {
		t.Errorf("%d rescued, found %s", rescued, findings(r))
	}
	wantClean(t, s)
	expect(t, s, 0, dataOf(0, 300))
	expect(t, s, 1, nil)
}

// A file of another origin is not destroyed.
func TestRepairSetsForeignFilesAside(t *testing.T) {
	dir := t.TempDir()
	fileStore(t, dir)
	files := dataFiles(t, dir)
	whole, err := os.ReadFile(files[1])
	check(t, err)
	swap(t, files[0], files[1])
	s := mustOpen(t, dir, Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}})
	_, err = s.Repair(ctx)
	check(t, err)
	kept, err := os.ReadFile(files[0] + foreignSuffix)
	check(t, err)
	if !bytes.Equal(kept, whole) {
		t.Error("the file has changed")
	}
}

// Compaction moves blobs that are larger than what it reads at once.
func TestCompactLargeBlobs(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{MaxBlob: 3 << 20, FileSize: 4 << 20, Compact: CompactOptions{Off: true}})
	for n, size := range []int{DefaultMaxBlob, 3 << 20, 100, 3 << 20} {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, size))
		check(t, err)
	}
	check(t, s.Delete(ctx, addrOf(1), ""))
	check(t, s.Compact(ctx))
	expect(t, s, 0, dataOf(0, DefaultMaxBlob))
	wantClean(t, s)
	if s.Stats().Compacted == 0 {
		t.Errorf("%+v", s.Stats())
	}
}

// Puts and deletes go on beside a Repair, and iterations end well.
func TestRepairBesideCalls(t *testing.T) {
	master := t.TempDir()
	all := fileStore(t, master)
	for _, d := range damages() {
		if !slices.Contains([]string{"payload in the active file", "header without index", "row missing", "counter", "data deleted while open"}, d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			s, _ := d.hurt(t, master, all, Options{FileSize: 4 << 10, Compact: CompactOptions{Off: true}})
			before := readable(t, s, all)
			stop, wg := make(chan struct{}), sync.WaitGroup{}
			for g := range 2 {
				wg.Go(func() {
					for n := 2000 + g; ; n += 2 {
						select {
						case <-stop:
							return
						default:
						}
						_, err := s.Put(ctx, addrOf(n), dataOf(n, 200))
						check(t, err)
						if n%3 == 0 {
							check(t, s.Delete(ctx, addrOf(n), ""))
						}
						if n < 2020 {
							for range s.All(ctx, "") { // its errors are those of the damage
							}
						}
					}
				})
			}
			_, err := s.Repair(ctx)
			close(stop)
			wg.Wait()
			check(t, err)
			wantRepaired(t, s, all, before, true)
		})
	}
}
