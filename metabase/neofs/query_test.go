package neofs

import (
	"errors"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Match types by the protocol's numbers.
const (
	equal = iota + 1
	notEqual
	absent
	prefix
	gt
	ge
	lt
	le
)

var most = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()

func search(attr bool, fs ...Filter) Search {
	s := Search{Container: id(1), Filters: fs}
	if attr {
		s.Attrs = []string{fs[0].Key}
	}
	return s
}

func TestFilters(t *testing.T) {
	parent := id(3)
	text := parent.String()
	for _, c := range []struct {
		in   Filter
		want metabase.Filter
	}{
		{Filter{"a", equal, "b"}, metabase.Filter{Key: "a", Op: metabase.EQ, Value: "b"}},
		{Filter{"a", notEqual, "b"}, metabase.Filter{Key: "a", Op: metabase.NE, Value: "b"}},
		{Filter{"a", absent, "ignored"}, metabase.Filter{Key: "a", Op: metabase.Absent}},
		{Filter{"a", prefix, ""}, metabase.Filter{Key: "a", Op: metabase.Prefix}},
		{Filter{"a", gt, "-1"}, metabase.Filter{Key: "a", Op: metabase.GT, Value: "-1"}},
		{Filter{"a", ge, "007"}, metabase.Filter{Key: "a", Op: metabase.GE, Value: "007"}},
		{Filter{"a", lt, most}, metabase.Filter{Key: "a", Op: metabase.LT, Value: most}},
		{Filter{CreationEpoch, le, "+5"}, metabase.Filter{Key: CreationEpoch, Op: metabase.LE, Value: "+5"}},
		{Filter{PayloadLength, prefix, "1"}, metabase.Filter{Key: PayloadLength, Op: metabase.Prefix, Value: "1"}},
		{Filter{SplitParent, equal, text}, metabase.Filter{Key: SplitParent, Op: metabase.EQ, Value: string(parent[:])}},
		{Filter{SplitParent, notEqual, text}, metabase.Filter{Key: SplitParent, Op: metabase.NE, Value: string(parent[:])}},
		{Filter{SplitParent, notEqual, "cat"}, metabase.Filter{Key: SplitParent, Op: metabase.Prefix}},
		{Filter{SplitParent, prefix, ""}, metabase.Filter{Key: SplitParent, Op: metabase.Prefix}},
		{Filter{SplitParent, prefix, text}, metabase.Filter{Key: SplitParent, Op: metabase.Prefix, Value: string(parent[:])}},
		{Filter{Associate, absent, ""}, metabase.Filter{Key: Associate, Op: metabase.Absent}},
		// All numbers match these, and nothing else does.
		{Filter{"a", le, most}, metabase.Filter{Key: "a", Op: metabase.LE, Value: most}},
		{Filter{"a", ge, "-" + most}, metabase.Filter{Key: "a", Op: metabase.GE, Value: "-" + most}},
	} {
		s := search(true, c.in)
		q, err := s.Query()
		if err != nil || len(q.Filters) != 1 || q.Filters[0] != c.want {
			t.Errorf("%+v: %+v, %v", c.in, q.Filters, err)
		}
	}
}

// TestFlags: whatever is asked of them, they are either there or not.
func TestFlags(t *testing.T) {
	for _, key := range []string{Root, Phy} {
		for match := range int32(10) {
			for _, value := range []string{"", "1", "0", "cat"} {
				s := search(true, Filter{key, match, value})
				q, err := s.Query()
				if want := (metabase.Filter{Key: key, Op: metabase.EQ, Value: "1"}); err != nil || q.Filters[0] != want {
					t.Errorf("match %d %q: %+v, %v", match, value, q.Filters, err)
				}
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	for _, f := range []Filter{
		{"a", gt, most}, {"a", gt, "+" + most}, {"a", gt, "00" + most}, {"a", lt, "-" + most}, {CreationEpoch, gt, most},
		{Owner, absent, ""}, {SplitParent, absent, ""}, {Version, absent, ""},
		{Owner, equal, "cat"}, {PayloadHash, equal, "abc"}, {SplitID, equal, ""}, {Associate, equal, "0"},
		{Owner, gt, "1"}, {Version, le, "1"}, {ObjectType, ge, "0"}, {Associate, lt, "5"},
	} {
		for _, withAttr := range []bool{false, true} {
			s := search(withAttr, f, Filter{"b", equal, "c"})
			_, err := s.Query()
			wantIs(t, err, ErrUnreachable)
			if errors.Is(err, metabase.ErrQuery) || blobstor.IsFault(err) {
				t.Errorf("%+v: %v", f, err)
			}
			// What is not valid is that beside a filter that nothing meets, too.
			s = search(withAttr, f, Filter{"b", gt, "c"})
			_, err = s.Query()
			wantIs(t, err, metabase.ErrQuery)
		}
	}
}

// TestInvalidSearches: numbers are decimal and in bounds (bug 42).
func TestInvalidSearches(t *testing.T) {
	over := new(big.Int).Lsh(big.NewInt(1), 256).String()
	for _, number := range []string{
		"", "+", "-", "+-5", "--5", "1_000", "0x10", "1e3", "1.5", " 1", "1 ", "a", "٣", over, "-" + over,
		strings.Repeat("9", 100), strings.Repeat("9", 1<<16), "-" + strings.Repeat("0", 100) + over, strings.Repeat("0", 100) + "x",
	} {
		for match := int32(gt); match <= le; match++ {
			for _, key := range []string{"a", PayloadLength, Owner} {
				s := search(true, Filter{key, match, number})
				if _, err := s.Query(); !errors.Is(err, metabase.ErrQuery) {
					t.Errorf("%.40q: %v", number, err)
				}
			}
		}
	}
	for name, s := range map[string]Search{
		"no match type":       search(false, Filter{"a", 0, "b"}),
		"negative match type": search(false, Filter{"a", -1, "b"}),
		"match type 9":        search(false, Filter{"a", 9, "b"}),
		"unknown field":       search(false, Filter{"$Object:colour", equal, "b"}),
		"unknown field 2":     search(false, Filter{"$Object:", absent, ""}),
		"part of base58":      search(false, Filter{Owner, prefix, "NKuy"}),
		"part of hexadecimal": search(false, Filter{PayloadHash, prefix, "00"}),
		"other attribute":     {Container: id(1), Filters: []Filter{{"a", equal, "b"}}, Attrs: []string{"b", "a"}},
		"attributes alone":    {Container: id(1), Attrs: []string{"a"}},
		"unknown attribute":   {Container: id(1), Filters: []Filter{{"a", equal, "b"}}, Attrs: []string{"a", "$Object:colour"}},
	} {
		if _, err := s.Query(); !errors.Is(err, metabase.ErrQuery) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLongNumbers: leading zeros do not make a number too great.
func TestLongNumbers(t *testing.T) {
	for _, sign := range []string{"", "+", "-"} {
		s := search(true, Filter{"a", ge, sign + strings.Repeat("0", 1000) + "5"})
		_, err := s.Query()
		must(t, err)
	}
}

// shelf is a database with objects 10 to 19: n is their number, mod that modulo 3, even is there for even ones.
func shelf(tb testing.TB) *world {
	w := newWorld(tb)
	for n := 19; n >= 10; n-- {
		h := header(0, n).attr("n", strconv.Itoa(n)).attr("mod", strconv.Itoa(n%3)).attr("text", "t"+strconv.Itoa(29-n))
		if n%2 == 0 {
			h = h.attr("even", "yes")
		}
		w.put(tb, object(n, h, n))
	}
	return w
}

// TestSearches: what is found, and in which order, page by page.
func TestSearches(t *testing.T) {
	w := shelf(t)
	tomb := header(1, 0).attr(Associate, id(50).String())
	w.put(t, object(30, tomb, 0))
	for _, c := range []struct {
		name string
		s    Search
		want []int
	}{
		{"all", Search{Container: id(1)}, []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 30}},
		{"equal", search(true, Filter{"mod", equal, "1"}), []int{10, 13, 16, 19}},
		{"not equal is not absent", search(true, Filter{"even", notEqual, "no"}), []int{10, 12, 14, 16, 18}},
		{"by value", search(true, Filter{"text", prefix, "t1"}), []int{19, 18, 17, 16, 15, 14, 13, 12, 11, 10}},
		{"the same by ID", search(false, Filter{"text", prefix, "t1"}), []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"by number", search(true, Filter{"n", gt, "16"}), []int{17, 18, 19}},
		{"modulo, by value", search(true, Filter{"mod", ge, "0"}), []int{12, 15, 18, 10, 13, 16, 19, 11, 14, 17}},
		{"modulo, by ID", search(false, Filter{"mod", ge, "0"}), []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"modulo, not 1", search(true, Filter{"mod", notEqual, "1"}), []int{12, 15, 18, 11, 14, 17}},
		{"equal comes second", search(false, Filter{"n", lt, "17"}, Filter{"mod", equal, "0"}), []int{12, 15}},
		{"absent", search(false, Filter{"even", absent, ""}), []int{11, 13, 15, 17, 19, 30}},
		{"absent, with the attribute", search(true, Filter{"even", absent, ""}), []int{11, 13, 15, 17, 19, 30}},
		{"absent comes first", search(true, Filter{"even", absent, ""}, Filter{"mod", equal, "0"}), []int{15}},
		{"roots", search(false, Filter{Key: Root}), []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"blobs", search(true, Filter{Key: Phy}), []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 30}},
		{"tombstones", search(true, Filter{ObjectType, equal, "TOMBSTONE"}), []int{30}},
		{"associated", search(true, Filter{Associate, equal, id(50).String()}), []int{30}},
		{"any associated", search(true, Filter{Associate, prefix, ""}), []int{30}},
		{"owner", search(false, Filter{Owner, equal, Text(Owner, owner(7))}, Filter{"n", le, "11"}), []int{10, 11}},
		{"another owner", search(false, Filter{Owner, notEqual, Text(Owner, owner(7))}), nil},
		{"no owner", search(false, Filter{Owner, notEqual, "cat"}, Filter{"n", le, "11"}), []int{10, 11}},
		{"length", search(true, Filter{PayloadLength, ge, "18"}), []int{18, 19}},
		// Numbers are in the order of text too (bug 37).
		{"digits", search(true, Filter{PayloadLength, prefix, "1"}), []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"all lengths", search(true, Filter{PayloadLength, prefix, ""}), []int{30, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"not a length", search(true, Filter{PayloadLength, notEqual, "cat"}), []int{30, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"all numbers", search(true, Filter{PayloadLength, le, most}), []int{30, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"numbers are no text", search(true, Filter{"text", ge, "-" + most}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for limit := 1; limit < 13; limit++ {
				c.s.Limit = limit
				if got := w.search(t, c.s); !slices.Equal(got, c.want) {
					t.Fatalf("%d at a time: %v, want %v", limit, got, c.want)
				}
			}
		})
	}
}

// TestOrderByID: without attributes the filter goes first that leads to few objects in the order of IDs.
func TestOrderByID(t *testing.T) {
	root, owned, named := Filter{Key: Root}, Filter{Owner, equal, Text(Owner, owner(7))}, Filter{"FileName", equal, "cat"}
	other, begins := Filter{"b", absent, ""}, Filter{"c", prefix, "d"}
	for _, c := range []struct {
		fs    []Filter
		first string
		n     int
	}{
		{[]Filter{root, named}, "FileName", 2},
		{[]Filter{begins, root, owned, named, other}, "FileName", 5},
		{[]Filter{begins, owned, root}, Owner, 3},
		{[]Filter{other, begins, named}, "FileName", 3},
		{[]Filter{other, begins}, "b", 2},
		{[]Filter{begins, other}, reserved, 3},
	} {
		q := query(t, search(false, c.fs...))
		if len(q.Filters) != c.n || q.Filters[0].Key != c.first {
			t.Errorf("%+v becomes %+v", c.fs, q.Filters)
		}
		q = query(t, search(true, c.fs...))
		if len(q.Filters) != len(c.fs) || q.Filters[0].Key != c.fs[0].Key {
			t.Errorf("with attributes, %+v becomes %+v", c.fs, q.Filters)
		}
	}
}

// TestQueryKeepsSearch: a search may be used again.
func TestQueryKeepsSearch(t *testing.T) {
	s := search(false, Filter{"a", gt, "5"}, Filter{"b", equal, "c"})
	want := Search{Container: s.Container, Filters: slices.Clone(s.Filters)}
	_, err := s.Query()
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v", s, err)
	}
}
