package metabase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestLimits: the limits are what they were, what reaches one is taken and found again, and one byte more is refused.
func TestLimits(t *testing.T) {
	for name, is := range map[string][2]int{
		"MaxAttrKey": {MaxAttrKey, 4096}, "MaxAttrValue": {MaxAttrValue, 16384}, "MaxAttrs": {MaxAttrs, 1024}, "MaxRecord": {MaxRecord, 65536},
		"MaxChain": {MaxChain, 255}, "MaxFilters": {MaxFilters, 32}, "MaxQuery": {MaxQuery, 65536}, "MaxPage": {MaxPage, 10_000},
	} {
		if is[0] != is[1] {
			t.Errorf("%s is %d, was %d", name, is[0], is[1])
		}
	}
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	attrs := func(n int, key, value string) (as []Attr) {
		for range n {
			as = append(as, Attr{Key: key, Value: value})
		}
		return as
	}
	whole := func(more int) Record { // which fills a record
		r := Record{Address: object(1, 5), Attrs: attrs(4, "", strings.Repeat("x", MaxAttrValue-1000))}
		r.Attrs = append(r.Attrs, Attr{Key: "rest", Value: strings.Repeat("y", MaxRecord-r.encodedLen()-4-11+more)})
		return r
	}
	for n, of := range []func(more int) Record{
		func(more int) Record { return Record{Attrs: attrs(1, strings.Repeat("k", MaxAttrKey+more), "")} },
		func(more int) Record { return Record{Attrs: attrs(1, "", strings.Repeat("\x00", MaxAttrValue/2+more))} },
		func(more int) Record { return Record{Attrs: attrs(MaxAttrs+more, "", "")} },
		func(more int) Record { return Record{Chain: strings.Repeat("\x00", MaxChain+more)} },
		whole,
		func(more int) Record {
			return Record{Location: blobstor.Location(strings.Repeat("l", blobstor.MaxLocation+more))}
		},
	} {
		r, beyond := of(0), of(1)
		r.Address, beyond.Address = object(1, n), object(1, 100+n)
		w.record(t, r)
		got, err := w.Get(ctx, r.Address)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
			t.Errorf("limit %d: %v", n, err)
		}
		wantIs(t, w.Put(ctx, beyond), ErrRecord)
		w.wantState(t, beyond.Address, Missing)
	}
	query := func(filters, bytes int) error {
		q := Query{Container: id(1), Filters: make([]Filter, filters), Attrs: []string{strings.Repeat("a", bytes)}}
		_, err := w.Search(ctx, q)
		return err
	}
	must(t, query(MaxFilters, MaxQuery))
	wantIs(t, query(MaxFilters+1, 0), ErrQuery)
	wantIs(t, query(1, MaxQuery+1), ErrQuery)
	w.check(t)
}

// TestMaxPage: no page has more, whatever the caller asks for, and the next goes on behind it.
func TestMaxPage(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1, ScanLimit: 3 * MaxPage})
	const n = MaxPage + 5
	es := make([]Entry, n)
	for i := range es {
		es[i].Records = []Record{{Address: object(1, i), Expires: 101}}
	}
	must(t, w.PutBatch(ctx, es))
	list := func(after blobstor.Address) int {
		page, err := w.List(ctx, after, 2*n)
		must(t, err)
		return len(page)
	}
	search := func(after blobstor.Address) int {
		p, err := w.Search(ctx, Query{Container: id(1), After: Position{Object: after.Object}, Limit: 2 * n})
		if must(t, err); p.More != (len(p.Found) == MaxPage) {
			t.Errorf("search: %d, more %v", len(p.Found), p.More)
		}
		return len(p.Found)
	}
	expired := func(after blobstor.Address) int {
		w.epoch = 102
		page, err := w.Expired(ctx, after, 2*n)
		must(t, err)
		return len(page)
	}
	for i, of := range []func(blobstor.Address) int{list, search, expired} {
		if first, second := of(blobstor.Address{}), of(object(1, MaxPage-1)); first != MaxPage || second != 5 {
			t.Errorf("call %d: pages of %d and %d", i, first, second)
		}
	}
}

// TestStateErr: every state has its error, and those that say more than not found match it too.
func TestStateErr(t *testing.T) {
	for s, want := range map[State]error{
		Missing: blobstor.ErrNotFound, Available: nil, Expired: ErrExpired, Marked: ErrGarbage, Buried: ErrBuried, ContainerGone: ErrContainer,
	} {
		err := s.Err()
		if err != want || s != Available && !errors.Is(err, blobstor.ErrNotFound) || blobstor.IsFault(err) { //nolint:errorlint // the very one
			t.Errorf("state %d: %v", s, err)
		}
	}
}

// TestIsRefusal: what was refused is told from what failed, also when both come together.
func TestIsRefusal(t *testing.T) {
	fault := fmt.Errorf("%w: x", blobstor.ErrCorrupt)
	wrapped := blobstor.Wrap("put", object(1, 1), "", ErrHeld)
	for _, err := range []error{
		ErrBuried, ErrGarbage, ErrExpired, ErrContainer, ErrHeld, ErrTarget, ErrRecord, ErrQuery, ErrPressed,
		wrapped, errors.Join(wrapped, ErrTarget), fmt.Errorf("x: %w", ErrRecord),
	} {
		if !IsRefusal(err) || blobstor.IsFault(err) {
			t.Errorf("%v is no refusal", err)
		}
	}
	for _, err := range []error{nil, fault, io.EOF, context.Canceled, blobstor.ErrNotFound, blobstor.ErrClosed, blobstor.ErrUncertain, errors.Join(ErrHeld, fault)} {
		if IsRefusal(err) {
			t.Errorf("%v is a refusal", err)
		}
	}
}
