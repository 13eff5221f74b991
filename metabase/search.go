package metabase

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

// Page is a part of a query's results.
type Page struct {
	Found []Match
	Next  Position // where the next page begins, if there is more
	More  bool     // there may be more: the limit was reached, or so many objects were looked at that the search paused
}

// Match is an object that a Search found, and where it stands in the order of the query.
type Match struct {
	Found
	At Position
}

// Search returns a page of the objects that match a query. A query that makes no sense is [ErrQuery]; one that nothing
// can match is an empty page. When [Options.ScanLimit] objects were looked at, it returns what it found until then,
// which may be nothing, and More. An object that cannot be read ends the page with an error that has its address: what
// came before is returned too, with More, and Next goes on behind it. The page is the caller's, and one transaction.
func (db *DB) Search(ctx context.Context, q Query) (page Page, err error) {
	err = db.view(ctx, "search", blobstor.Address{Container: q.Container}, func(t *txn) error {
		p, err := q.check()
		if err != nil {
			return err
		}
		n, ok := t.find(q.Container)
		if !ok || n.marked && !q.AnyStatus || p.empty {
			return nil
		}
		if p.ordered && db.lost != nil {
			return db.lost
		}
		t.many = true
		s := search{plan: p, t: t, n: n, left: db.scanLimit()}
		err = s.run()
		page = s.page
		return err
	})
	return page, err
}

// search is a Search that runs.
type search struct {
	*plan
	t     *txn
	n     named
	left  int // objects that may still be looked at
	index entries
	page  Page

	id     blobstor.ID // the object that was looked at last
	value  []byte      // and the value that led there
	room   [64]byte    // where it usually fits
	unsure bool        // by an entry that may be out of date
}

func (s *search) run() error {
	switch {
	case !s.ordered:
		return s.byID()
	case s.Filters[0].Op.numeric():
		return s.byNumber()
	}
	return s.byText()
}

// byID looks at all objects.
func (s *search) byID() error {
	all := s.n.number.append(nil)
	from := all
	if !s.After.Object.IsZero() {
		from = append(appendRecKey(nil, s.n.number, &s.After.Object), 0)
	}
	c := s.t.cursor(recs, from, all)
	for c.next() {
		if more, err := s.look(lastID(c.key), nil, &c); !more || err != nil {
			return err
		}
	}
	return nil
}

// keyRoom is enough for most keys.
const keyRoom = 128

// byText looks at the entries of the first filter's attribute that the filter allows.
func (s *search) byText() error {
	f := &s.Filters[0]
	all := appendAttr(make([]byte, 0, keyRoom), s.n.number, asText, f.Key)
	within := all
	switch f.Op {
	case EQ:
		within = appendTerminated(all, f.Value) // all stays as it is, for it only grows
	case Prefix:
		within = appendEscaped(all, f.Value)
	}
	from := within
	if s.After != (Position{}) {
		after := append(appendTerminated(slices.Clip(all), s.After.Value), s.After.Object[:]...)
		if after = append(after, 0); bytes.Compare(after, from) > 0 {
			from = after
		}
	}
	if f.Op != NE {
		return s.text(from, within, nil, len(all))
	}
	// All but one value: up to it, and behind it.
	not := appendTerminated(slices.Clip(all), f.Value)
	behind := following(not)
	if bytes.Compare(from, not) < 0 {
		if err := s.text(from, within, not, len(all)); err != nil || s.page.More {
			return err
		}
	}
	if bytes.Compare(from, behind) < 0 {
		from = behind
	}
	return s.text(from, within, nil, len(all))
}

// text looks at entries from one key up to another, if there is one; their first bytes say which attribute they are of.
func (s *search) text(from, within, until []byte, skip int) error {
	return s.entries(from, within, func(key []byte) (bool, error) {
		if until != nil && bytes.Compare(key, until) >= 0 {
			return false, nil
		}
		value, rest, ok := cutEscaped(key[skip:])
		if !ok || len(rest) != idSize {
			return false, corrupt("index entry %x", key)
		}
		if bytes.IndexByte(value, 0) >= 0 {
			value = []byte(unescaped(value))
		}
		return s.look(lastID(rest), value, nil)
	})
}

// entries calls yield with the index entries whose keys begin with a prefix, beginning at a key.
func (s *search) entries(from, prefix []byte, yield func(key []byte) (bool, error)) error {
	s.index.begin(s.t, from, prefix)
	for {
		key, unsure, err := s.index.next()
		if key == nil || err != nil {
			return err
		}
		s.unsure = unsure
		if more, err := yield(key); !more || err != nil {
			return err
		}
	}
}

