package metabase

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestExtremes records attributes at the limits, finds them and removes them.
func TestExtremes(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	texts := []string{
		"", "\x00", "\x00\x00", "\xff", "\x00\xff", "\x00\x01", "\x01", "a\x00b", "\xff\xff\xff", strings.Repeat("\xff", 300),
		strings.Repeat("\x00", MaxAttrKey/2), strings.Repeat("k", MaxAttrKey),
	}
	n := 0
	for _, key := range texts {
		for _, value := range append(texts, strings.Repeat("v", MaxAttrValue), strings.Repeat("\x00", MaxAttrValue/2)) {
			n++
			r := Record{Address: object(1, n), Attrs: []Attr{{key, value, Auto}}}
			w.record(t, r)
			if got, err := w.Get(ctx, r.Address); err != nil || !reflect.DeepEqual(got, r) {
				t.Fatalf("%q=%q: got %+v, %v", key, value, got, err)
			}
		}
	}
	for _, key := range texts {
		for _, value := range texts {
			for _, op := range []Op{EQ, Prefix} {
				q := where(key, op, value).and(key, EQ, value)
				q.Container, q.Limit = id(1), 3
				if found := pages(t, w.DB, q); len(found) != 1 || found[0].At.Value != value {
					t.Errorf("%q %d %q: found %d", key, op, value, len(found))
				}
			}
		}
	}
	w.check(t)
	must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
	w.removed(t)
	w.wantNoKeys(t)
	w.check(t)
}

// TestTooMuch: what is beyond a limit is refused, with the typed error, and leaves nothing.
func TestTooMuch(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	attr := func(key, value string) []Attr { return []Attr{{Key: key, Value: value}} }
	many := make([]Attr, MaxAttrs+1)
	long := make([]Attr, MaxRecord/MaxAttrValue+1)
	for i := range long {
		long[i].Value = strings.Repeat("x", MaxAttrValue)
	}
	a := object(1, 1)
	for name, r := range map[string]Record{
		"key":                   {Address: a, Attrs: attr(strings.Repeat("k", MaxAttrKey+1), "")},
		"key with zeros":        {Address: a, Attrs: attr(strings.Repeat("\x00", MaxAttrKey/2+1), "")},
		"value":                 {Address: a, Attrs: attr("", strings.Repeat("k", MaxAttrValue+1))},
		"value with zeros":      {Address: a, Attrs: attr("", strings.Repeat("\x00", MaxAttrValue/2+1))},
		"attributes":            {Address: a, Attrs: many},
		"record":                {Address: a, Attrs: long},
		"chain":                 {Address: a, Chain: strings.Repeat("c", MaxChain+1)},
		"location":              {Address: a, Location: blobstor.Location(strings.Repeat("l", blobstor.MaxLocation+1))},
		"size":                  {Address: a, Size: -1},
		"kind":                  {Address: a, Kind: kinds},
		"mode":                  {Address: a, Attrs: []Attr{{Mode: modes}}},
		"no address":            {},
		"no object":             {Address: blobstor.Address{Container: id(1)}},
		"tombstone without":     {Address: a, Kind: Tombstone},
		"lock of itself":        {Address: a, Kind: Lock, Target: a.Object},
		"target of a regular":   {Address: a, Target: id(2)},
		"part of itself":        {Address: a, Parent: a.Object},
		"a kind of 255":         {Address: a, Kind: 255},
		"the least size beyond": {Address: a, Size: math.MinInt64},
	} {
		err := w.Put(ctx, r)
		wantIs(t, err, ErrRecord)
		if blobstor.IsFault(err) {
			t.Errorf("%s: %v is a fault", name, err)
		}
	}
	wantIs(t, w.Put(ctx, tombstone(1, 1, 2), Record{Address: object(1, 2)}), ErrRecord)
	wantIs(t, w.Put(ctx, Record{Address: a}, Record{Address: a}), ErrRecord)
	wantIs(t, w.Mark(ctx, markKinds, a), ErrRecord)
	if ids, err := w.Containers(ctx); err != nil || len(ids) > 0 {
		t.Errorf("containers %v, %v", ids, err)
	}
	w.record(t, Record{Address: a, Size: math.MaxInt64, Expires: math.MaxUint64, Attrs: many[1:], Chain: strings.Repeat("\x00", MaxChain)})
	w.check(t)
}

