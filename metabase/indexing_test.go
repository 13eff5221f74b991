package metabase

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestEntries: the index of attributes and the backlog are read as one: in order, and what is in several places once.
func TestEntries(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t, Options{NoSync: true, Ballast: -1})
		all := map[string]bool{} // and whether the file has it
		some := func() (keys []string) {
			for range rng.IntN(40) {
				keys = append(keys, fmt.Sprintf("%d/%02d", rng.IntN(3), rng.IntN(60)))
			}
			return keys
		}
		b := &backlogs{now: newBacklog(), older: newBacklog()}
		for i := range rng.IntN(9) {
			keys := some()
			if i < 4 {
				b.older.add(slices.Clone(keys))
			} else {
				b.now.add(slices.Clone(keys))
			}
			for _, k := range keys {
				all[k] = false
			}
		}
		must(t, w.doOne(ctx, 0, func(t *txn) error {
			for _, k := range some() {
				t.put(attrs, []byte(k), nil)
				all[k] = true
			}
			return nil
		}))
		for range 20 {
			prefix := fmt.Sprintf("%d/", rng.IntN(3))
			from := prefix + fmt.Sprintf("%02d", rng.IntN(60))
			var want []string
			for k, filed := range all {
				if strings.HasPrefix(k, prefix) && k >= from {
					want = append(want, fmt.Sprint(k, !filed))
				}
			}
			slices.Sort(want)
			var got []string
			must(t, w.viewLast("test", 0, func(tx *txn) error {
				var e entries
				tx.behind = b
				e.begin(tx, []byte(from), []byte(prefix))
				for {
					key, pending, err := e.next()
					if key == nil || err != nil {
						return err
					}
					got = append(got, fmt.Sprint(string(key), pending))
				}
			}))
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, from %s:\n got %v\nwant %v", seed, from, got, want)
			}
		}
	}
}

// TestRemovalsAreForgotten: what is known of objects that were removed does not grow for ever.
func TestRemovalsAreForgotten(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 8})
	most := 0
	for n := range 60 {
		if n == 20 {
			w.put(t, object(2, 1), "a", "x")
		}
		w.record(t, Record{Address: object(1, n)})
		must(t, w.Mark(ctx, Garbage, object(1, n)))
		w.removed(t)
		if most = max(most, len(w.backlog.Load().now.unsure)); n == 19 && most > 0 {
			t.Error("removals are remembered, and nothing is pending")
		}
	}
	if most == 0 || most > 8 {
		t.Errorf("%d objects were remembered", most)
	}
}

// TestFewRuns: the runs of a backlog stay few, whatever comes in which order.
func TestFewRuns(t *testing.T) {
	b := newBacklog()
	n := 0
	for i := range 3000 {
		keys := make([]string, 1+i%17)
		for k := range keys {
			n++
			keys[k] = fmt.Sprint((n * 7919) % 100_003)
		}
		b.add(keys)
		runs, in := *b.runs.Load(), 0
		for _, run := range runs {
			if in += len(run); !slices.IsSorted(run) {
				t.Fatal("a run is out of order")
			}
		}
		if len(runs) > 16 || in != n {
			t.Fatalf("%d runs of %d entries, want %d", len(runs), in, n)
		}
	}
}

// TestSearchBesideIndexing: what was recorded before a search began is found, whether it is pending, on its way to the
// index, or there.
func TestSearchBesideIndexing(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 16})
	var put [4]atomic.Int64 // how many objects each goroutine has put
	var done atomic.Bool
	var wg sync.WaitGroup
	for g := range put {
		wg.Go(func() {
			for n := 1; n <= 400 && !t.Failed(); n++ {
				must(t, w.Put(ctx, Record{Address: object(1+g, n), Attrs: []Attr{{"same", "x", Auto}, {"n", fmt.Sprint(n), Auto}}}))
				put[g].Store(int64(n))
			}
			done.Store(true)
		})
	}
	for g := range put {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 3))
			for !done.Load() && !t.Failed() {
				most := int(put[g].Load())
				if most == 0 {
					continue
				}
				n := 1 + rng.IntN(most)
				for _, f := range []Filter{{"n", EQ, fmt.Sprint(n)}, {"n", GE, fmt.Sprint(n)}} {
					p, err := w.Search(ctx, Query{Container: id(1 + g), Filters: []Filter{f}, Limit: 1})
					if err != nil || len(p.Found) != 1 || p.Found[0].Address != object(1+g, n) {
						t.Errorf("object %d of %d: %v, %v", n, most, p.Found, err)
					}
				}
				p, err := w.Search(ctx, Query{Container: id(1 + g), Filters: []Filter{{"same", EQ, "x"}}})
				if err != nil || len(p.Found) < most {
					t.Errorf("%d objects of %d: %v", len(p.Found), most, err)
				}
			}
		})
	}
	wg.Wait()
	w.check(t)
}

// TestIndexedMeanwhile: the index is written, and an object is put, in the moment before the transaction of a search begins.
func TestIndexedMeanwhile(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 1 << 20})
	w.put(t, object(1, 1), "a", "x")
	times := 0
	w.DB.opts.meanwhile = func() {
		if times++; times == 1 {
			w.index(t)
			w.put(t, object(1, 2), "a", "x")
		}
	}
	p, err := w.Search(ctx, Query{Container: id(1), Filters: []Filter{{"a", EQ, "x"}}})
	if err != nil || len(p.Found) != 2 || times != 2 {
		t.Errorf("found %v, %v, in %d transactions", p.Found, err, times)
	}
}

