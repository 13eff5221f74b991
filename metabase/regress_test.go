package metabase

import (
	"context"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// The cases are bugs that other databases of this kind had; the numbers are those of the project's collection of them.
// Those on searches, listings and files are in regress_search_test.go.

func tombstone(c, n, target int) Record {
	return Record{Address: object(c, n), Kind: Tombstone, Target: id(target)}
}

func lock(c, n, target int, expires uint64) Record {
	return Record{Address: object(c, n), Kind: Lock, Target: id(target), Expires: expires}
}

func part(c, n, parent int, chain string) Record {
	r := Record{Address: object(c, n), Size: 10, Chain: chain}
	if parent > 0 {
		r.Parent = id(parent)
	}
	return r
}

func virtual(c, n int) Record { return Record{Address: object(c, n), Size: 100, Virtual: true} }

func (w *world) record(tb testing.TB, recs ...Record) {
	tb.Helper()
	must(tb, w.Put(ctx, recs...))
}

func (w *world) wantCounters(tb testing.TB, c int, want Counters) {
	tb.Helper()
	if got, err := w.Counters(ctx, id(c)); err != nil || got != want {
		tb.Errorf("counters %+v, %v, want %+v", got, err, want)
	}
}

// split records an object of three parts and a link; only the last part and the link name it.
func (w *world) split(tb testing.TB, c, parent int) (parts []int) {
	tb.Helper()
	w.record(tb, part(c, parent+1, 0, "split"))
	w.record(tb, part(c, parent+2, 0, "split"))
	w.record(tb, part(c, parent+3, parent, "split"), virtual(c, parent))
	link := part(c, parent+4, parent, "split")
	link.Kind = Link
	w.record(tb, link, virtual(c, parent))
	return []int{parent + 1, parent + 2, parent + 3, parent + 4}
}

var regressions = map[string]func(t *testing.T, w *world){
	"01 a marked container changes only its own counters": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.put(t, object(2, 1))
		must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
		w.removed(t)
		w.wantCounters(t, 1, Counters{})
		w.wantCounters(t, 2, Counters{Objects: 1, Roots: 1, Payload: 10})
	},
	"03 a collected object leaves the counters": func(t *testing.T, w *world) {
		w.split(t, 1, 10)
		w.record(t, tombstone(1, 1, 10))
		w.removed(t)
		w.wantCounters(t, 1, Counters{Objects: 1, Tombstones: 1})
	},
	"06 payload and parents leave the counters together": func(t *testing.T, w *world) {
		w.record(t, part(1, 1, 10, ""), virtual(1, 10))
		w.record(t, part(1, 2, 10, ""), virtual(1, 10))
		w.wantCounters(t, 1, Counters{Objects: 2, Roots: 1, Payload: 20})
		must(t, w.Mark(ctx, Garbage, object(1, 10)))
		w.wantCounters(t, 1, Counters{Objects: 2, Roots: 1, Garbage: 3})
		w.removed(t)
		w.wantCounters(t, 1, Counters{})
	},
	"11 the parts of an expired parent do not hide from removal": func(t *testing.T, w *world) {
		up := virtual(1, 10)
		up.Expires = 100
		w.record(t, part(1, 11, 10, ""), up)
		w.epoch++
		w.wantState(t, object(1, 11), Expired)
		w.removeExpired(t)
		w.wantCounters(t, 1, Counters{})
	},
	"12 a mark of what is not stored is no work": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		must(t, w.Mark(ctx, Garbage, object(1, 2), object(7, 2)))
		if gone := w.removed(t); len(gone) > 0 {
			t.Errorf("removed %v", gone)
		}
		w.wantCounters(t, 1, Counters{Objects: 1, Roots: 1, Payload: 10})
	},
	"13 a virtual object stops no collection": func(t *testing.T, w *world) {
		w.split(t, 1, 10)
		w.put(t, object(1, 50))
		must(t, w.Mark(ctx, Garbage, object(1, 10), object(1, 50)))
		for n := 5; n > 0; n-- { // one by one, and the virtual one with its last part
			got, err := w.Collect(ctx, 1, func(context.Context, []blobstor.Item) error { return nil })
			if err != nil || got != 1 {
				t.Errorf("%d collected, %v", got, err)
			}
		}
		w.wantCounters(t, 1, Counters{})
	},
	"13 nor in a marked container, where it comes first": func(t *testing.T, w *world) {
		w.split(t, 1, 10)
		must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
		for range 4 {
			if got, err := w.Collect(ctx, 1, func(context.Context, []blobstor.Item) error { return nil }); err != nil || got != 1 {
				t.Errorf("%d collected, %v", got, err)
			}
		}
		w.wantCounters(t, 1, Counters{})
	},
	"14 a tombstone reaches every part, first and link": func(t *testing.T, w *world) {
		parts := w.split(t, 1, 10)
		w.record(t, tombstone(1, 1, 10))
		for _, n := range parts {
			w.wantState(t, object(1, n), Buried)
		}
		if gone := w.removed(t); len(gone) != len(parts) {
			t.Errorf("removed %v", gone)
		}
	},
	"15 a virtual object stays as long as it has parts": func(t *testing.T, w *world) {
		w.record(t, part(1, 11, 10, ""), virtual(1, 10))
		w.record(t, part(1, 12, 10, ""), virtual(1, 10))
		must(t, w.Mark(ctx, Garbage, object(1, 11)))
		w.removed(t)
		w.wantState(t, object(1, 10), Available)
		must(t, w.Mark(ctx, Garbage, object(1, 12)))
		w.removed(t)
		w.wantState(t, object(1, 10), Missing)
	},
	"16 an object does not come back when its tombstone expires": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		r := tombstone(1, 2, 1)
		r.Expires = 100
		w.record(t, r)
		w.epoch++
		w.wantState(t, object(1, 1), Buried)
		must(t, w.Mark(ctx, Garbage, object(1, 2)))
		w.wantState(t, object(1, 1), Marked)
		if gone := w.removed(t); len(gone) != 2 {
			t.Errorf("removed %v", gone)
		}
	},
	"21 a lock holds until its record goes": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, lock(1, 2, 1, 0))
		w.record(t, lock(1, 3, 1, 0))
		must(t, w.Mark(ctx, Garbage, object(1, 2)))
		w.removed(t)
		if s := w.state(t, object(1, 1)); !s.Held || s.By != id(3) {
			t.Errorf("%+v", s)
		}
	},
	"22 the parts of a held object are held": func(t *testing.T, w *world) {
		parts := w.split(t, 1, 10)
		w.record(t, lock(1, 1, 10, 0))
		must(t, w.Mark(ctx, Garbage, object(1, parts[0]), object(1, 10)))
		for _, n := range parts {
			w.wantState(t, object(1, n), Available)
			wantIs(t, w.Put(ctx, tombstone(1, 2, n)), ErrHeld)
		}
		if gone := w.removed(t); len(gone) > 0 {
			t.Errorf("removed %v", gone)
		}
	},
	"23 an expired object is expired once its lock is over": func(t *testing.T, w *world) {
		w.record(t, Record{Address: object(1, 1), Expires: 100})
		w.record(t, lock(1, 2, 1, 105))
		for range 5 {
			w.epoch++
			w.wantState(t, object(1, 1), Available)
		}
		w.epoch++
		w.wantState(t, object(1, 1), Expired)
	},
	"24 an expired lock holds nothing": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, lock(1, 2, 1, 100))
		w.epoch++
		w.record(t, tombstone(1, 3, 1))
		w.wantState(t, object(1, 1), Buried)
	},
	"25 a marked lock holds nothing": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, lock(1, 2, 1, 0))
		must(t, w.Mark(ctx, Garbage, object(1, 2)))
		w.record(t, tombstone(1, 3, 1))
		w.wantState(t, object(1, 1), Buried)
	},
	"26 what was buried cannot be locked": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		w.record(t, tombstone(1, 2, 1))
		wantIs(t, w.Put(ctx, lock(1, 3, 1, 0)), ErrBuried)
	},
	"27 a lock on what is not stored refuses tombstones": func(t *testing.T, w *world) {
		w.record(t, lock(1, 2, 1, 0))
		wantIs(t, w.Put(ctx, tombstone(1, 3, 1)), ErrHeld)
		if s := w.state(t, object(1, 1)); s.State != Missing || !s.Held {
			t.Errorf("%+v", s)
		}
		w.put(t, object(1, 1))
		wantIs(t, w.Put(ctx, tombstone(1, 3, 1)), ErrHeld)
	},
	"30 an expired object cannot be read": func(t *testing.T, w *world) {
		w.record(t, Record{Address: object(1, 1), Expires: 100})
		w.wantState(t, object(1, 1), Available)
		w.epoch++
		_, err := w.Get(ctx, object(1, 1))
		wantIs(t, err, ErrExpired, blobstor.ErrNotFound)
		if found, err := w.List(ctx, blobstor.Address{}, 9); err != nil || len(found) > 0 {
			t.Errorf("listed %v, %v", found, err)
		}
	},
	"50 a virtual object and its parts are listed once": func(t *testing.T, w *world) {
		w.split(t, 1, 10)
		if found, err := w.List(ctx, blobstor.Address{}, 9); err != nil || len(found) != 4 {
			t.Errorf("listed %v, %v", found, err)
		}
	},
	"55 parents in a circle": func(t *testing.T, w *world) {
		w.record(t, part(1, 1, 2, ""))
		w.record(t, part(1, 2, 3, ""))
		w.record(t, part(1, 3, 1, ""))
		for n := 1; n <= 3; n++ {
			w.wantState(t, object(1, n), Available)
		}
		w.record(t, tombstone(1, 9, 2))
		if gone := w.removed(t); len(gone) != 3 {
			t.Errorf("removed %v", gone)
		}
	},
	"58 what was revived is not removed again": func(t *testing.T, w *world) {
		parts := w.split(t, 1, 10)
		w.record(t, tombstone(1, 2, 10))
		wantIs(t, w.Mark(ctx, None, object(1, parts[0])), ErrBuried)
		must(t, w.Mark(ctx, None, object(1, 10)))
		if gone := w.removed(t); len(gone) != 1 || gone[0] != object(1, 2) {
			t.Errorf("removed %v", gone)
		}
		w.wantState(t, object(1, parts[0]), Available)
		w.wantCounters(t, 1, Counters{Objects: 4, Roots: 1, Links: 1, Payload: 40})
	},
	"73 a marked container takes nothing": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
		wantIs(t, w.Put(ctx, Record{Address: object(1, 2)}), ErrContainer)
		wantIs(t, w.Put(ctx, Record{Address: object(1, 1)}), ErrContainer)
	},
}

// removeExpired does what a program does about objects that expired.
func (w *world) removeExpired(tb testing.TB) {
	tb.Helper()
	page, err := w.Expired(ctx, blobstor.Address{}, 100)
	must(tb, err)
	for _, f := range page {
		must(tb, w.Mark(ctx, Garbage, f.Address))
	}
	w.removed(tb)
}

func TestRegress(t *testing.T) {
	for name, test := range regressions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{NoSync: true, Ballast: -1})
			test(t, w)
			w.check(t)
		})
	}
}
