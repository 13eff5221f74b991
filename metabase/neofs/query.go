package neofs

import (
	"cmp"
	"encoding/base64"
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

const numberSize = 33 // bytes of a number in a cursor

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

// byID reports whether the results of a translated search come in the order of IDs.
func byID(q *metabase.Query) bool {
	return len(q.Attrs) == 0 || len(q.Filters) == 0 || q.Filters[0].Op == metabase.Absent
}

// Cursor returns the cursor that leads behind a page of a query, "" if that was the last.
//
// It is base64 of the place where the page ended. In the order of IDs that is an ID; in that of an attribute, its name,
// a zero byte, its value and the ID. A value has a zero byte behind it, unless results come in the order of numbers:
// there it is a byte, 1 if it is not negative, and 32 bytes of magnitude, big-endian, complemented if it is.
func Cursor(q metabase.Query, page metabase.Page) string {
	if !page.More {
		return ""
	}
	var b []byte
	if !byID(&q) {
		b = append(append(b, q.Filters[0].Key...), 0)
		if n, ok := parseNumber(page.Next.Value); ok && isNumeric(q.Filters[0].Op) {
			if n.Sign() >= 0 {
				n.Add(n, big.NewInt(1)) // then the sum below is at least 2^256, with a byte that is 1
			}
			b = append(b, n.Add(n, greatest).FillBytes(make([]byte, numberSize))...)
		} else {
			b = append(append(b, page.Next.Value...), 0)
		}
	}
	return base64.StdEncoding.EncodeToString(append(b, page.Next.Object[:]...))
}

// ParseCursor returns the place where a query goes on. A cursor that [Cursor] cannot have made for it is
// [metabase.ErrQuery].
func ParseCursor(q metabase.Query, cursor string) (at metabase.Position, err error) {
	if cursor == "" {
		return at, nil
	}
	b, err := base64.StdEncoding.DecodeString(cursor)
	end, ok := len(b)-idSize, false
	if err == nil && end >= 0 {
		at.Object = blobstor.ID(b[end:])
		at.Value, ok = cutValue(&q, string(b[:end]))
	}
	// All else that may be wrong with it, Cursor would not write so.
	if !ok || at.Object.IsZero() || Cursor(q, metabase.Page{More: true, Next: at}) != cursor {
		return metabase.Position{}, badQuery("no cursor of this search")
	}
	return at, nil
}

// cutValue returns the value that is in a cursor without its ID, or would be if Cursor wrote it.
func cutValue(q *metabase.Query, s string) (value string, ok bool) {
	switch {
	case len(q.Filters) == 0:
		return "", true
	case byID(q):
		return q.Filters[0].Value, true // the only one there is
	}
	f := &q.Filters[0]
	value = strings.TrimPrefix(s, f.Key+"\x00")
	if !isNumeric(f.Op) {
		value = strings.TrimSuffix(value, "\x00")
		return value, (f.Op != metabase.EQ || value == f.Value) && (f.Op != metabase.Prefix || strings.HasPrefix(value, f.Value))
	}
	if len(value) != numberSize {
		return "", false
	}
	n := new(big.Int).SetBytes([]byte(value))
	if n.Sub(n, greatest).Sign() > 0 {
		n.Sub(n, big.NewInt(1))
	}
	return n.String(), true
}
