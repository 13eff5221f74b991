package blobstor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

func TestNewRefuses(t *testing.T) {
	m := storagetest.NewMemory(0)
	for name, test := range map[string]struct {
		routes []blobstor.Route
		want   []string // parts of the error
	}{
		"no route":      {nil, []string{"needs a route"}},
		"no name":       {[]blobstor.Route{{Storage: m}}, []string{"route 0"}},
		"long name":     {[]blobstor.Route{{Name: "ninechars", Storage: m}}, []string{"1 to 8"}},
		"capital":       {[]blobstor.Route{{Name: "sMall", Storage: m}}, []string{"1 to 8"}},
		"slash":         {[]blobstor.Route{{Name: "a/b", Storage: m}}, []string{"1 to 8"}},
		"not ASCII":     {[]blobstor.Route{{Name: "é", Storage: m}}, []string{"1 to 8"}},
		"twice":         {[]blobstor.Route{{Name: "a", Storage: m}, {Name: "a", Storage: m}}, []string{"taken"}},
		"negative":      {[]blobstor.Route{{Name: "a", MaxSize: -1, Storage: m}}, []string{"negative"}},
		"no storage":    {[]blobstor.Route{{Name: "a"}}, []string{"no storage"}},
		"several wrong": {[]blobstor.Route{{Name: "A", MaxSize: -1}}, []string{"1 to 8", "negative", "no storage"}},
	} {
		r, err := blobstor.New(test.routes...)
		if err == nil || r != nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, err, want)
			}
		}
	}
	newRouter(t, blobstor.Route{Name: "a", Storage: m}, blobstor.Route{Name: "12345678", MaxSize: 1, Storage: m})
}

func TestRouterRoutesBySize(t *testing.T) {
	r, small, large := two(t)
	for _, test := range []struct {
		size  int
		route *storagetest.Memory
		name  string
	}{{0, small, "small/"}, {100, small, "small/"}, {101, large, "large/"}} {
		addr := address(test.size)
		at := mustPut(t, r, addr, payload(test.size))
		if !strings.HasPrefix(string(at), test.name) {
			t.Errorf("%d bytes went to %q, want %s", test.size, at, test.name)
		}
		wantGet(t, test.route, addr, payload(test.size))
		w, err := r.NewWriter(ctx, int64(test.size))
		must(t, err)
		_, err = w.Write(payload(test.size))
		must(t, err)
		streamed, err := w.Commit(addr)
		must(t, err)
		if streamed != at {
			t.Errorf("a stream of %d bytes went to %q, a put to %q", test.size, streamed, at)
		}
	}
}

func TestRouterFallsThrough(t *testing.T) {
	own := errors.New("another error")
	for _, test := range []struct {
		name         string
		small, large error // of Put
		want         error
		not          error
		at           string
	}{
		{"full", blobstor.ErrNoSpace, nil, nil, nil, "large"},
		{"too large", blobstor.ErrTooLarge, nil, nil, nil, "large"},
		{"sync on a full disk", blobstor.Failed(syscall.ENOSPC), nil, nil, nil, "large"},
		{"failed", blobstor.Failed(syscall.EIO), nil, blobstor.ErrFailed, nil, ""},
		{"other", own, nil, own, nil, ""},
		{"both full", blobstor.ErrNoSpace, blobstor.ErrNoSpace, blobstor.ErrNoSpace, nil, ""},
		{"full, then too large", blobstor.ErrNoSpace, blobstor.ErrTooLarge, blobstor.ErrNoSpace, blobstor.ErrTooLarge, ""},
		{"too large, then full", blobstor.ErrTooLarge, blobstor.ErrNoSpace, blobstor.ErrNoSpace, blobstor.ErrTooLarge, ""},
		{"too large for both", blobstor.ErrTooLarge, blobstor.ErrTooLarge, blobstor.ErrTooLarge, nil, ""},
		{"full, then other", blobstor.ErrNoSpace, own, own, blobstor.ErrNoSpace, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			small, large := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewFault(storagetest.NewMemory(0))
			for f, err := range map[*storagetest.Fault]error{small: test.small, large: test.large} {
				if err != nil {
					f.Fail(storagetest.Put, 0, err)
					f.Fail(storagetest.PutBatch, 0, err)
				}
			}
			r := newRouter(t, blobstor.Route{Name: "small", MaxSize: 100, Storage: small}, blobstor.Route{Name: "large", Storage: large})
			check := func(at blobstor.Location, err error) {
				t.Helper()
				if test.want == nil && err != nil || test.want != nil && !errors.Is(err, test.want) || test.not != nil && errors.Is(err, test.not) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if name, _, _ := strings.Cut(string(at), "/"); name != test.at {
					t.Errorf("location %q, want one of %q", at, test.at)
				}
			}
			check(r.Put(ctx, address(1), payload(10)))
			items := []blobstor.Item{{Address: address(2), Data: payload(10)}}
			err := r.PutBatch(ctx, items)
			check(items[0].Location, err)
			for _, size := range []int64{-1, 10} { // what is in memory can still choose
				w, err := r.NewWriter(ctx, size)
				must(t, err)
				_, err = w.Write(payload(10))
				must(t, err)
				check(w.Commit(address(3)))
			}
		})
	}
}

