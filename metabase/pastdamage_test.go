package metabase

import (
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestPastDamage: a caller gets past an object that cannot be read.
func TestPastDamage(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 9; n++ {
		w.put(t, object(1, n), "a", "x")
	}
	bad := object(1, 4)
	w.damage(t, recs, w.keyOf(bad))
	searching := func(q Query) func() (int, error) {
		q.Container = id(1)
		return func() (int, error) {
			page, err := w.Search(ctx, q)
			q.After = page.Next
			return len(page.Found), err
		}
	}
	for name, next := range map[string]func() (int, error){
		"list": func() func() (int, error) {
			var after blobstor.Address
			return func() (int, error) {
				page, err := w.List(ctx, after, 5)
				after = bad
				return len(page), err
			}
		}(),
		"search":       searching(where("a", EQ, "x")),
		"search by ID": searching(Query{}),
	} {
		n, err := next()
		wantIs(t, err, blobstor.ErrCorrupt)
		if e, ok := errors.AsType[*blobstor.Error](err); !ok || e.Address != bad || n != 3 {
			t.Errorf("%s: %d before %v", name, n, err)
		}
		if n, err = next(); n != 5 || err != nil {
			t.Errorf("%s: %d behind, %v", name, n, err)
		}
	}
}

// TestDamagedCounters: what a container holds is not known, but all that is in it, and all others work.
func TestDamagedCounters(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for c := 1; c <= 2; c++ {
		w.put(t, object(c, 1))
		must(t, w.Put(ctx, tombstone(c, 3, 2)))
	}
	w.damage(t, counts, container(1).append(nil))
	w.reopen(t)
	w.wantState(t, object(1, 1), Available)
	w.wantState(t, object(1, 2), Buried)
	_, err := w.Counters(ctx, id(1))
	wantIs(t, err, blobstor.ErrCorrupt)
	wantIs(t, w.Put(ctx, Record{Address: object(1, 9)}), blobstor.ErrCorrupt)
	w.put(t, object(2, 9))
	wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
}

// TestFaultHook: damage is told, in reads and writes; a refusal is not.
func TestFaultHook(t *testing.T) {
	told := make(chan string, 10)
	w := newWorld(t, Options{NoSync: true, Ballast: -1, Hooks: blobstor.Hooks{Fault: func(op string, err error) {
		wantIs(t, err, blobstor.ErrCorrupt)
		told <- op
	}}})
	w.put(t, object(1, 1))
	wantIs(t, w.Put(ctx, Record{Address: object(1, 2), Expires: 1}), ErrExpired)
	_, err := w.Get(ctx, object(1, 3))
	wantIs(t, err, blobstor.ErrNotFound)
	w.damage(t, recs, w.keyOf(object(1, 1)))
	_, err = w.Get(ctx, object(1, 1))
	wantIs(t, err, blobstor.ErrCorrupt)
	if op := <-told; op != "get" {
		t.Errorf("told of %q", op)
	}
	wantIs(t, w.Put(ctx, Record{Address: object(1, 1)}), blobstor.ErrCorrupt)
	if op := <-told; op != "commit" {
		t.Errorf("told of %q", op)
	}
}
