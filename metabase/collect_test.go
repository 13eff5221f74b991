package metabase

import (
	"context"
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestSameNumberTwice: values of one attribute that are the same number share its entry.
func TestSameNumberTwice(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1), "n", "7", "n", "007", "n", "+7", "n", "7")
	w.check(t)
	w.wantFound(t, where("n", GE, "7"), 1)
	w.wantFound(t, where("n", EQ, "007"), 1)
	must(t, w.Mark(ctx, Garbage, object(1, 1)))
	w.removed(t)
	w.wantNoKeys(t)
}

// TestGoneBlobs: what happens to an object while its blob is removed does not bring back its record: a record without
// its blob is what never may be.
func TestGoneBlobs(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world) error{
		"nothing":                func(*world) error { return nil },
		"it is revived":          func(w *world) error { return w.Mark(ctx, None, object(1, 1)) },
		"it is locked":           func(w *world) error { return w.Put(ctx, lock(1, 2, 1, 0)) },
		"its tombstone goes":     func(w *world) error { return w.Mark(ctx, Garbage, object(1, 9)) },
		"its mark is another":    func(w *world) error { return w.Mark(ctx, Garbage, object(1, 1)) },
		"its container is going": func(w *world) error { return w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{NoSync: true, Ballast: -1})
			w.put(t, object(1, 1))
			must(t, w.Mark(ctx, Redundant, object(1, 1)))
			n, err := w.Collect(ctx, 1, func(_ context.Context, items []blobstor.Item) error { return meanwhile(w) })
			if err != nil || n != 1 {
				t.Errorf("%d, %v", n, err)
			}
			if s := w.state(t, object(1, 1)); s.State != Missing && s.State != ContainerGone {
				t.Errorf("%+v", s)
			}
			w.check(t)
		})
	}
}

// TestCollectErrors: an error of one item keeps that one, an error without items all of them.
func TestCollectErrors(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 4; n++ {
		w.put(t, object(1, n))
	}
	must(t, w.Mark(ctx, Garbage, object(1, 1), object(1, 2), object(1, 3), object(1, 4)))
	broken := errors.New("broken")
	n, err := w.Collect(ctx, 10, func(context.Context, []blobstor.Item) error { return broken })
	if n != 0 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", n, err)
	}
	n, err = w.Collect(ctx, 10, func(_ context.Context, items []blobstor.Item) error {
		items[0].Err, items[1].Err = broken, blobstor.ErrNotFound
		return broken
	})
	if n != 3 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", n, err)
	}
	w.wantState(t, object(1, 1), Marked)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.Collect(canceled, 10, removesNothing(t))
	wantIs(t, err, context.Canceled)
	if n, err := w.Collect(ctx, 0, removesNothing(t)); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestCollectTakesLocks: what the program holds is passed over, and what Collect removes it holds.
func TestCollectTakesLocks(t *testing.T) {
	locks := blobstor.NewLocks()
	w := newWorld(t, Options{NoSync: true, Ballast: -1, Locks: locks})
	w.put(t, object(1, 1))
	w.put(t, object(1, 2))
	must(t, w.Mark(ctx, Garbage, object(1, 1), object(1, 2)))
	unlock := locks.Lock(object(1, 1))
	n, err := w.Collect(ctx, 10, func(_ context.Context, items []blobstor.Item) error {
		if _, ok := locks.TryLock(items[0].Address); ok || len(items) != 1 {
			t.Errorf("%d items, the first of which is free: %v", len(items), ok)
		}
		return nil
	})
	if n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	unlock()
	if gone := w.removed(t); len(gone) != 1 || gone[0] != object(1, 1) {
		t.Errorf("%v", gone)
	}
	if unlock, ok := locks.TryLock(object(1, 1)); !ok {
		t.Error("a lock was not given back")
	} else {
		unlock()
	}
}

// TestStuckKeepsNothing: what cannot be removed does not keep anything else from being removed, however small the limit.
func TestStuckKeepsNothing(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 9; n++ {
		w.put(t, object(1, n))
		w.put(t, object(2, n))
		must(t, w.Mark(ctx, Garbage, object(2, n)))
	}
	must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
	stuck := errors.New("stuck")
	for range 40 {
		_, err := w.Collect(ctx, 1, func(_ context.Context, items []blobstor.Item) error {
			if n := items[0].Address.Object[3]; n < 4 {
				items[0].Err = stuck
			}
			return nil
		})
		if err != nil && !errors.Is(err, stuck) {
			t.Fatal(err)
		}
	}
	w.wantCounters(t, 1, Counters{Objects: 3, Roots: 3, Payload: 30})
	w.wantCounters(t, 2, Counters{Objects: 3, Roots: 3, Garbage: 3})
}