// TestReopenWhileIndexing: a database that is closed in the middle of writing the index misses nothing later.
func TestReopenWhileIndexing(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 2 * indexParts})
	for n := range 100 {
		w.put(t, object(1, n), "a", "x")
		if n%3 == 0 {
			w.reopen(t)
		}
		p, err := w.Search(ctx, Query{Container: id(1), Filters: []Filter{{"a", EQ, "x"}}})
		if err != nil || len(p.Found) != n+1 {
			t.Fatalf("%d objects of %d: %v", len(p.Found), n+1, err)
		}
	}
	w.check(t)
}

// TestIndexingFails: as long as the index cannot be written all is pending and found, until it is too much; then records
// are refused, and taken again when it can be written.
func TestIndexingFails(t *testing.T) {
	var fails, indexing bool
	var told atomic.Int64
	w := newWorld(t, Options{
		NoSync: true, Ballast: -1, pending: 8,
		watch: func(op string, _ int) { indexing = op == "index" },
		boltCommit: func(commit func() error) error {
			if fails && indexing {
				return syscall.ENOSPC
			}
			return commit()
		},
		Hooks: blobstor.Hooks{Fault: func(string, error) { told.Add(1) }},
	})
	fails = true
	n := 0
	for ; n < 100; n++ {
		err := w.Put(ctx, Record{Address: object(1, n), Attrs: []Attr{{"a", "x", Auto}}})
		if errors.Is(err, blobstor.ErrNoSpace) {
			break
		}
		must(t, err)
	}
	if n < 8*pendingMost || n > 8*pendingMost+10 { // and those that the first part failed with
		t.Errorf("%d records were taken", n)
	}
	for gone := range 3 { // removals go on
		if got := pages(t, w.DB, Query{Container: id(1), Limit: 50, Filters: []Filter{{"a", EQ, "x"}}}); len(got) != n-gone {
			t.Errorf("%d of %d found", len(got), n-gone)
		}
		must(t, w.Mark(ctx, Garbage, object(1, gone)))
		w.removed(t)
		w.check(t)
		w.reopen(t)
	}
	fails = false
	for n := range 50 {
		must(t, w.Put(ctx, Record{Address: object(2, n), Attrs: []Attr{{"a", "x", Auto}}}))
	}
	w.index(t)
	w.check(t)
	if told.Load() > 0 {
		t.Error("a full disk is told as a fault")
	}
}

// TestPendingDamaged: an object whose record cannot be read stops no other one from being indexed, and a search reports it. If it
// is not known what is pending, a search that would miss it says so, for ever.
func TestPendingDamaged(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 1 << 20})
	for n := range 10 {
		w.put(t, object(1, n), "a", "x")
	}
	w.damage(t, recs, w.keyOf(object(1, 3)))
	w.reopen(t)
	for range 2 {
		wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
		q := Query{Container: id(1), Filters: []Filter{{"a", EQ, "x"}}}
		p, err := w.Search(ctx, q)
		wantIs(t, err, blobstor.ErrCorrupt)
		q.After = p.Next
		rest, err := w.Search(ctx, q)
		must(t, err)
		if len(p.Found) != 3 || len(rest.Found) != 6 {
			t.Errorf("found %d and %d", len(p.Found), len(rest.Found))
		}
		w.index(t)
	}
	w.put(t, object(1, 20), "a", "x")
	var key []byte
	must(t, w.viewLast("test", 0, func(t *txn) error {
		return t.eachPending(func(k, _, _ []byte) { key = slices.Clone(k) })
	}))
	w.damage(t, pending, key)
	for range 3 {
		w.reopen(t)
		wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
		_, err := w.Search(ctx, Query{Container: id(1), Filters: []Filter{{"a", EQ, "x"}}})
		wantIs(t, err, blobstor.ErrCorrupt)
		w.wantState(t, object(1, 20), Available)
		w.put(t, object(1, 21), "a", "x")
		w.index(t)
	}
	must(t, w.Reset(ctx))
	w.put(t, object(1, 20), "a", "x")
	if got := pages(t, w.DB, Query{Container: id(1), Limit: 3, Filters: []Filter{{"a", EQ, "x"}}}); len(got) != 1 {
		t.Errorf("found %d after a Reset", len(got))
	}
	w.check(t)
}

// TestIndexedTwice: what a crash in the middle leaves, entries of objects that are still pending, does no harm.
func TestIndexedTwice(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 1 << 20})
	for n := range 10 {
		w.put(t, object(1, n), "a", fmt.Sprint("x", n), "b", "5")
	}
	half := func() {
		w.beginIndexing()
		must(t, w.doOne(ctx, 0, func(t *txn) error {
			w.indexing.write(t, w.indexing.entries[:15], func(string) bool { return true })
			return nil
		}))
	}
	half()
	for range 2 {
		for _, f := range []Filter{{"a", Prefix, "x"}, {"b", EQ, "5"}, {"b", LT, "6"}} {
			if got := pages(t, w.DB, Query{Container: id(1), Limit: 3, Filters: []Filter{f}}); len(got) != 10 {
				t.Errorf("%v: found %d", f, len(got))
			}
		}
		w.check(t)
		w.reopen(t)
	}
	must(t, w.Mark(ctx, Garbage, object(1, 0), object(1, 5)))
	w.removed(t)
	w.check(t)
	w.index(t)
	w.check(t)
	must(t, w.Drop(ctx, id(1)))
	w.wantNoKeys(t)
}