func TestRouterTooLarge(t *testing.T) {
	m := storagetest.NewMemory(0)
	r := newRouter(t, blobstor.Route{Name: "a", MaxSize: 100, Storage: m})
	_, err := r.Put(ctx, address(1), payload(101))
	wantIs(t, err, blobstor.ErrTooLarge)
	if blobstor.IsFault(err) {
		t.Errorf("%v is a fault", err)
	}
	_, err = r.NewWriter(ctx, 101)
	wantIs(t, err, blobstor.ErrTooLarge)
	items := []blobstor.Item{{Address: address(1), Data: payload(101)}, {Address: address(2), Data: payload(100)}}
	wantIs(t, r.PutBatch(ctx, items), blobstor.ErrTooLarge)
	must(t, items[1].Err)
	if n := count(t, m); n != 1 {
		t.Errorf("%d blobs, want 1", n)
	}
}

func TestRouterDrains(t *testing.T) {
	old, fresh := storagetest.NewMemory(0), storagetest.NewMemory(0)
	mustPut(t, old, address(1), payload(10))
	r := newRouter(t,
		blobstor.Route{Name: "old", MaxSize: 100, Storage: old, Drain: true},
		blobstor.Route{Name: "new", Storage: fresh})
	wantGet(t, r, address(1), payload(10))
	if at := mustPut(t, r, address(2), payload(10)); !strings.HasPrefix(string(at), "new/") {
		t.Errorf("a blob went to %q", at)
	}
	must(t, r.PutBatch(ctx, []blobstor.Item{{Address: address(3), Data: payload(3)}}))
	must(t, r.Delete(ctx, address(1), ""))
	if n, m := count(t, old), count(t, fresh); n != 0 || m != 2 {
		t.Errorf("%d blobs in the draining route and %d beside, want 0 and 2", n, m)
	}

	all := newRouter(t, blobstor.Route{Name: "old", Storage: old, Drain: true})
	_, err := all.Put(ctx, address(1), nil)
	wantIs(t, err, blobstor.ErrReadOnly)
	_, err = all.NewWriter(ctx, 1<<30)
	wantIs(t, err, blobstor.ErrReadOnly)
	w, err := all.NewWriter(ctx, -1)
	must(t, err)
	_, err = w.Write(payload(200_000))
	wantIs(t, err, blobstor.ErrReadOnly)
	wantIs(t, all.PutBatch(ctx, []blobstor.Item{{}}), blobstor.ErrReadOnly)
}

func TestRouterDeletesEverywhere(t *testing.T) {
	r, small, large := two(t)
	for i, m := range []*storagetest.Memory{small, large} {
		mustPut(t, m, address(1), payload(10))
		mustPut(t, m, address(2+i), payload(10))
	}
	if n := count(t, r); n != 4 {
		t.Errorf("All yielded %d blobs, want one of each route: 4", n)
	}
	must(t, r.Delete(ctx, address(1), "large/"))
	wantIs(t, r.Delete(ctx, address(1), ""), blobstor.ErrNotFound)
	items := []blobstor.Item{{Address: address(2)}, {Address: address(1)}, {Address: address(3), Location: "small/?"}}
	wantIs(t, r.DeleteBatch(ctx, items), blobstor.ErrNotFound)
	if items[0].Err != nil || items[2].Err != nil || count(t, r) != 0 {
		t.Errorf("errors %v and %v, %d blobs left", items[0].Err, items[2].Err, count(t, r))
	}
}

