package neofs

import (
	"math"
	"strconv"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Queries for parts return all of them, whatever their status: the object they are of decides.

// Parts asks for the objects that name a parent: the last part and the link of a split, and EC parts.
func Parts(container, parent blobstor.ID) metabase.Query {
	return lookUp(container, metabase.Filter{Key: SplitParent, Value: string(parent[:])})
}

// ChainParts asks for the parts of a split by the Chain of their records. Version 2 has that in all parts but the
// first, whose ID it is.
func ChainParts(container blobstor.ID, chain string) metabase.Query {
	key := SplitFirst
	if len(chain) == uuidSize {
		key = SplitID
	}
	return lookUp(container, metabase.Filter{Key: key, Value: chain})
}

// ECParts asks for a part of an object by the indexes of rule and part; with a negative part, for all of that rule, of
// which [LowestPart] picks one.
func ECParts(container, parent blobstor.ID, rule, part int) metabase.Query {
	q := Parts(container, parent)
	q.Filters = append(q.Filters, metabase.Filter{Key: ECRule, Value: strconv.Itoa(rule)})
	if part >= 0 {
		q.Filters = append(q.Filters, metabase.Filter{Key: ECPart, Value: strconv.Itoa(part)})
	}
	return q
}

func lookUp(container blobstor.ID, by metabase.Filter) metabase.Query {
	attrs := []string{SplitParent, SplitID, SplitFirst, ECPart}
	return metabase.Query{Container: container, Filters: []metabase.Filter{by}, Attrs: attrs, AnyStatus: true}
}

// Split is what is known of an object's split. An ID that is zero is not known.
type Split struct {
	ID                string // of version 1, as its bytes
	First, Last, Link blobstor.ID
}

// Add takes over what a page of [Parts] or [ChainParts] tells.
func (s *Split) Add(page metabase.Page) {
	for i := range page.Found {
		f := &page.Found[i]
		parent, id, first, part := f.Values[0], f.Values[1], f.Values[2], f.Values[3]
		if part != "" {
			continue // of an erasure code, not of a split
		}
		s.ID = id
		copy(s.First[:], first)
		if f.Kind == metabase.Link {
			s.Link = f.Address.Object
		} else if parent != "" {
			s.Last = f.Address.Object
		}
	}
}

// LowestPart returns the EC part with the least index in the pages of a query, and reports whether there is one.
func LowestPart(pages ...metabase.Page) (part metabase.Found, ok bool) {
	least := uint64(math.MaxUint64)
	for i := range pages {
		for k := range pages[i].Found {
			f := &pages[i].Found[k].Found
			if n, err := strconv.ParseUint(f.Values[3], 10, 31); err == nil && n < least {
				least, part, ok = n, *f, true
			}
		}
	}
	return part, ok
}