// TestBadQueries: queries that make no sense are refused; those that nothing can match are empty.
func TestBadQueries(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1), "a", "5", "b", "x")
	c := id(1)
	beyond := "1" + most.String()
	for name, q := range map[string]Query{
		"no container":       {},
		"limit":              {Container: c, Limit: -1},
		"operation":          {Container: c, Filters: []Filter{{"a", ops, ""}}},
		"absent value":       {Container: c, Filters: []Filter{{"a", Absent, "x"}}},
		"no number":          {Container: c, Filters: []Filter{{"a", EQ, "5"}, {"a", LT, "x"}}},
		"beyond numbers":     {Container: c, Filters: []Filter{{"a", LT, beyond}}},
		"below numbers":      {Container: c, Filters: []Filter{{"a", GT, "-" + beyond}}},
		"filters":            {Container: c, Filters: make([]Filter, MaxFilters+1)},
		"long filters":       {Container: c, Filters: []Filter{{"a", EQ, strings.Repeat("x", MaxQuery)}}},
		"long attributes":    {Container: c, Attrs: []string{strings.Repeat("x", MaxQuery+1)}},
		"numeric position":   {Container: c, Filters: []Filter{{"a", GE, "1"}}, After: Position{Value: "x"}},
		"empty position":     {Container: c, Filters: []Filter{{"a", GE, "1"}}, After: Position{Object: id(1)}},
		"position of values": {Container: c, After: Position{Value: "x", Object: id(1)}},
		"absent position":    {Container: c, Filters: []Filter{{"a", Absent, ""}}, After: Position{Value: "x"}},
	} {
		_, err := w.Search(ctx, q)
		if !errors.Is(err, ErrQuery) || blobstor.IsFault(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, filters := range map[string][]Filter{
		"two values":         {{"a", EQ, "5"}, {"a", EQ, "6"}},
		"there and not":      {{"a", EQ, "5"}, {"a", Absent, ""}},
		"not there and":      {{"a", Absent, ""}, {"a", EQ, "5"}},
		"crossed":            {{"a", GT, "5"}, {"a", LT, "5"}},
		"above all":          {{"a", GT, most.String()}},
		"below all":          {{"a", LT, least.String()}},
		"equal and not":      {{"a", EQ, "5"}, {"a", NE, "5"}},
		"prefix and another": {{"a", Prefix, "5"}, {"a", EQ, "6"}},
		"text as number":     {{"b", GE, least.String()}},
		"nobody's":           {{"c", NE, ""}},
	} {
		p, err := w.Search(ctx, Query{Container: c, Filters: filters})
		if err != nil || len(p.Found) > 0 || p.More {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	w.wantFound(t, where("a", GE, least.String()).and("a", LE, most.String()), 1)
}

// TestForeignPositions: a position is a place and no secret; of another query or container it leads somewhere, and what
// comes from there is right.
func TestForeignPositions(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 9; n++ {
		w.put(t, object(1, n), "a", fmt.Sprint(n), "b", strings.Repeat("\x00", n))
		w.put(t, object(2, n), "a", fmt.Sprint(10-n))
	}
	for _, after := range []Position{
		{Object: id(5)}, {Value: "5"}, {Value: "5", Object: id(5)}, {Value: "55"}, {Value: "\xff\xff"}, {Value: "\x00\x00", Object: id(2)},
		{Value: strings.Repeat("9", 70_000)}, {Value: "-3"},
	} {
		for _, q := range []Query{{}, where("a", EQ, "5"), where("a", Prefix, "5"), where("a", NE, "5"), where("a", GT, "3"), where("b", NE, "")} {
			q.Container, q.After = id(1), after
			p, err := w.Search(ctx, q)
			if errors.Is(err, ErrQuery) {
				continue
			}
			must(t, err)
			plan, err := q.check()
			must(t, err)
			for _, m := range p.Found {
				if plan.compare(m.At, after) <= 0 || m.Address.Container != id(1) {
					t.Errorf("%+v after %q: %+v", q.Filters, after.Value, m)
				}
			}
		}
	}
	if found, err := w.List(ctx, object(1, 1000), 3); err != nil || len(found) != 3 || found[0].Address != object(2, 1) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestDeepParents: parents above parents, far more than are followed.
func TestDeepParents(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	const deep = 2000
	var es []Entry
	for n := range deep {
		es = append(es, Entry{Records: []Record{part(1, n+1, n+2, "")}})
	}
	must(t, w.PutBatch(ctx, es))
	w.wantState(t, object(1, 1), Available)
	w.record(t, tombstone(1, deep+10, deep+1))
	w.wantState(t, object(1, deep), Buried)
	if gone := w.removed(t); len(gone) != deep {
		t.Errorf("%d removed", len(gone))
	}
	w.check(t)
}

// TestEpochEdges: an object lives through its last epoch, and what has none for ever.
func TestEpochEdges(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n, expires := range map[int]uint64{1: 0, 2: 100, 3: 101, 4: math.MaxUint64} {
		w.record(t, Record{Address: object(1, n), Expires: expires})
	}
	for _, at := range []struct {
		epoch   uint64
		expired []int
	}{{0, nil}, {100, nil}, {101, []int{2}}, {102, []int{2, 3}}, {math.MaxUint64, []int{2, 3}}} {
		w.epoch = at.epoch
		page, err := w.Expired(ctx, blobstor.Address{}, 10)
		must(t, err)
		var got []int
		for _, f := range page {
			got = append(got, int(f.Address.Object[3]))
			w.wantState(t, f.Address, Expired)
		}
		for n := 1; n <= 4; n++ {
			if s := w.state(t, object(1, n)); (s.State == Available) == slices.Contains(at.expired, n) {
				t.Errorf("epoch %d: object %d is %+v", at.epoch, n, s)
			}
		}
		if !reflect.DeepEqual(got, at.expired) {
			t.Errorf("epoch %d: %v, want %v", at.epoch, got, at.expired)
		}
	}
}

// TestManyContainers: ten thousand of them cost no buckets, and are listed, marked and dropped.
func TestManyContainers(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	const n = 10_000
	es := make([]Entry, n)
	for i := range es {
		es[i].Records = []Record{{Address: object(i+1, 1), Size: 1}}
	}
	must(t, w.PutBatch(ctx, es))
	w.reopen(t)
	if ids, err := w.Containers(ctx); err != nil || len(ids) != n || ids[n-1] != id(n) {
		t.Errorf("%d containers, %v", len(ids), err)
	}
	for i := 1; i <= n; i += n / 10 {
		must(t, w.Drop(ctx, id(i)))
		w.wantState(t, object(i, 1), Missing)
		must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(i + 1)}))
	}
	if gone := w.removed(t); len(gone) != 10 {
		t.Errorf("%d removed", len(gone))
	}
	var listed []Found
	for after := (blobstor.Address{}); ; after = listed[len(listed)-1].Address {
		page, err := w.List(ctx, after, 3000)
		must(t, err)
		if listed = append(listed, page...); len(page) < 3000 {
			break
		}
	}
	if len(listed) != n-20 {
		t.Errorf("%d listed", len(listed))
	}
	w.check(t)
}
