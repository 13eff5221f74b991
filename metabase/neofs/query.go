package neofs

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// ErrUnreachable says that no object can ever match: there is nothing to search for, here or elsewhere.
var ErrUnreachable error = unreachable{}

type unreachable struct{}

func (unreachable) Error() string { return "no object can match the search" }
func (unreachable) Fault() bool   { return false }

// Filter is a condition of a search as the protocol has it. One for [Root] or [Phy] asks for the objects that have it,
// whatever Match and Value are.
type Filter struct {
	Key   string
	Match int32 // the number of the match type
	Value string
}

// ops are the match types by their number, from 1.
var ops = [...]metabase.Op{
	metabase.EQ, metabase.NE, metabase.Absent, metabase.Prefix, metabase.GT, metabase.GE, metabase.LT, metabase.LE,
}

// Search is a search as the protocol has it. If it asks for attributes, the first is that of the first filter.
type Search struct {
	Container blobstor.ID
	Filters   []Filter
	Attrs     []string
	Cursor    string // "" is the beginning
	Limit     int
}

// Query translates a search.
func (s *Search) Query() (q metabase.Query, err error) {
	q = metabase.Query{Container: s.Container, Attrs: s.Attrs, Limit: s.Limit}
	for i, key := range s.Attrs {
		if formOf(key) == unknown || i == 0 && (len(s.Filters) == 0 || s.Filters[0].Key != key) {
			return q, badQuery("attribute %d is %q", i, key)
		}
	}
	var never error
	for i := range s.Filters {
		f, err := s.Filters[i].translate()
		if never = cmp.Or(never, err); err != nil && !errors.Is(err, ErrUnreachable) {
			return q, err // whatever others are
		}
		q.Filters = append(q.Filters, f)
	}
	if never != nil {
		return q, never
	}
	if len(q.Attrs) == 0 {
		q.Filters = orderByID(q.Filters)
	}
	q.After, err = ParseCursor(q, s.Cursor)
	return q, err
}

// orderByID puts a filter first that brings results in the order of IDs: one for a single value, which spares a look at
// every object, best of an attribute in which objects differ; without one, a filter that all objects meet.
func orderByID(fs []metabase.Filter) []metabase.Filter {
	first := -1
	for i := range fs {
		common := formOf(fs[i].Key) == word || fs[i].Key == Owner
		if fs[i].Op == metabase.EQ && (first < 0 || !common) {
			first = i
		}
	}
	switch {
	case first >= 0:
		fs[0], fs[first] = fs[first], fs[0]
	case len(fs) > 0 && fs[0].Op != metabase.Absent:
		fs = slices.Insert(fs, 0, metabase.Filter{Key: reserved, Op: metabase.Absent})
	}
	return fs
}

func badQuery(format string, args ...any) error {
	return fmt.Errorf("%w: %s", metabase.ErrQuery, fmt.Sprintf(format, args...))
}

func (f *Filter) translate() (t metabase.Filter, err error) {
	form := formOf(f.Key)
	value, ok := Value(f.Key, f.Value)
	switch t.Key = f.Key; {
	case f.Key == Root || f.Key == Phy:
		t.Value = set
		return t, nil
	case form == unknown || f.Match < 1 || int(f.Match) > len(ops):
		return t, badQuery("match type %d for %q", f.Match, f.Key)
	}
	t.Op, t.Value = ops[f.Match-1], value
	switch {
	case isNumeric(t.Op):
		t.Value = f.Value
		if n, ok := parseNumber(f.Value); !ok {
			err = badQuery("%q is no number from -(2^256-1) to 2^256-1", f.Value)
		} else if form != plain || t.Op == metabase.GT && n.Cmp(greatest) == 0 || t.Op == metabase.LT && n.Cmp(least) == 0 {
			err = ErrUnreachable
		}
	case t.Op == metabase.Absent:
		if t.Value = ""; strings.HasPrefix(f.Key, reserved) {
			err = ErrUnreachable
		}
	case ok || f.Value == "" && t.Op == metabase.Prefix:
	case t.Op == metabase.EQ:
		err = ErrUnreachable
	case t.Op == metabase.NE:
		t.Op = metabase.Prefix // all values differ from what is none
	default:
		err = badQuery("%q is but a part of a text that stands for bytes", f.Value)
	}
	return t, err
}

func isNumeric(op metabase.Op) bool { return op >= metabase.GT && op <= metabase.LE }

// Bounds of numbers.
var (
	greatest = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	least    = new(big.Int).Neg(greatest)
)

// parseNumber reads digits behind an optional sign, as many as anyone would write.
func parseNumber(s string) (*big.Int, bool) {
	if len(s) > 1<<10 {
		return nil, false
	}
	n, ok := new(big.Int).SetString(s, 10)
	return n, ok && n.CmpAbs(greatest) <= 0
}
