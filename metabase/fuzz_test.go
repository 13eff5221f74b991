package metabase

import (
	"bytes"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// FuzzRecord: whatever bytes a record has, it is read or refused; what was read is written and read again.
func FuzzRecord(f *testing.F) {
	for _, r := range []Record{
		{},
		{Kind: Lock, Target: id(1), Parent: id(2), Chain: "c", Virtual: true, Location: "l", Size: 1 << 62, Expires: 1 << 63},
		{Attrs: []Attr{{"k", "v", Auto}, {"", "", Stored}, {"\x00", "\xff", Opaque}}},
	} {
		f.Add(r.appendTo(nil))
	}
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseRecord(object(1, 1), b)
		if err != nil {
			return
		}
		r, err := p.record()
		if err != nil {
			return
		}
		if _, err := p.found([]string{"k", ""}); err != nil {
			t.Errorf("found: %v", err)
		}
		again, err := parseRecord(object(1, 1), r.appendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.record(); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v, want %+v", got, err, r)
		}
		if n := len(r.appendTo(nil)); n > r.encodedLen() {
			t.Errorf("%d bytes, encodedLen says %d", n, r.encodedLen())
		}
	})
}

// FuzzNumber: numbers are what math/big says, sort as bytes like numbers, and print as they are read.
func FuzzNumber(f *testing.F) {
	for _, s := range append(plainValues, most.String(), "1"+most.String(), least.String()) {
		f.Add(s, "-1")
	}
	limit := new(big.Int).Lsh(big.NewInt(1), 256)
	read := func(s string) *big.Int {
		if strings.Trim(s, "+-0123456789") != "" {
			return nil
		}
		n, ok := new(big.Int).SetString(s, 10)
		if !ok || n.CmpAbs(limit) >= 0 {
			return nil
		}
		return n
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := parseNumber(a)
		y, okY := parseNumber([]byte(b))
		p, q := read(a), read(b)
		if okX != (p != nil) || okY != (q != nil) {
			t.Fatalf("%q is a number: %v; %q: %v", a, okX, b, okY)
		}
		if !okX || !okY {
			return
		}
		signA, digitsA := splitNumber(a)
		signB, digitsB := splitNumber(b)
		if (x == y) != (signA == signB && digitsA == digitsB) {
			t.Errorf("%q and %q are split otherwise", a, b)
		}
		if x.String() != p.String() {
			t.Errorf("%q is printed as %s", a, x)
		}
		if again, ok := parseNumber(x.String()); !ok || again != x {
			t.Errorf("%q is read as %v", x, again)
		}
		if got := bytes.Compare(x[:], y[:]); got != p.Cmp(q) {
			t.Errorf("%q and %q compare as %d", a, b, got)
		}
	})
}

// FuzzEscaped: texts in keys sort as they do by themselves, and are cut off where they end.
func FuzzEscaped(f *testing.F) {
	for _, a := range plainValues {
		f.Add(a, "a\x00", "rest")
	}
	f.Fuzz(func(t *testing.T, a, b, rest string) {
		x, y := appendTerminated(nil, a), appendTerminated(nil, b)
		if got, want := bytes.Compare(x, y), strings.Compare(a, b); got != want {
			t.Errorf("%q and %q compare as %d", a, b, got)
		}
		if len(x) != escapedLen(a)+2 {
			t.Errorf("%q takes %d bytes", a, len(x))
		}
		text, more, ok := cutEscaped(append(x, rest...))
		if !ok || unescaped(text) != a || string(more) != rest {
			t.Errorf("%q is cut into %q, %q, %v", a, text, more, ok)
		}
		if bytes.HasPrefix(y, appendEscaped(nil, a)) != strings.HasPrefix(b, a) {
			t.Errorf("prefix %q of %q", a, b)
		}
		cutEscaped([]byte(a)) // must not panic
	})
}

