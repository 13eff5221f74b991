package metabase

import "testing"

// What is to be removed has a mark, or Collect would never find it. These are ways in which one was missing.

func (w *world) wantGone(tb testing.TB, numbers ...int) {
	tb.Helper()
	w.removed(tb)
	for _, n := range numbers {
		w.wantState(tb, object(1, n), Missing)
	}
}

var missingMarks = map[string]func(t *testing.T, w *world){
	"a tombstone is revived": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, tombstone(1, 2, 1))
		must(t, w.Mark(ctx, None, object(1, 1))) // The tombstone is garbage now,
		must(t, w.Mark(ctx, None, object(1, 2))) // and counts again.
		w.wantState(t, object(1, 1), Buried)
		w.removed(t)
		w.wantState(t, object(1, 2), Available)
		w.wantState(t, object(1, 1), Buried) // of which nothing is stored
		w.wantCounters(t, 1, Counters{Objects: 1, Tombstones: 1})
	},
	"a tombstone is put again": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, tombstone(1, 2, 1))
		must(t, w.Mark(ctx, None, object(1, 1)))
		w.record(t, tombstone(1, 2, 1))
		w.removed(t)
		w.wantCounters(t, 1, Counters{Objects: 1, Tombstones: 1})
	},
	"a tombstone that is put again is refused like a new one": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, tombstone(1, 2, 1))
		must(t, w.Mark(ctx, None, object(1, 1)))
		w.record(t, lock(1, 3, 1, 0))
		wantIs(t, w.Put(ctx, tombstone(1, 2, 1)), ErrHeld)
	},
	"a part comes to a marked parent": func(t *testing.T, w *world) {
		w.record(t, part(1, 1, 10, ""), virtual(1, 10))
		must(t, w.Mark(ctx, Garbage, object(1, 10)))
		wantIs(t, w.Put(ctx, part(1, 2, 10, "")), ErrGarbage)
		must(t, w.putEntries(ctx, []Entry{{Records: []Record{part(1, 2, 10, "")}}}, true))
		w.wantState(t, object(1, 2), Marked)
		w.wantGone(t, 1, 2, 10)
	},
	"a lock comes before the tombstone, and the object last": func(t *testing.T, w *world) {
		for _, r := range []Record{lock(1, 3, 1, 100), tombstone(1, 2, 1), {Address: object(1, 1)}} {
			must(t, w.putEntries(ctx, []Entry{{Records: []Record{r}}}, true))
		}
		w.wantState(t, object(1, 1), Available)
		w.epoch++
		w.removed(t)
		w.wantCounters(t, 1, Counters{Objects: 2, Tombstones: 1, Locks: 1})
	},
	"a redundant object expires": func(t *testing.T, w *world) {
		w.record(t, Record{Address: object(1, 1), Expires: 100})
		must(t, w.Mark(ctx, Redundant, object(1, 1)))
		w.wantState(t, object(1, 1), Available)
		w.epoch++
		w.wantGone(t, 1)
	},
	"the last part that names the parent goes before one of its chain": func(t *testing.T, w *world) {
		w.record(t, part(1, 1, 0, "c"))
		w.record(t, part(1, 2, 10, "c"), virtual(1, 10))
		must(t, w.Mark(ctx, Garbage, object(1, 2)))
		w.wantGone(t, 2, 10)
		w.wantState(t, object(1, 1), Available)
	},
	"a tombstone is a part of its own target": func(t *testing.T, w *world) {
		r := tombstone(1, 2, 10)
		r.Parent = id(10)
		w.record(t, part(1, 1, 10, ""), virtual(1, 10))
		w.record(t, r)
		must(t, w.Mark(ctx, Redundant, object(1, 2)))
		must(t, w.Mark(ctx, None, object(1, 10)))
		w.check(t)
	},
}

func TestMissingMarks(t *testing.T) {
	for name, test := range missingMarks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{NoSync: true, Ballast: -1})
			test(t, w)
			w.check(t)
		})
	}
}
