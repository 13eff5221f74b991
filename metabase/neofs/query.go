package neofs

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// ErrUnreachable says that no object can ever match: there is nothing to search for, here or elsewhere.
var ErrUnreachable = errors.New("no object can match the search")

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
	if len(s.Attrs) > 0 && (len(s.Filters) == 0 || s.Attrs[0] != s.Filters[0].Key) {
		return q, badQuery("the first attribute is not that of the first filter")
	}
	for _, key := range s.Attrs {
		if formOf(key) == unknown {
			return q, badQuery("no attribute %q", key)
		}
	}
	var never error
	for i := range s.Filters {
		f, err := s.Filters[i].translate()
		if err == ErrUnreachable {
			never = err // unless another filter is not valid
		} else if err != nil {
			return q, err
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
// every object, else one that all objects meet.
func orderByID(fs []metabase.Filter) []metabase.Filter {
	eq := slices.IndexFunc(fs, func(f metabase.Filter) bool { return f.Op == metabase.EQ })
	switch {
	case eq >= 0:
		fs[0], fs[eq] = fs[eq], fs[0]
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
	case form == flag:
		t.Value = set
		return t, nil
	case form == unknown || f.Match < 1 || int(f.Match) > len(ops):
		return t, badQuery("match type %d for %q", f.Match, f.Key)
	}
	t.Op, t.Value = ops[f.Match-1], value
	switch {
	case isNumeric(t.Op):
		t.Value = f.Value
		err = checkNumber(t.Op, f.Value, form)
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

func checkNumber(op metabase.Op, s string, form form) error {
	n, ok := parseNumber(s)
	switch {
	case !ok:
		return badQuery("%q is no number from -(2^256-1) to 2^256-1", s)
	case form != plain, op == metabase.GT && n.Cmp(greatest) == 0, op == metabase.LT && n.Cmp(least) == 0:
		return ErrUnreachable
	}
	return nil
}

// Bounds of numbers.
var (
	greatest = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	least    = new(big.Int).Neg(greatest)
)

// parseNumber reads digits behind an optional sign.
func parseNumber(s string) (n *big.Int, ok bool) {
	if len(s) > 80 { // leading zeros, or out of bounds
		sign := s[:len(s)-len(strings.TrimLeft(s, "+-"))]
		s = sign + strings.TrimLeft(s[len(sign):], "0")
	}
	if len(s) <= 80 {
		n, ok = new(big.Int).SetString(s, 10)
	}
	return n, ok && n.CmpAbs(greatest) <= 0
}