// FuzzQuery: a query is refused or has a plan, which says the same of a value as the model.
func FuzzQuery(f *testing.F) {
	f.Add("n", "5", "n", "007", byte(GE), byte(EQ), "007", byte(Auto), "", 3)
	f.Add("a", "", "b", "x", byte(Prefix), byte(Absent), "x", byte(Opaque), "5", 0)
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string, op1, op2 byte, value string, mode byte, after string, limit int) {
		q := Query{Container: id(1), Filters: []Filter{{k1, Op(op1), v1}, {k2, Op(op2), v2}}, After: Position{Value: after}, Limit: limit}
		p, err := q.check()
		if err != nil {
			wantIs(t, err, ErrQuery)
			return
		}
		a := Attr{k1, value, Mode(mode % modes)}
		for i, f := range q.Filters {
			if f.Key == k1 && p.matches(i, a.Mode, []byte(value)) != meets(f, a) {
				t.Errorf("%+v and %q: %v", f, value, !meets(f, a))
			}
		}
		r := Record{Address: object(1, 1), Attrs: []Attr{a}}
		packed, err := parseRecord(r.Address, r.appendTo(nil))
		must(t, err)
		values, want := matching(q, &r)
		got, err := p.accepts(&packed, []byte(value))
		if p.ordered && len(values) == 0 {
			want = false
		}
		if err != nil || got != want {
			t.Errorf("%+v and %+v: %v, %v", q.Filters, a, got, err)
		}
	})
}

// FuzzMerge: pages of any databases are merged into what one database with all of them would have: in order, each once,
// within the limit, and going on from Next nothing is lost.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x81, 0x92}, byte(2), byte(2), false)
	f.Add([]byte{9, 9, 0xff, 0}, byte(1), byte(0), true)
	f.Fuzz(func(t *testing.T, objects []byte, limit, scan byte, numeric bool) {
		q := Query{Container: id(1), Limit: 1 + int(limit%8), Filters: []Filter{{"n", Prefix, ""}}}
		if numeric {
			q.Filters[0] = Filter{"n", GE, "0"}
		}
		p, err := q.check()
		must(t, err)
		var dbs [2][]Match
		want := map[blobstor.ID]bool{}
		for i, b := range objects[:min(len(objects), 60)] {
			m := Match{Found: Found{Address: object(1, i%16)}, At: Position{Value: string('0' + rune(i%16%3)), Object: id(i % 16)}}
			want[m.At.Object] = true
			for d := range dbs {
				if b&(1<<d) != 0 || b&3 == 0 {
					dbs[d] = append(dbs[d], m)
				}
			}
		}
		for d := range dbs {
			slices.SortFunc(dbs[d], func(a, b Match) int { return p.compare(a.At, b.At) })
			dbs[d] = slices.CompactFunc(dbs[d], func(a, b Match) bool { return a.At == b.At })
		}
		for turn := 0; ; turn++ {
			got := Merge(q, fakePage(p, dbs[0], 1+int(scan%5)), fakePage(p, dbs[1], 2+int(scan%3)))
			for i, m := range got.Found {
				if !want[m.At.Object] || i >= q.Limit || i > 0 && p.compare(got.Found[i-1].At, m.At) >= 0 {
					t.Fatalf("%v comes twice, or too late", m.At)
				}
				delete(want, m.At.Object)
			}
			if !got.More {
				break
			}
			if turn > 100 || p.After != (Position{}) && p.compare(got.Next, p.After) <= 0 {
				t.Fatal("no progress")
			}
			q.After = got.Next
			p.After = got.Next
		}
		if len(want) > 0 {
			t.Errorf("%d are lost", len(want))
		}
	})
}

// fakePage is what a database with these objects returns, which looks at a few at most.
func fakePage(p *plan, all []Match, scan int) (page Page) {
	for _, m := range all {
		switch {
		case p.After != (Position{}) && p.compare(m.At, p.After) <= 0:
		case len(page.Found) == min(scan, p.limit):
			page.More, page.Next = true, page.Found[len(page.Found)-1].At
			return page
		default:
			page.Found = append(page.Found, m)
		}
	}
	return page
}

// FuzzPendingList: a list gives back the entries that it was made of, and anything else is refused or gives entries that
// make it again.
func FuzzPendingList(f *testing.F) {
	f.Add([]byte("\x03tk\x00\x02t\x00"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("\x00\x80"))
	of := id(3)
	object := appendRecKey(nil, 7, &of)
	f.Fuzz(func(t *testing.T, list []byte) {
		entries, err := entriesOf(object, list)
		if err != nil {
			wantIs(t, err, blobstor.ErrCorrupt)
			return
		}
		var again []byte
		for _, e := range entries {
			again = appendToList(again, []byte(e))
			if string(object[:prefix]) != e[:prefix] || string(object[prefix:]) != e[len(e)-idSize:] {
				t.Errorf("entry %q", e)
			}
		}
		same, err := entriesOf(object, again)
		if err != nil || !slices.Equal(same, entries) {
			t.Errorf("%x gives %q, and those %q, %v", list, entries, same, err)
		}
	})
}
