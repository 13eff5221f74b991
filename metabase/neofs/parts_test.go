package neofs

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

const uuidBytes = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"

// splitV1 returns the parts 11 to 13 of object 10, and the link 14.
func splitV1() []msg {
	in := msg(nil).bytes(6, uuidBytes)
	parent := header(0, 30).attr("FileName", "big")
	last := msg(nil).id(1, id(10)).id(2, id(12)).msg(4, parent).bytes(6, uuidBytes)
	link := msg(nil).id(1, id(10)).msg(4, parent).id(5, id(11)).id(5, id(12)).id(5, id(13)).bytes(6, uuidBytes)
	return []msg{
		object(11, header(0, 10).msg(11, in), 10),
		object(12, header(0, 10).msg(11, msg(nil).id(2, id(11)).bytes(6, uuidBytes)), 10),
		object(13, header(0, 10).msg(11, last), 10),
		object(14, header(0, 0).msg(11, link), 0),
	}
}

// splitV2 returns the same of split version 2: the first part knows a header of its parent without an ID and without
// a checksum.
func splitV2() []msg {
	unfinished := msg(nil).msg(1, msg(nil).num(1, 2).num(2, 18)).id(2, id(1)).attr("FileName", "big")
	parent := header(0, 30).attr("FileName", "big")
	last := msg(nil).id(1, id(10)).id(2, id(12)).msg(4, parent).id(7, id(11))
	link := msg(nil).id(1, id(10)).msg(4, parent).id(7, id(11))
	return []msg{
		object(11, header(0, 10).msg(11, msg(nil).msg(4, unfinished)), 10),
		object(12, header(0, 10).msg(11, msg(nil).id(2, id(11)).id(7, id(11))), 10),
		object(13, header(0, 10).msg(11, last), 10),
		object(14, header(4, 5).msg(11, link), 5),
	}
}

func TestSplitRecords(t *testing.T) {
	for version, parts := range map[int][]msg{1: splitV1(), 2: splitV2()} {
		for i, o := range parts {
			recs := records(t, o)
			r := recs[0]
			chain := []string{1: uuidBytes, 2: string(raw(11))}[version]
			if r.Chain != chain || (r.Kind == metabase.Link) != (i == 3) || r.Virtual {
				t.Errorf("version %d, part %d: %+v", version, i, r)
			}
			if _, n := attr(r, Root); n != 0 {
				t.Errorf("version %d, part %d is a root", version, i)
			}
			if i < 2 {
				if len(recs) != 1 || !r.Parent.IsZero() { // bugs 61 and 65
					t.Errorf("version %d, part %d: %+v", version, i, recs)
				}
				continue
			}
			if len(recs) != 2 || r.Parent != id(10) {
				t.Fatalf("version %d, part %d: %+v", version, i, recs)
			}
			p := recs[1]
			_, root := attr(p, Root)
			_, phy := attr(p, Phy)
			name, _ := attr(p, "FileName")
			if p.Address != address(10) || !p.Virtual || p.Size != 30 || p.Chain != "" || root != 1 || phy != 0 || name != "big" {
				t.Errorf("version %d, parent of part %d: %+v", version, i, p)
			}
		}
	}
}

// pages returns all pages of a query, of two objects each.
func (w *world) pages(tb testing.TB, q metabase.Query) (pages []metabase.Page) {
	tb.Helper()
	for q.Limit = 2; ; {
		page, err := w.Search(ctx, q)
		must(tb, err)
		pages = append(pages, page)
		if q.After = page.Next; !page.More {
			return pages
		}
	}
}

// TestSplitLookUp: in whatever order parts come, and whatever is gone already.
func TestSplitLookUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for version, parts := range map[int][]msg{1: splitV1(), 2: splitV2()} {
		for range 10 {
			w := newWorld(t)
			rnd.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
			for _, o := range parts {
				w.put(t, o)
			}
			want := Split{Last: id(13), Link: id(14)}
			if version == 1 {
				want.ID = uuidBytes
			} else {
				want.First = id(11)
			}
			for range 2 {
				var byParent, byChain Split
				for _, page := range w.pages(t, Parts(id(1), id(10))) {
					byParent.Add(page)
				}
				n := 0
				for _, page := range w.pages(t, ChainParts(id(1), want.ID+string(want.First[:len(want.First)*(version-1)]))) {
					byChain.Add(page)
					n += len(page.Found)
				}
				if byParent != want || byChain != want || n != len(parts)-version+1 {
					t.Errorf("version %d: %+v and, with %d parts, %+v", version, byParent, n, byChain)
				}
				must(t, w.Mark(ctx, metabase.Garbage, address(10))) // marked parts are found as well
			}
			for n := 11; n < 15; n++ {
				if s, err := w.Status(ctx, address(n)); s.State != metabase.Marked || err != nil {
					t.Errorf("version %d, part %d: %+v, %v", version, n, s, err)
				}
			}
			must(t, w.Check(ctx))
		}
	}
}

// ecPart returns an EC part of object 10.
func ecPart(n, rule, part int, parent msg) msg {
	h := header(0, 10).attr(ECRule, strconv.Itoa(rule)).attr(ECPart, strconv.Itoa(part)).msg(11, msg(nil).id(1, id(10)).msg(4, parent))
	return object(n, h, 10)
}