// byNumber looks at the entries of a range of numbers.
func (s *search) byNumber() error {
	all := appendAttr(make([]byte, 0, keyRoom), s.n.number, asNumber, s.Filters[0].Key)
	from := append(slices.Clip(all), s.from[:]...)
	if s.After != (Position{}) {
		after := append(append(slices.Clip(all), s.after[:]...), s.After.Object[:]...)
		if after = append(after, 0); bytes.Compare(after, from) > 0 {
			from = after
		}
	}
	return s.entries(from, all, func(key []byte) (bool, error) {
		rest := key[len(all):]
		if len(rest) != len(number{})+idSize {
			return false, corrupt("index entry %x", key)
		}
		n := number(rest[:len(number{})])
		if bytes.Compare(n[:], s.to[:]) > 0 {
			return false, nil
		}
		return s.look(lastID(rest), []byte(n.String()), nil)
	})
}

// look decides about one object, which a value of the first filter's attribute led to, or a cursor that is at its record,
// and reports whether to go on.
func (s *search) look(id blobstor.ID, by []byte, at *cursor) (more bool, err error) {
	if s.left--; s.left < 0 {
		s.page.More, s.page.Next = true, s.last()
		return false, nil
	}
	if s.value == nil {
		s.value = s.room[:0]
	}
	s.id, s.value = id, append(s.value[:0], by...)
	ok := by == nil || s.mayMeet(by)
	var v verdict
	if ok {
		v, ok, err = s.record(id, by, at)
	}
	if err != nil {
		s.page.More, s.page.Next = true, s.last()
		return false, blobstor.Wrap("search", blobstor.Address{Container: s.Container, Object: id}, "", err)
	}
	if !ok {
		return true, nil
	}
	if n := len(s.page.Found); n == s.limit {
		s.page.More, s.page.Next = true, s.page.Found[n-1].At
		return false, nil
	}
	f, err := v.found(s.Attrs)
	s.page.Found = append(s.page.Found, Match{f, s.last()})
	return true, err
}

// last returns the position of the object that was looked at last. It is made only where it is needed: most objects
// that are looked at may not match.
func (s *search) last() Position { return Position{Value: string(s.value), Object: s.id} }

// record reads an object's record, and reports whether it belongs to the results.
func (s *search) record(id blobstor.ID, by []byte, at *cursor) (v verdict, ok bool, err error) {
	addr := blobstor.Address{Container: s.Container, Object: id}
	if at == nil {
		if v.packed, v.stored, err = s.t.record(s.n.number, addr); err == nil && !v.stored && !s.unsure {
			err = corrupt("%v is in the index and has no record", addr)
		}
	} else {
		v.packed, err = at.record(addr)
		v.stored = true
	}
	if err != nil || !v.stored {
		return v, false, err
	}
	if ok, err = s.accepts(&v.packed, by); err != nil || !ok || s.AnyStatus {
		return v, ok, err
	}
	err = s.t.judgeRecord(s.n, &v, deepest)
	return v, v.state == Available, err
}

// Merge returns the page that one database with the objects of all pages would return for a query: in order, each
// object once, up to the query's limit, and not beyond the place where a page that has more ends. It knows an object
// again by its place in the order, which depends on nothing but its attributes: the databases must have made their
// records with the same rules. A query that makes no sense is an empty page. The page shares its strings with the others.
func Merge(q Query, pages ...Page) Page {
	p, err := q.check()
	if err != nil {
		return Page{}
	}
	var all []Match
	var out Page
	var end *Position
	for i := range pages {
		all = append(all, pages[i].Found...)
		if pages[i].More && (end == nil || p.compare(pages[i].Next, *end) < 0) {
			end = &pages[i].Next
		}
	}
	slices.SortFunc(all, func(a, b Match) int { return p.compare(a.At, b.At) })
	for i := range all {
		if end != nil && p.compare(all[i].At, *end) > 0 {
			break
		}
		if n := len(out.Found); n > 0 && out.Found[n-1].Address == all[i].Address {
			continue
		} else if n == p.limit {
			out.More, out.Next = true, out.Found[n-1].At
			return out
		}
		out.Found = append(out.Found, all[i])
	}
	if end != nil {
		out.More, out.Next = true, *end
	}
	return out
}

// compare compares two positions in the order of the query.
func (p *plan) compare(a, b Position) int {
	if p.ordered && a.Value != b.Value {
		if c := p.order([]byte(a.Value), []byte(b.Value)); c != 0 {
			return c
		}
	}
	return strings.Compare(string(a.Object[:]), string(b.Object[:]))
}
