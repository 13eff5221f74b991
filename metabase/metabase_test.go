package metabase

import (
	"errors"
	"reflect"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestPutAndGet(t *testing.T) {
	w := newWorld(t, Options{})
	want := Record{
		Address: object(1, 1), Size: 1 << 40, Expires: 200, Chain: "a chain", Parent: id(9), Location: "somewhere",
		Attrs: []Attr{{"FileName", "cat.jpg", Auto}, {"", "empty key", Auto}, {"zero\x00s", "\x00\xff\x00", Opaque}, {"n", "-12", Auto}, {"hidden", "x", Stored}},
	}
	must(t, w.Put(ctx, want))
	for range 2 {
		got, err := w.Get(ctx, want.Address)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
		w.check(t)
		w.reopen(t)
	}
	c, err := w.Counters(ctx, id(1))
	if want := (Counters{Objects: 1, Payload: 1 << 40}); err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	ok, err := w.Exists(ctx, object(1, 2))
	if ok || err != nil {
		t.Errorf("an object that is not there: %v, %v", ok, err)
	}
	_, err = w.Get(ctx, object(2, 2))
	wantIs(t, err, blobstor.ErrNotFound)
}

// TestPrecedence is the table of what decides about an object.
func TestPrecedence(t *testing.T) {
	const target, parent = 1, 2
	for _, c := range []struct {
		name                                             string
		container, held, buried, marked, expired, parent bool
		want                                             State
		removed                                          bool
	}{
		{name: "nothing", want: Available},
		{name: "expired", expired: true, want: Expired},
		{name: "mark before expiry", expired: true, marked: true, want: Marked, removed: true},
		{name: "tombstone before mark", marked: true, buried: true, want: Buried, removed: true},
		{name: "hold before expiry", held: true, expired: true, want: Available},
		{name: "hold before mark", held: true, marked: true, want: Available},
		{name: "container before hold", held: true, container: true, want: ContainerGone, removed: true},
		{name: "container before all", container: true, marked: true, buried: true, expired: true, want: ContainerGone, removed: true},
		{name: "parent is buried", parent: true, want: Buried, removed: true},
		{name: "parent is buried, own hold", parent: true, held: true, want: Available},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			r := Record{Address: object(1, target), Expires: 100}
			if c.parent {
				r.Parent = id(parent)
				must(t, w.Put(ctx, r, Record{Address: object(1, parent), Virtual: true}))
			} else {
				must(t, w.Put(ctx, r))
			}
			if c.marked {
				must(t, w.Mark(ctx, Garbage, object(1, target)))
			}
			if c.held && !c.marked {
				must(t, w.Put(ctx, Record{Address: object(1, 10), Kind: Lock, Target: id(target)}))
			}
			if c.held && c.marked { // a lock comes late only in a rebuild
				es := []Entry{{Records: []Record{{Address: object(1, 10), Kind: Lock, Target: id(target)}}}}
				must(t, w.putEntries(ctx, es, true))
			}
			if c.buried {
				must(t, w.Put(ctx, Record{Address: object(1, 11), Kind: Tombstone, Target: id(target)}))
			}
			if c.parent {
				err := w.Put(ctx, Record{Address: object(1, 11), Kind: Tombstone, Target: id(parent)})
				must(t, err)
			}
			if c.container {
				must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
			}
			if c.expired {
				w.epoch++
			}
			w.wantState(t, object(1, target), c.want)
			w.check(t)
			gone := false
			for _, a := range w.removed(t) {
				gone = gone || a == object(1, target)
			}
			if gone != c.removed {
				t.Errorf("removed: %v", gone)
			}
			w.check(t)
		})
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t, Options{})
	w.put(t, object(1, 1))
	w.put(t, object(1, 2))
	must(t, w.Put(ctx, Record{Address: object(1, 10), Kind: Lock, Target: id(1), Expires: 100}))
	before, _ := w.Counters(ctx, id(1))
	tombstone := func(n, target int) Record { return Record{Address: object(1, n), Kind: Tombstone, Target: id(target)} }
	wantIs(t, w.Put(ctx, tombstone(20, 1)), ErrHeld)
	wantIs(t, w.Put(ctx, tombstone(20, 10)), ErrTarget)
	wantIs(t, w.Put(ctx, Record{Address: object(1, 21), Expires: 99}), ErrExpired)
	wantIs(t, w.Put(ctx, Record{}), ErrRecord)
	wantIs(t, w.Put(ctx), ErrRecord)
	wantIs(t, w.Put(ctx, Record{Address: object(1, 5)}, Record{Address: object(2, 6)}), ErrRecord)
	after, _ := w.Counters(ctx, id(1))
	if before != after {
		t.Errorf("%+v, then %+v", before, after)
	}
	w.epoch++ // the lock is over
	must(t, w.Put(ctx, tombstone(20, 1)))
	wantIs(t, w.Put(ctx, Record{Address: object(1, 22), Kind: Lock, Target: id(1)}), ErrBuried)
	wantIs(t, w.Put(ctx, Record{Address: object(1, 23), Kind: Lock, Target: id(20)}), ErrTarget)
	must(t, w.Put(ctx, tombstone(24, 77)))
	err := w.Put(ctx, Record{Address: object(1, 77)})
	wantIs(t, err, ErrBuried)
	if blobstor.IsFault(err) || errors.Is(err, blobstor.ErrCorrupt) {
		t.Errorf("%v is a fault", err)
	}
	w.check(t)
}
