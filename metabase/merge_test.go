package metabase

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestMerge spreads objects over two databases, some in both, and merges what they find page by page: it is what one
// database with all of them finds.
func TestMerge(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newPlain(rng).(*plain)
	dbs := [3]*world{}
	for i := range dbs {
		dbs[i] = newWorld(t, Options{NoSync: true, Ballast: -1, ScanLimit: 1 + rng.IntN(9)})
	}
	for n := range 100 {
		r := Record{Address: object(1, n), Size: int64(n), Attrs: p.record(1, n).Attrs}
		in := 1 + rng.IntN(3)
		for i := range dbs {
			if i == 2 || in&(1<<i) != 0 {
				dbs[i].record(t, r)
			}
		}
	}
	for range 300 {
		q := p.query(rng)
		q.Container = id(1)
		want := pages(t, dbs[2].DB, q)
		if got := mergedPages(t, q, dbs[0].DB, dbs[1].DB); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v:\n got %+v\nwant %+v", q, got, want)
		}
	}
}

func mergedPages(tb testing.TB, q Query, dbs ...*DB) (all []Match) {
	tb.Helper()
	for n := 0; ; n++ {
		of := make([]Page, len(dbs))
		for i, db := range dbs {
			var err error
			of[i], err = db.Search(ctx, q)
			must(tb, err)
		}
		p := Merge(q, of...)
		if len(p.Found) > q.Limit || n > 1000 {
			tb.Fatalf("%+v: page %d has %d", q, n, len(p.Found))
		}
		all = append(all, p.Found...)
		if !p.More {
			return all
		}
		q.After = p.Next
	}
}

// TestMergeNothing: no pages, empty pages, and a query that makes no sense.
func TestMergeNothing(t *testing.T) {
	q := Query{Container: id(1), Limit: 5}
	for _, p := range []Page{Merge(q), Merge(q, Page{}, Page{}), Merge(Query{}, Page{Found: make([]Match, 1)})} {
		if len(p.Found) > 0 || p.More {
			t.Errorf("%+v", p)
		}
	}
	paused := Page{More: true, Next: Position{Object: id(7)}}
	if p := Merge(q, paused, Page{Found: []Match{{At: Position{Object: id(8)}}}}); len(p.Found) > 0 || !p.More || p.Next != paused.Next {
		t.Errorf("beyond where one page paused: %+v", p)
	}
}