// TestRouterDeleteIsNotCutShort: a context that ends between two routes must not let the first delete look undone.
func TestRouterDeleteIsNotCutShort(t *testing.T) {
	small, large := storagetest.NewMemory(0), storagetest.NewMemory(0)
	mustPut(t, small, address(1), payload(1))
	mustPut(t, large, address(1), payload(1))
	ctx, cancel := context.WithCancel(ctx)
	r := newRouter(t, blobstor.Route{Name: "small", MaxSize: 10, Storage: endsContext{small, cancel}}, blobstor.Route{Name: "large", Storage: large})
	must(t, r.Delete(ctx, address(1), ""))
	if n := count(t, large); n != 0 {
		t.Errorf("%d copies left", n)
	}
	wantIs(t, r.Delete(ctx, address(1), ""), context.Canceled)
}

type endsContext struct {
	blobstor.Storage
	cancel func()
}

func (s endsContext) Delete(ctx context.Context, addr blobstor.Address, at blobstor.Location) error {
	defer s.cancel()
	return s.Storage.Delete(ctx, addr, at)
}

// TestRouterNotFoundIsAFact: what one route could not look up is not missing.
func TestRouterNotFoundIsAFact(t *testing.T) {
	lookups := []storagetest.Method{storagetest.Get, storagetest.Stat, storagetest.ReadRange, storagetest.Delete, storagetest.DeleteBatch}
	for sick := range 3 {
		var routes []blobstor.Route
		var faults []*storagetest.Fault
		for i, name := range []string{"a", "b", "c"} {
			f := storagetest.NewFault(storagetest.NewMemory(0))
			faults = append(faults, f)
			routes = append(routes, blobstor.Route{Name: name, MaxSize: int64(i+1) * 10, Storage: f})
		}
		r := newRouter(t, routes...)
		mustPut(t, faults[(sick+1)%3], address(1), payload(5))
		for _, m := range lookups {
			faults[sick].Fail(m, 0, syscall.EIO)
		}
		for name, err := range everyLookup(r, address(2)) {
			wantNot(t, err, blobstor.ErrNotFound)
			if !errors.Is(err, syscall.EIO) || !blobstor.IsFault(err) {
				t.Errorf("%s of a missing blob beside a sick route: %v", name, err)
			}
		}
		wantGet(t, r, address(1), payload(5)) // another route has it
		for _, m := range lookups {
			faults[(sick+2)%3].Fail(m, 0, blobstor.ErrCorrupt)
		}
		for _, err := range everyLookup(r, address(2)) {
			wantIs(t, err, syscall.EIO, blobstor.ErrCorrupt)
			wantNot(t, err, blobstor.ErrNotFound)
		}
		err := r.Delete(ctx, address(1), "") // removed where it can be, and yet not surely everywhere
		wantIs(t, err, syscall.EIO)
		wantNot(t, err, blobstor.ErrNotFound)
	}
}

func everyLookup(s blobstor.BlobStor, addr blobstor.Address) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = s.Get(ctx, addr, "", nil)
	_, errs["Stat"] = s.Stat(ctx, addr, "")
	_, _, errs["ReadRange"] = blobstor.ReadRange(ctx, s, addr, "", nil, 0)
	_, errs["GetRange"] = blobstor.GetRange(ctx, s, addr, "", 0, 1)
	_, errs["NewReader"] = s.NewReader(ctx, addr, "")
	errs["Delete"] = s.Delete(ctx, addr, "")
	return errs
}

func TestRouterAsksTheNamedRouteFirst(t *testing.T) {
	small, large := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewFault(storagetest.NewMemory(0))
	r := newRouter(t, blobstor.Route{Name: "small", MaxSize: 100, Storage: small}, blobstor.Route{Name: "large", Storage: large})
	at := mustPut(t, r, address(1), payload(1000))
	for range 3 {
		_, err := r.Get(ctx, address(1), at, nil)
		must(t, err)
	}
	if n := small.Calls(storagetest.Get); n != 0 {
		t.Errorf("%d calls went to a route that the location does not name", n)
	}
}

func TestRouterLocations(t *testing.T) {
	r, _, _ := two(t)
	for i := range 10 {
		mustPut(t, r, address(i), payload(i*30))
	}
	var all []blobstor.Location
	for info, err := range r.All(ctx, "") {
		must(t, err)
		all = append(all, info.Location)
	}
	if !slices.IsSorted(all) {
		t.Errorf("locations are not sorted: %q", all)
	}
	for after, want := range map[blobstor.Location]int{
		"large/": 10, "large/?": 10, "small/": 4, "small/?": 4, // a route's own unusable location starts over there
		"medium/": 10, "large": 10, "/": 10, "": 10, all[5]: 4,
	} {
		n := 0
		for _, err := range r.All(ctx, after) {
			must(t, err)
			n++
		}
		if n != want {
			t.Errorf("All behind %q yielded %d blobs, want %d", after, n, want)
		}
	}
}

