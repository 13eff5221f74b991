package metabase

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

// goes reports whether Collect shall remove an object: not before the last part of a virtual one.
func (m *model) goes(addr blobstor.Address) bool {
	c := m.of[addr.Container]
	if c == nil || c.recs[addr.Object] == nil || c.recs[addr.Object].Virtual && len(c.parts(addr.Object)) > 0 {
		return false
	}
	s := m.statusOf(addr)
	return !s.Held && (s.State >= Marked || s.Mark == Redundant)
}

// forget removes a record, and the virtual one above it with its last part.
func (m *model) forget(addr blobstor.Address) {
	c, id := m.of[addr.Container], addr.Object
	if c == nil {
		return
	}
	for depth := deepest; c.recs[id] != nil; depth-- {
		parent := c.parent(c.recs[id])
		delete(c.recs, id)
		delete(c.marks, id)
		up := c.recs[parent]
		if depth == 0 || up == nil || !up.Virtual || len(c.parts(parent)) > 0 {
			return
		}
		id = parent
	}
}

func (m *model) counters(id blobstor.ID) (n Counters) {
	c := m.of[id]
	if c == nil {
		return n
	}
	for id, r := range c.recs {
		marked := c.marks[id] != None
		for _, add := range []struct {
			is bool
			to *int64
			by int64
		}{
			{!r.Virtual, &n.Objects, 1},
			{!r.Virtual && !marked, &n.Payload, r.Size},
			{marked, &n.Garbage, 1},
			{r.Kind == Regular && r.Parent.IsZero() && r.Chain == "", &n.Roots, 1},
			{r.Kind == Tombstone, &n.Tombstones, 1},
			{r.Kind == Lock, &n.Locks, 1},
			{r.Kind == Link, &n.Links, 1},
		} {
			if add.is {
				*add.to += add.by
			}
		}
	}
	return n
}

// each calls do with all records in the order of List.
func (m *model) each(do func(c *contents, r *Record)) {
	byBytes := func(a, b blobstor.ID) int { return strings.Compare(string(a[:]), string(b[:])) }
	for _, id := range slices.SortedFunc(maps.Keys(m.of), byBytes) {
		c := m.of[id]
		for _, id := range c.ids() {
			do(c, c.recs[id])
		}
	}
}

func foundOf(r *Record, keys []string) Found {
	f := Found{Address: r.Address, Kind: r.Kind, Size: r.Size}
	for _, k := range keys {
		i := slices.IndexFunc(r.Attrs, func(a Attr) bool { return a.Key == k })
		if i < 0 {
			f.Values = append(f.Values, "")
		} else {
			f.Values = append(f.Values, r.Attrs[i].Value)
		}
	}
	return f
}

func (m *model) list(keys []string) (all []Found) {
	m.each(func(_ *contents, r *Record) {
		if !r.Virtual && m.statusOf(r.Address).State == Available {
			all = append(all, foundOf(r, keys))
		}
	})
	return all
}

func (m *model) expired() map[blobstor.Address]bool {
	all := map[blobstor.Address]bool{}
	m.each(func(_ *contents, r *Record) {
		if r.Expires != 0 && r.Expires < m.epoch && m.statusOf(r.Address).State == Expired {
			all[r.Address] = true
		}
	})
	return all
}

// integer reads a number as the filters do, by other means.
func integer(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || strings.Contains(s, "_") || n.BitLen() > 256 {
		return nil
	}
	return n
}

func meets(f Filter, a Attr) bool {
	switch f.Op {
	case EQ:
		return a.Value == f.Value
	case NE:
		return a.Value != f.Value
	case Prefix:
		return strings.HasPrefix(a.Value, f.Value)
	case Absent:
		return false
	}
	x, y := integer(a.Value), integer(f.Value)
	if x == nil || a.Mode != Auto {
		return false
	}
	c := x.Cmp(y)
	return map[Op]bool{GT: c > 0, GE: c >= 0, LT: c < 0, LE: c <= 0}[f.Op]
}

// search returns all results of a query.
func (m *model) search(q Query) (all []Match) {
	c := m.of[q.Container]
	if c == nil {
		return nil
	}
	numeric := len(q.Filters) > 0 && q.Filters[0].Op.numeric()
	for _, id := range c.ids() {
		r := c.recs[id]
		if !q.AnyStatus && m.statusOf(r.Address).State != Available {
			continue
		}
		if values, ok := matching(q, r); ok {
			match := Match{Found: foundOf(r, q.Attrs), At: Position{Object: id}}
			slices.SortFunc(values, func(a, b string) int { return byValue(numeric, a, b) })
			if len(values) > 0 {
				match.At.Value = values[0]
			}
			if numeric {
				match.At.Value = integer(values[0]).String()
			}
			all = append(all, match)
		}
	}
	slices.SortStableFunc(all, func(a, b Match) int { return byValue(numeric, a.At.Value, b.At.Value) })
	return all
}

func byValue(numeric bool, a, b string) int {
	if numeric {
		return integer(a).Cmp(integer(b))
	}
	return cmp.Compare(a, b)
}

// matching returns the values of the first filter's attribute that meet all filters on it, and whether the record
// meets all.
func matching(q Query, r *Record) (values []string, ok bool) {
	ordered := len(q.Filters) > 0 && q.Filters[0].Op != Absent
	for i, f := range q.Filters {
		first := ordered && f.Key == q.Filters[0].Key
		met := f.Op == Absent && !first
		for _, a := range r.Attrs {
			switch {
			case a.Mode == Stored || a.Key != f.Key:
			case first && i == 0:
				all := true
				for _, g := range q.Filters {
					all = all && (g.Key != f.Key || meets(g, a))
				}
				if all {
					values, met = append(values, a.Value), true
				}
			case first:
			case f.Op == Absent:
				met = false
			default:
				met = met || meets(f, a)
			}
		}
		if !met && (!first || i == 0) {
			return nil, false
		}
	}
	return values, true
}
