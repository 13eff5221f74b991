package metabase

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// shelf is a storage of blobs that say what their records are.
type shelf struct {
	*storagetest.Memory
	tb testing.TB
}

func newShelf(tb testing.TB) shelf { return shelf{storagetest.NewMemory(1 << 20), tb} }

func (s shelf) put(recs ...Record) {
	s.tb.Helper()
	data, err := json.Marshal(recs)
	must(s.tb, err)
	_, err = s.Put(ctx, recs[0].Address, data)
	must(s.tb, err)
}

func parseJSON(info blobstor.Info, r io.ReaderAt) (recs []Record, err error) {
	data, err := io.ReadAll(io.NewSectionReader(r, 0, 1<<20))
	if err == nil {
		err = json.Unmarshal(data, &recs)
	}
	return recs, err
}

// TestRebuildFromBad: entries 60 to 62 and 65 of the collection: what cannot be recorded is reported and passed over.
func TestRebuildFromBad(t *testing.T) {
	s, w := newShelf(t), newWorld(t, Options{NoSync: true, Ballast: -1})
	s.put(Record{Address: object(1, 1), Size: 5})
	s.put(part(1, 2, 9, ""), virtual(1, 9))
	s.put(part(1, 3, 0, "no parent is known"))
	bad := map[blobstor.Address]bool{}
	for n, text := range map[int]string{4: "", 5: `[{"Kind":`, 6: "[]", 7: `[{"Size":-1}]`} {
		_, err := s.Put(ctx, object(1, n), []byte(text))
		must(t, err)
		bad[object(1, n)] = true
	}
	other, err := json.Marshal([]Record{{Address: object(1, 77)}}) // of another address
	must(t, err)
	_, err = s.Put(ctx, object(1, 8), other)
	must(t, err)
	bad[object(1, 8)] = true
	_, err = Rebuild(ctx, w.DB, blobstor.Stream(s), parseJSON, &RebuildOptions{Bad: func(info blobstor.Info, err error) {
		if !bad[info.Address] || err == nil {
			t.Errorf("%v: %v", info.Address, err)
		}
		delete(bad, info.Address)
	}})
	must(t, err)
	if len(bad) > 0 {
		t.Errorf("not reported: %v", bad)
	}
	w.wantCounters(t, 1, Counters{Objects: 3, Roots: 2, Payload: 25})
	w.wantState(t, object(1, 77), Missing)
	w.check(t)
}

// TestRebuildInAnyOrder: entry 28: what a rebuild makes does not depend on the order of blobs, except that of what a
// program would have refused all is recorded. All that is to go is collected.
func TestRebuildInAnyOrder(t *testing.T) {
	all := [][]Record{
		{{Address: object(1, 1), Size: 1}}, {tombstone(1, 2, 1)},
		{{Address: object(1, 3), Size: 1}}, {lock(1, 4, 3, 0)}, {tombstone(1, 5, 3)},
		{part(1, 11, 0, "split")}, {part(1, 12, 0, "split")}, {part(1, 13, 10, "split"), virtual(1, 10)}, {tombstone(1, 6, 10)},
		{{Address: object(1, 7), Expires: 50}}, {lock(1, 8, 20, 90)},
		{part(1, 21, 22, ""), part(1, 22, 23, ""), virtual(1, 23)}, {tombstone(1, 9, 23)},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var first []Key
	for range 20 {
		rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		w := newWorld(t, Options{NoSync: true, Ballast: -1})
		for _, recs := range all { // one commit each, as an unlucky rebuild has it
			must(t, w.putEntries(ctx, []Entry{{Records: recs}}, true))
		}
		w.check(t)
		var keys []Key
		for n := range 30 {
			of, err := w.Inspect(ctx, object(1, n))
			must(t, err)
			keys = append(keys, of...)
		}
		if first == nil {
			first = keys
		}
		if !slices.EqualFunc(keys, first, func(a, b Key) bool { return string(a.Key) == string(b.Key) && string(a.Value) == string(b.Value) }) {
			t.Errorf("other keys or marks than in the first order")
		}
		gone := w.removed(t)
		for _, n := range []int{1, 11, 12, 13, 21, 22} {
			if !slices.Contains(gone, object(1, n)) {
				t.Errorf("object %d was not collected", n)
			}
		}
		w.wantState(t, object(1, 3), Available)
		must(t, w.Close())
	}
}

// TestRebuildResumes ends a rebuild early, again and again, and goes on each time.
func TestRebuildResumes(t *testing.T) {
	s, w := newShelf(t), newWorld(t, Options{NoSync: true, Ballast: -1})
	const n = 2*rebuildBatch + 500
	for i := range n {
		s.put(Record{Address: object(1+i%3, i), Size: 1})
	}
	var at blobstor.Location
	for turn := range 4 {
		stop, cancel := context.WithCancel(ctx)
		var parsed atomic.Int64
		next, err := Rebuild(stop, w.DB, blobstor.Stream(s), func(info blobstor.Info, r io.ReaderAt) ([]Record, error) {
			if parsed.Add(1) > rebuildBatch+300 && turn < 3 {
				cancel()
			}
			return parseJSON(info, r)
		}, &RebuildOptions{After: at, Bad: func(info blobstor.Info, err error) { t.Errorf("%v: %v", info.Address, err) }})
		cancel()
		if err == nil {
			break
		}
		wantIs(t, err, context.Canceled)
		if next == at {
			t.Error("no progress")
		}
		at = next
	}
	var sum int64
	for c := 1; c <= 3; c++ {
		got, err := w.Counters(ctx, id(c))
		must(t, err)
		sum += got.Objects
	}
	if sum != n {
		t.Errorf("%d objects, want %d", sum, n)
	}
	w.check(t)
}

// TestRebuildFails: a storage that fails ends it with that error, and not with a short database and nil.
func TestRebuildFails(t *testing.T) {
	s, w := newShelf(t), newWorld(t, Options{NoSync: true, Ballast: -1})
	s.put(Record{Address: object(1, 1)})
	f := storagetest.NewFault(s)
	broken := errors.New("broken")
	f.Fail(storagetest.All, 1, broken)
	_, err := Rebuild(ctx, w.DB, blobstor.Stream(f), parseJSON, nil)
	wantIs(t, err, broken)
	must(t, w.Close())
	_, err = Rebuild(ctx, w.DB, blobstor.Stream(s), parseJSON, nil)
	wantIs(t, err, blobstor.ErrClosed)
}