// TestRouterErrorsBearItsLocations: a program keeps what an error says where the blob is.
func TestRouterErrorsBearItsLocations(t *testing.T) {
	f := storagetest.NewFault(storagetest.NewMemory(0))
	r := newRouter(t, blobstor.Route{Name: "a", Storage: f})
	f.Fail(storagetest.Get, 0, syscall.EIO)
	_, err := r.Get(ctx, address(1), "a/hint", nil)
	if e, ok := errors.AsType[*blobstor.Error](err); !ok || e.Location != "a/hint" || e.Address != address(1) {
		t.Errorf("got %#v", err)
	}
	_, err = r.Get(ctx, address(1), "foreign", nil)
	if e, ok := errors.AsType[*blobstor.Error](err); !ok || e.Location != "" {
		t.Errorf("got %#v", err)
	}
}

func TestRouterAllFails(t *testing.T) {
	a, b := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewMemory(0)
	r := newRouter(t, blobstor.Route{Name: "a", MaxSize: 1, Storage: a}, blobstor.Route{Name: "b", Storage: b})
	mustPut(t, a, address(1), nil)
	mustPut(t, b, address(2), nil)
	a.Fail(storagetest.All, 1, syscall.EIO)
	steps := 0
	for _, err := range r.All(ctx, "") {
		steps++
		wantIs(t, err, syscall.EIO)
	}
	if steps != 1 {
		t.Errorf("All went on for %d steps behind an error that ends it", steps)
	}
}

func TestRouterClose(t *testing.T) {
	broken := errors.New("broken")
	a, b := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewMemory(0)
	a.Fail(storagetest.Close, 1, broken)
	r := newRouter(t, blobstor.Route{Name: "a", MaxSize: 1, Storage: a}, blobstor.Route{Name: "b", Storage: b})
	w, err := r.NewWriter(ctx, -1)
	must(t, err)
	wantIs(t, r.Close(), broken)
	_, err = b.Stat(ctx, address(1), "")
	wantIs(t, err, blobstor.ErrClosed)
	for _, err := range everyLookup(r, address(1)) {
		wantIs(t, err, blobstor.ErrClosed)
	}
	wantIs(t, r.PutBatch(ctx, nil), blobstor.ErrClosed)
	wantIs(t, r.DeleteBatch(ctx, nil), blobstor.ErrClosed)
	_, err = w.Write(payload(1))
	wantIs(t, err, blobstor.ErrClosed)
	_, err = r.NewWriter(ctx, 1)
	wantIs(t, err, blobstor.ErrClosed)
	_, err = r.NewWriter(ctx, 1<<30)
	wantIs(t, err, blobstor.ErrClosed)
}

// TestRouterCancelledInRoute: a route that did not answer in time leaves the question open, and the next route is
// not asked with a context that is over.
func TestRouterCancelledInRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, large := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewFault(storagetest.NewMemory(0))
		r := newRouter(t, blobstor.Route{Name: "small", MaxSize: 100, Storage: small}, blobstor.Route{Name: "large", Storage: large})
		for _, m := range []storagetest.Method{storagetest.Get, storagetest.Stat, storagetest.ReadRange} {
			small.Stall(m, 1)
		}
		for name, look := range map[string]func(context.Context) error{
			"Get":       func(ctx context.Context) error { _, err := r.Get(ctx, address(1), "", nil); return err },
			"NewReader": func(ctx context.Context) error { _, err := r.NewReader(ctx, address(1), ""); return err },
			"GetRange": func(ctx context.Context) error {
				_, err := blobstor.GetRange(ctx, r, address(1), "", 0, 1)
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(ctx, time.Hour) // of the bubble's own clock
			err := look(ctx)
			cancel()
			wantIs(t, err, context.DeadlineExceeded)
			wantNot(t, err, blobstor.ErrNotFound)
			if n := large.Calls(storagetest.Get) + large.Calls(storagetest.Stat) + large.Calls(storagetest.ReadRange); n != 0 {
				t.Errorf("%s asked the next route", name)
			}
		}
	})
}
