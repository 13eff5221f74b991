package metabase

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// writes are all calls that change something, also those that would have nothing to do.
func writes(w *world) map[string]func() error {
	return map[string]func() error{
		"put":             func() error { return w.Put(ctx, Record{Address: object(1, 2)}) },
		"put nothing":     func() error { return w.Put(ctx) },
		"batch":           func() error { return w.PutBatch(ctx, []Entry{{Records: []Record{{Address: object(1, 3)}}}}) },
		"empty batch":     func() error { return w.PutBatch(ctx, nil) },
		"invalid batch":   func() error { return w.PutBatch(ctx, make([]Entry, 2)) },
		"mark":            func() error { return w.Mark(ctx, Garbage, object(1, 1)) },
		"mark nothing":    func() error { return w.Mark(ctx, Garbage) },
		"an unknown mark": func() error { return w.Mark(ctx, markKinds, object(1, 1)) },
		"drop":            func() error { return w.Drop(ctx, id(1)) },
		"drop nothing":    func() error { return w.Drop(ctx, id(77)) },
		"collect":         func() error { _, err := w.Collect(ctx, 9, nil); return err },
		"collect nothing": func() error { _, err := w.Collect(ctx, 0, nil); return err },
		"compact":         func() error { return w.Compact(ctx) },
		"reset":           func() error { return w.Reset(ctx) },
	}
}

func reads(w *world) map[string]func() error {
	return map[string]func() error{
		"get":        func() error { _, err := w.Get(ctx, object(1, 1)); return err },
		"exists":     func() error { _, err := w.Exists(ctx, object(1, 1)); return err },
		"status":     func() error { _, err := w.Status(ctx, object(1, 1)); return err },
		"list":       func() error { _, err := w.List(ctx, blobstor.Address{}, 9); return err },
		"list none":  func() error { _, err := w.List(ctx, blobstor.Address{}, 0); return err },
		"expired":    func() error { _, err := w.Expired(ctx, blobstor.Address{}, 9); return err },
		"search":     func() error { _, err := w.Search(ctx, Query{Container: id(1)}); return err },
		"containers": func() error { _, err := w.Containers(ctx); return err },
		"counters":   func() error { _, err := w.Counters(ctx, id(1)); return err },
		"inspect":    func() error { _, err := w.Inspect(ctx, object(1, 1)); return err },
		"check":      func() error { return w.Check(ctx) },
	}
}