// TestECLookUp: the part that is asked for, or the lowest that is stored, wherever it is in the pages (bug 72).
func TestECLookUp(t *testing.T) {
	w := newWorld(t)
	for n, c := range []struct{ rule, part int }{{0, 11}, {1, 1}, {0, 10}, {0, 9}, {1, 0}, {0, 3}, {2, 0}, {0, 2}, {0, 12}} {
		r := w.put(t, ecPart(20+n, c.rule, c.part, header(0, 30).attr(Expiration, "1000")))
		if r.Parent != id(10) || r.Chain != "" || r.Kind != metabase.Regular {
			t.Errorf("%+v", r)
		}
	}
	foreign := header(0, 10).attr(ECRule, "0").attr(ECPart, "0").msg(11, msg(nil).id(1, id(99)).msg(4, header(0, 30)))
	w.put(t, object(40, foreign, 10))
	check := func(state string) {
		for _, c := range []struct{ rule, part, want int }{
			{0, 11, 20}, {0, 2, 27}, {0, 12, 28}, {1, 1, 21}, {0, -1, 27}, {1, -1, 24}, {2, -5, 26},
			{0, 0, 0}, {1, 2, 0}, {3, -1, 0}, {3, 0, 0},
		} {
			f, ok := LowestPart(w.pages(t, ECParts(id(1), id(10), c.rule, c.part))...)
			if ok != (c.want != 0) || ok && (f.Address != address(c.want) || f.Size != 10) {
				t.Errorf("%s: rule %d, part %d: %v, %v", state, c.rule, c.part, f.Address, ok)
			}
		}
		var s Split
		for _, page := range w.pages(t, Parts(id(1), id(10))) {
			s.Add(page)
		}
		if s != (Split{}) {
			t.Errorf("%s: EC parts are a split: %+v", state, s)
		}
	}
	check("available")
	w.epoch = 1001 // the parent's epoch is over, so that of its parts is (bug 17)
	found, err := w.Expired(ctx, blobstor.Address{}, 10)
	must(t, err)
	if len(found) != 1 || found[0].Address != address(10) {
		t.Errorf("expired: %+v", found)
	}
	if s, err := w.Status(ctx, address(20)); s.State != metabase.Expired || err != nil {
		t.Errorf("a part: %+v, %v", s, err)
	}
	check("expired")
	must(t, w.Mark(ctx, metabase.Garbage, found[0].Address))
	check("marked")
}

// TestECOfSplit: an EC part brings along the part that it is of, and that the object.
func TestECOfSplit(t *testing.T) {
	w := newWorld(t)
	inner := func(in msg) msg { return header(0, 10).msg(11, in) }
	parent := header(0, 30).attr("FileName", "big")
	wrap := func(n, of int, h msg) msg {
		return object(n, header(0, 4).attr(ECRule, "0").attr(ECPart, "0").msg(11, msg(nil).id(1, id(of)).msg(4, h)), 4)
	}
	w.put(t, wrap(21, 11, inner(msg(nil).msg(4, header(0, 0)))))
	w.put(t, wrap(22, 12, inner(msg(nil).id(2, id(11)).id(7, id(11)))))
	last := wrap(23, 13, inner(msg(nil).id(1, id(10)).msg(4, parent).id(7, id(11))))
	recs := records(t, last)
	if len(recs) != 3 || recs[1].Address != address(13) || recs[1].Parent != id(10) || recs[2].Address != address(10) || !recs[2].Virtual {
		t.Fatalf("%+v", recs)
	}
	w.put(t, last)
	roots := w.search(t, search(false, Filter{Key: Root}))
	blobs := w.search(t, search(false, Filter{Key: Phy}))
	if !slices.Equal(roots, []int{10}) || !slices.Equal(blobs, []int{21, 22, 23}) {
		t.Errorf("roots %v, blobs %v", roots, blobs)
	}
	var s Split
	for _, page := range w.pages(t, Parts(id(1), id(10))) {
		s.Add(page)
	}
	if s != (Split{First: id(11), Last: id(13)}) {
		t.Errorf("%+v", s)
	}
	w.put(t, object(30, header(1, 0).attr(Associate, id(10).String()), 0))
	for _, n := range []int{21, 22, 23} {
		if s, err := w.Status(ctx, address(n)); s.State != metabase.Buried && s.State != metabase.Marked || err != nil {
			t.Errorf("part %d: %+v, %v", n, s, err)
		}
	}
	must(t, w.Check(ctx))
}

// TestCyclicParents: an object that is a part of itself is refused and nothing else (bug 55).
func TestCyclicParents(t *testing.T) {
	w := newWorld(t)
	self := object(10, header(0, 0).msg(11, msg(nil).id(1, id(10)).msg(4, header(0, 0))), 0)
	wantIs(t, w.Put(ctx, records(t, self)...), metabase.ErrRecord)
	via := header(0, 0).msg(11, msg(nil).id(1, id(10)).msg(4, header(0, 0)))
	circle := object(10, header(0, 0).msg(11, msg(nil).id(1, id(11)).msg(4, via)), 0)
	wantIs(t, w.Put(ctx, records(t, circle)...), metabase.ErrRecord)
}
