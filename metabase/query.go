package metabase

import (
	"bytes"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Op compares an attribute with the value of a filter.
type Op uint8

// How an attribute may compare.
const (
	EQ     Op = iota // the same bytes
	NE               // the object has the attribute, with another value
	Prefix           // the value begins with the filter's
	GT               // numbers: the filter's value must be one, and an attribute's that is none matches nothing
	GE
	LT
	LE
	Absent // the object does not have the attribute

	ops = iota
)

func (o Op) numeric() bool { return o >= GT && o <= LE }

// Filter is a condition on an attribute. Attributes of mode [Stored] are as if they were not there.
type Filter struct {
	Key   string
	Op    Op
	Value string
}

// Query asks for the objects of a container that match all filters.
//
// They come in the order of the first filter's attribute, as text or, with a numeric Op, as number, and of their IDs
// where it is the same; without filters, or if the first is Absent, in the order of IDs. Other filters on that
// attribute are conditions on the same value of it, and an object that has several values is found once, at the least
// that matches. This order depends on nothing but the objects, so pages of several databases can be merged.
type Query struct {
	Container blobstor.ID
	Filters   []Filter
	Attrs     []string // to return
	After     Position // where the page before ended
	Limit     int      // of objects in a page; 0 is 1,000
	AnyStatus bool     // also objects that are marked, buried or expired
}

// Position is a place in the order of a query's results: the value of the first filter's attribute, and an object ID.
// The zero position is before all. A numeric value is in the form that Position values have: no sign unless it is
// negative, no leading zeros.
type Position struct {
	Value  string
	Object blobstor.ID
}

// Limits of a query.
const (
	MaxFilters   = 32
	MaxQuery     = 64 << 10 // bytes of all keys and values
	defaultLimit = 1000
)

// plan is a query that was checked.
type plan struct {
	*Query
	limit   int
	ordered bool     // by the first filter's attribute
	numbers []number // of filters that have one
	from    number   // bounds of the first filter's attribute, if that is numeric
	to      number
	empty   bool // nothing can match
	after   number
}

// check refuses a query that makes no sense, with ErrQuery.
func (q *Query) check() (*plan, error) {
	bad := func(format string, args ...any) (*plan, error) {
		return nil, fmt.Errorf("%w: %s", ErrQuery, fmt.Sprintf(format, args...))
	}
	p := &plan{Query: q, limit: min(q.Limit, MaxPage)}
	if q.Limit == 0 {
		p.limit = defaultLimit
	}
	size := 0
	for i := range q.Filters {
		f := &q.Filters[i]
		size += len(f.Key) + len(f.Value)
		if f.Op >= ops || f.Op == Absent && f.Value != "" {
			return bad("filter %d: operation %d of %q", i, f.Op, f.Value)
		}
		if !f.Op.numeric() {
			continue
		}
		n, ok := parseNumber(f.Value)
		if !ok {
			return bad("filter %d: %q is no number from -(2^256-1) to 2^256-1", i, f.Value)
		}
		if p.numbers == nil {
			p.numbers = make([]number, len(q.Filters))
		}
		p.numbers[i] = n
	}
	for _, key := range q.Attrs {
		size += len(key)
	}
	if q.Container.IsZero() || q.Limit < 0 || len(q.Filters) > MaxFilters || size > MaxQuery {
		return bad("container %v, limit %d, %d filters, %d bytes", q.Container, q.Limit, len(q.Filters), size)
	}
	p.ordered = len(q.Filters) > 0 && q.Filters[0].Op != Absent
	if err := p.bound(); err != nil {
		return nil, err
	}
	return p, nil
}

// bound finds where in the order of a numeric attribute results can be, and checks the position.
func (p *plan) bound() error {
	switch {
	case !p.ordered:
		if p.After.Value != "" {
			return fmt.Errorf("%w: a position with a value in the order of IDs", ErrQuery)
		}
		return nil
	case !p.Filters[0].Op.numeric():
		return nil
	}
	p.from, p.to = least, most
	for i := range p.Filters {
		if f := &p.Filters[i]; f.Key == p.Filters[0].Key {
			p.narrow(f.Op, p.numbers[i])
		}
	}
	if p.After != (Position{}) {
		var ok bool
		if p.after, ok = parseNumber(p.After.Value); !ok {
			return fmt.Errorf("%w: position %q is no number", ErrQuery, p.After.Value)
		}
	}
	return nil
}

// narrow tightens the bounds. Both stay inclusive; the filters themselves decide about the border.
func (p *plan) narrow(op Op, n number) {
	switch op {
	case GT, GE:
		if bytes.Compare(n[:], p.from[:]) > 0 {
			p.from = n
		}
	case LT, LE:
		if bytes.Compare(n[:], p.to[:]) < 0 {
			p.to = n
		}
	}
	p.empty = bytes.Compare(p.from[:], p.to[:]) > 0
}

// matches reports whether one value of an attribute meets filter i.
func (p *plan) matches(i int, mode Mode, value []byte) bool {
	f := &p.Filters[i]
	switch f.Op {
	case EQ:
		return string(value) == f.Value
	case NE:
		return string(value) != f.Value
	case Prefix:
		return len(value) >= len(f.Value) && string(value[:len(f.Value)]) == f.Value
	case Absent:
		return false
	}
	if mode != Auto {
		return false
	}
	n, ok := parseNumber(value)
	if !ok {
		return false
	}
	c := bytes.Compare(n[:], p.numbers[i][:])
	switch f.Op {
	case GT:
		return c > 0
	case GE:
		return c >= 0
	case LT:
		return c < 0
	default:
		return c <= 0
	}
}

// meets reports whether one value of the first filter's attribute meets all filters on that attribute.
func (p *plan) meets(mode Mode, value []byte) bool {
	for i := range p.Filters {
		if p.Filters[i].Key == p.Filters[0].Key && !p.matches(i, mode, value) {
			return false
		}
	}
	return true
}

// mayMeet likewise of a value as the index has it. A number there is not as it was written.
func (p *plan) mayMeet(value []byte) bool {
	for i := range p.Filters {
		f := &p.Filters[i]
		asWritten := !p.Filters[0].Op.numeric() || f.Op.numeric()
		if f.Key == p.Filters[0].Key && asWritten && !p.matches(i, Auto, value) {
			return false
		}
	}
	return true
}

// order compares two values of the first filter's attribute.
func (p *plan) order(a, b []byte) int {
	if p.Filters[0].Op.numeric() {
		x, _ := parseNumber(a)
		y, _ := parseNumber(b)
		return bytes.Compare(x[:], y[:])
	}
	return bytes.Compare(a, b)
}

// accepts reports whether an object meets the filters, found by this value of the first filter's attribute.
func (p *plan) accepts(r *packed, by []byte) (bool, error) {
	var met [MaxFilters]bool
	has, again := !p.ordered, false // the value that led here, a lesser one that would have
	err := r.each(func(mode Mode, key, value []byte) bool {
		if mode == Stored {
			return true
		}
		for i := range p.Filters {
			if f := &p.Filters[i]; string(key) != f.Key {
				continue
			} else if !p.ordered || f.Key != p.Filters[0].Key {
				met[i] = met[i] || f.Op == Absent || p.matches(i, mode, value)
			} else if i == 0 && p.meets(mode, value) {
				order := p.order(value, by)
				has, again = has || order == 0, again || order < 0
			}
		}
		return !again
	})
	if err != nil || again || !has {
		return false, err
	}
	for i := range p.Filters {
		f := &p.Filters[i]
		if p.ordered && f.Key == p.Filters[0].Key {
			continue // the value that led here meets them
		}
		if met[i] == (f.Op == Absent) {
			return false, nil
		}
	}
	return true, nil
}
