package metabase

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// wantFound searches by pages of two and compares the last bytes of numbers of the objects, in order.
func (w *world) wantFound(tb testing.TB, q Query, want ...int) {
	tb.Helper()
	q.Container, q.Limit = id(1), 2
	var got []int
	for _, m := range pages(tb, w.DB, q) {
		got = append(got, int(m.Address.Object[3]))
	}
	if !reflect.DeepEqual(got, want) {
		tb.Errorf("%+v found %v, want %v", q.Filters, got, want)
	}
}

func where(key string, op Op, value string) Query {
	return Query{Filters: []Filter{{key, op, value}}}
}

func (q Query) and(key string, op Op, value string) Query {
	q.Filters = append(q.Filters[:len(q.Filters):len(q.Filters)], Filter{key, op, value})
	return q
}

var searchRegressions = map[string]func(t *testing.T, w *world){
	"07 an attribute that is no epoch stops nothing": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "expires", "'or'1'='1")
		w.record(t, Record{Address: object(1, 2), Expires: 100})
		w.epoch++
		w.removeExpired(t)
		w.wantState(t, object(1, 2), Missing)
		w.wantState(t, object(1, 1), Available)
	},
	"18 an attribute beyond the numbers is removed": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "n", strings.Repeat("9", 1000), "n", "-"+strings.Repeat("9", 78))
		w.wantFound(t, where("n", GE, least.String()), []int(nil)...)
		must(t, w.Mark(ctx, Garbage, object(1, 1)))
		w.removed(t)
		w.wantNoKeys(t)
	},
	"19 and 20 zero bytes in values and IDs": func(t *testing.T, w *world) {
		a := object(1, 1)
		a.Object = blobstor.ID{5: 1}
		w.record(t, Record{Address: a, Parent: blobstor.ID{7: 2}, Attrs: []Attr{{"owner\x00", "\x00\x00\x01\x00", Opaque}}})
		if got := pages(t, w.DB, Query{Container: id(1), Limit: 1, Filters: []Filter{{"owner\x00", EQ, "\x00\x00\x01\x00"}}}); len(got) != 1 {
			t.Errorf("found %v", got)
		}
		must(t, w.Mark(ctx, Garbage, a))
		w.removed(t)
		w.wantNoKeys(t)
	},
	"33 every filter counts, and one removed match hides no other": func(t *testing.T, w *world) {
		for n := 1; n <= 4; n++ {
			w.put(t, object(1, n), "a", "1", "b", fmt.Sprint(n))
		}
		must(t, w.Mark(ctx, Garbage, object(1, 2)))
		w.wantFound(t, where("a", EQ, "1").and("b", NE, "3"), 1, 4)
		w.wantFound(t, where("a", EQ, "1").and("c", NE, "3"), []int(nil)...)
		w.wantFound(t, where("a", EQ, "1").and("c", Absent, ""), 1, 3, 4)
	},
	"34 an empty prefix matches all that have the attribute": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "a", "")
		w.put(t, object(1, 2), "a", "x")
		w.put(t, object(1, 3), "b", "x")
		w.wantFound(t, where("a", Prefix, ""), 1, 2)
	},
	"35 and 49 a container of any kinds is searched and listed": func(t *testing.T, w *world) {
		w.record(t, tombstone(1, 1, 50))
		w.record(t, lock(1, 2, 51, 0))
		w.wantFound(t, Query{}, 1, 2)
		w.record(t, tombstone(2, 1, 50))
		if ids, err := w.Containers(ctx); err != nil || len(ids) != 2 {
			t.Errorf("containers %v, %v", ids, err)
		}
		if found, err := w.List(ctx, blobstor.Address{}, 9); err != nil || len(found) != 3 {
			t.Errorf("listed %v, %v", found, err)
		}
	},
	"37 text filters see integers": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "n", "12")
		w.put(t, object(1, 2), "n", "1a")
		w.put(t, object(1, 3), "n", "2")
		w.wantFound(t, where("n", NE, "2"), 1, 2)
		w.wantFound(t, where("n", Prefix, "1"), 1, 2)
		w.wantFound(t, where("n", Prefix, ""), 1, 2, 3)
	},
	"38 a value sorts before those that it begins": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "n", "1a")
		w.put(t, object(1, 2), "n", "1")
		w.put(t, object(1, 3), "n", "1\x00")
		w.wantFound(t, where("n", Prefix, "1"), 2, 3, 1)
	},
	"39 and 40 pages without attributes and by absence": func(t *testing.T, w *world) {
		for n := 1; n <= 5; n++ {
			w.put(t, object(1, n), "a", "x")
		}
		w.wantFound(t, Query{}, 1, 2, 3, 4, 5)
		w.wantFound(t, where("b", Absent, ""), 1, 2, 3, 4, 5)
		w.wantFound(t, where("a", EQ, "x"), 1, 2, 3, 4, 5)
	},
	"42 what is a number": func(t *testing.T, w *world) {
		for n, v := range []string{"+5", "1_000", "007", "-0", "5", "0x5", " 5", "5 ", "٥"} {
			w.put(t, object(1, n+1), "n", v)
		}
		w.wantFound(t, where("n", GE, "0"), 4, 1, 5, 3)
		w.wantFound(t, where("n", LT, "+0006"), 4, 1, 5)
		for _, v := range []string{"", "x", "1_000", "--1", "1" + most.String()} {
			_, err := w.Search(ctx, Query{Container: id(1), Filters: []Filter{{"n", GT, v}}})
			wantIs(t, err, ErrQuery)
		}
	},
	"42 numbers and texts are asked for at once": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "n", "007")
		w.wantFound(t, where("n", GE, "1").and("n", EQ, "007"), 1)
		w.wantFound(t, where("n", EQ, "007").and("n", LE, "7"), 1)
		w.wantFound(t, where("n", GE, "1").and("n", Prefix, "7"))
	},
	"43 bytes come back as they were": func(t *testing.T, w *world) {
		w.put(t, object(1, 1), "sum", "\xff\x00\xfe")
		q := where("sum", Prefix, "\xff")
		q.Container, q.Attrs = id(1), []string{"sum", "none"}
		page, err := w.Search(ctx, q)
		if err != nil || len(page.Found) != 1 || page.Found[0].Values[0] != "\xff\x00\xfe" || page.Found[0].At.Value != "\xff\x00\xfe" {
			t.Errorf("%+v, %v", page, err)
		}
	},
	"63 and 64 a version that is not known": func(t *testing.T, w *world) {
		must(t, w.file.Update(func(tx *bolt.Tx) error {
			t := txn{tx: tx}
			t.put(settings, keyVersion, func(b []byte) []byte { return append(b, version+1) })
			t.apply()
			return t.err
		}))
		must(t, w.Close())
		_, err := Open(w.dir, &w.opts)
		wantIs(t, err, blobstor.ErrLayout)
		w.DB = nil
		must(t, os.RemoveAll(w.dir))
		w.reopen(t)
	},
	"66 read-only refuses all writes, and touches no blob": func(t *testing.T, w *world) {
		w.put(t, object(1, 1))
		must(t, w.Mark(ctx, Garbage, object(1, 1)))
		must(t, w.SetReadOnly(ctx, true))
		wantIs(t, w.Put(ctx, Record{Address: object(1, 2)}), blobstor.ErrReadOnly)
		wantIs(t, w.Mark(ctx, None, object(1, 1)), blobstor.ErrReadOnly)
		wantIs(t, w.Drop(ctx, id(1)), blobstor.ErrReadOnly)
		wantIs(t, w.Reset(ctx), blobstor.ErrReadOnly)
		wantIs(t, w.Compact(ctx), blobstor.ErrReadOnly)
		_, err := w.Collect(ctx, 9, removesNothing(t))
		wantIs(t, err, blobstor.ErrReadOnly)
		must(t, w.SetReadOnly(ctx, false))
		must(t, w.Mark(ctx, None, object(1, 1)))
	},
	"67 an expired object is removed wherever it went": func(t *testing.T, w *world) {
		w.record(t, Record{Address: object(1, 1), Expires: 100, Location: "cache"})
		w.record(t, Record{Address: object(1, 1), Expires: 100, Location: "main"})
		if s := w.state(t, object(1, 1)); s.Location != "main" {
			t.Errorf("%+v", s)
		}
		w.epoch++
		w.removeExpired(t)
		w.wantState(t, object(1, 1), Missing)
	},
	"71 a file shrinks": func(t *testing.T, w *world) {
		var es []Entry
		for n := range 2000 {
			es = append(es, Entry{Records: []Record{{Address: object(1, n), Attrs: []Attr{{"name", strings.Repeat("x", 6000), Auto}}}}})
		}
		must(t, w.PutBatch(ctx, es))
		w.index(t)
		before := w.fileSize(t)
		must(t, w.Drop(ctx, id(1)))
		must(t, w.Compact(ctx))
		if after := w.fileSize(t); after >= before {
			t.Errorf("%d bytes, then %d", before, after)
		}
		w.wantNoKeys(t)
	},
}

func TestRegressSearch(t *testing.T) {
	for name, test := range searchRegressions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{NoSync: true, Ballast: -1})
			test(t, w)
			w.check(t)
		})
	}
}

func (w *world) fileSize(tb testing.TB) int64 {
	tb.Helper()
	info, err := os.Stat(w.dir + "/bolt")
	must(tb, err)
	return info.Size()
}

// wantNoKeys wants no key of any object.
func (w *world) wantNoKeys(tb testing.TB) {
	tb.Helper()
	must(tb, w.file.View(func(tx *bolt.Tx) error {
		t := txn{tx: tx}
		for _, class := range []byte{recs, attrs, rels, marks, expires} {
			if c := t.cursor(class, nil, nil); c.next() {
				tb.Errorf("%s still has %x", classNames[class], c.key)
			}
		}
		return nil
	}))
}

func removesNothing(tb testing.TB) func(context.Context, []blobstor.Item) error {
	return func(_ context.Context, items []blobstor.Item) error {
		tb.Errorf("%d blobs are removed", len(items))
		return nil
	}
}