// TestClosed: every call after Close says so, and Close again is no error.
func TestClosed(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1))
	must(t, w.Close())
	must(t, w.Close())
	calls := writes(w)
	for name, call := range reads(w) {
		calls[name] = call
	}
	calls["set read-only"] = func() error { return w.SetReadOnly(ctx, true) }
	calls["a query that makes no sense"] = func() error { _, err := w.Search(ctx, Query{}); return err }
	for name, call := range calls {
		if err := call(); !errors.Is(err, blobstor.ErrClosed) || blobstor.IsFault(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadOnly: a database that takes no writes refuses each, changes nothing and answers every read.
func TestReadOnly(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1))
	refuses := func(name string) {
		before := w.dump(t)
		for call, write := range writes(w) {
			if err := write(); !errors.Is(err, blobstor.ErrReadOnly) || blobstor.IsFault(err) {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
		for call, read := range reads(w) {
			if err := read(); err != nil {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
		if w.dump(t) != before {
			t.Errorf("%s: it changed", name)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	wantIs(t, w.SetReadOnly(canceled, true), context.Canceled)
	w.put(t, object(1, 1))
	must(t, w.SetReadOnly(ctx, true))
	refuses("set")
	must(t, w.SetReadOnly(ctx, false))
	w.put(t, object(1, 9))
	must(t, w.Close())
	w.DB = nil
	w.opts = Options{ReadOnly: true}
	w.reopen(t)
	refuses("opened")
	wantIs(t, w.SetReadOnly(ctx, false), blobstor.ErrReadOnly)
	must(t, w.SetReadOnly(ctx, true))
}

// TestSetReadOnlyWaits: a write that is inside is done when SetReadOnly returns, and none is taken after that.
func TestSetReadOnlyWaits(t *testing.T) {
	w, g := gated(t)
	arrived, open := g.hold()
	put := make(chan error, 1)
	go func() { put <- w.Put(ctx, Record{Address: object(1, 1)}) }()
	<-arrived
	set := make(chan error, 1)
	go func() { set <- w.SetReadOnly(ctx, true) }()
	select {
	case err := <-set:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(open)
	must(t, <-set)
	before := g.commits
	must(t, <-put)
	w.wantState(t, object(1, 1), Available)
	wantIs(t, w.Put(ctx, Record{Address: object(1, 2)}), blobstor.ErrReadOnly)
	if g.commits != before {
		t.Error("something was committed")
	}
}

// TestPressed: while the ballast is missing only what makes room is taken, alone or in a batch.
func TestPressed(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 5; n++ {
		w.put(t, object(1, n))
	}
	w.put(t, object(2, 1))
	must(t, w.Mark(ctx, Garbage, object(1, 1)))
	w.opts.Ballast = 1 << 60 // no disk has the room
	w.reopen(t)
	es := []Entry{{Records: []Record{{Address: object(1, 10)}}}, {Records: []Record{tombstone(1, 11, 2)}}}
	s := newShelf(t)
	s.put(Record{Address: object(1, 12)})
	_, rebuilt := Rebuild(ctx, w.DB, blobstor.Stream(s), parseJSON, nil)
	for name, err := range map[string]error{
		"put":       w.Put(ctx, Record{Address: object(1, 10)}),
		"put again": w.Put(ctx, Record{Address: object(1, 2), Location: "moved"}),
		"lock":      w.Put(ctx, lock(1, 10, 2, 0)),
		"revive":    w.Mark(ctx, None, object(1, 1)),
		"batch":     w.PutBatch(ctx, es),
		"rebuild":   rebuilt,
	} {
		if !errors.Is(err, ErrPressed) || !errors.Is(err, blobstor.ErrNoSpace) || blobstor.IsFault(err) || !IsRefusal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if es[1].Err != nil {
		t.Errorf("a tombstone: %v", es[1].Err)
	}
	must(t, w.Put(ctx, tombstone(1, 13, 3)))
	must(t, w.Mark(ctx, Garbage, object(1, 4)))
	if gone := w.removed(t); len(gone) != 4 {
		t.Errorf("%d removed", len(gone))
	}
	must(t, w.Drop(ctx, id(2)))
	w.wantCounters(t, 1, Counters{Objects: 3, Roots: 1, Tombstones: 2, Payload: 10})
	w.check(t)
	w.opts.Ballast = -1
	w.reopen(t)
	w.put(t, object(1, 10))
}

// TestContainersInOrder: in the order of IDs, whatever came first.
func TestContainersInOrder(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for _, c := range []int{700, 3, 1 << 24, 65, 66, 1, 300} {
		w.put(t, object(c, 1))
	}
	must(t, w.Drop(ctx, id(65)))
	w.put(t, object(2, 1))
	ids, err := w.Containers(ctx)
	want := []blobstor.ID{id(1), id(2), id(3), id(66), id(300), id(700), id(1 << 24)}
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, %v", ids, err)
	}
}

// TestResetBesideCalls resets a database under readers, writers and maintenance: each call sees it as it was or empty,
// and what is put after the last Reset stays.
func TestResetBesideCalls(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	beside := func(call func(n int) error) {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := call(n); err != nil && !errors.Is(err, blobstor.ErrNotFound) {
					t.Error(err)
					return
				}
			}
		})
	}
	beside(func(n int) error { return w.Put(ctx, part(1+n%3, n, 1<<30, "c"), virtual(1+n%3, 1<<30)) })
	beside(func(n int) error { return w.Mark(ctx, Garbage, object(1+n%3, n)) })
	beside(func(n int) error { return w.Drop(ctx, id(1+n%3)) })
	beside(func(n int) error {
		_, err := w.Collect(ctx, 9, func(context.Context, []blobstor.Item) error { return nil })
		return err
	})
	beside(func(n int) error { _, err := w.Get(ctx, object(1+n%3, n)); return err })
	beside(func(n int) error { _, err := w.List(ctx, blobstor.Address{}, 100); return err })
	beside(func(n int) error { return w.Check(ctx) })
	for range 30 {
		must(t, w.Reset(ctx))
	}
	close(stop)
	wg.Wait()
	must(t, w.Reset(ctx))
	w.put(t, object(2, 2))
	must(t, w.Reset(ctx))
	if w.wantNoKeys(t); len(w.dump(t)) > 100 {
		t.Errorf("left: %s", w.dump(t))
	}
	w.put(t, object(2, 1))
	w.check(t)
	w.reopen(t)
	w.wantState(t, object(2, 1), Available)
}
