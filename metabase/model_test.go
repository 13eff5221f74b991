package metabase

import (
	"bytes"
	"maps"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// model is what a database shall hold, as plain maps. Every question is answered by looking at all of it.
type model struct {
	epoch uint64
	of    map[blobstor.ID]*contents
}

type contents struct {
	marked bool
	recs   map[blobstor.ID]*Record
	marks  map[blobstor.ID]Mark // of recs only
}

func newModel() *model { return &model{epoch: 100, of: map[blobstor.ID]*contents{}} }

func (c *contents) ids() []blobstor.ID {
	return slices.SortedFunc(maps.Keys(c.recs), func(a, b blobstor.ID) int { return bytes.Compare(a[:], b[:]) })
}

// related returns the objects of a kind with this target, in order.
func (c *contents) related(kind Kind, target blobstor.ID) (rs []*Record) {
	for _, id := range c.ids() {
		if r := c.recs[id]; r.Kind == kind && r.Target == target {
			rs = append(rs, r)
		}
	}
	return rs
}

// parent returns what a record is a part of.
func (c *contents) parent(r *Record) blobstor.ID {
	if !r.Parent.IsZero() || r.Chain == "" {
		return r.Parent
	}
	for _, id := range c.ids() {
		if m := c.recs[id]; m.Chain == r.Chain && !m.Parent.IsZero() {
			return m.Parent
		}
	}
	return blobstor.ID{}
}

// parts returns the objects that are parts of another one, directly.
func (c *contents) parts(of blobstor.ID) (ids []blobstor.ID) {
	chains := map[string]bool{}
	for _, r := range c.recs {
		if r.Parent == of {
			chains[r.Chain] = r.Chain != ""
		}
	}
	for _, id := range c.ids() {
		r := c.recs[id]
		if r.Parent == of || r.Parent.IsZero() && chains[r.Chain] {
			ids = append(ids, id)
		}
	}
	return ids
}

// below returns the objects that are parts of some, of their parts and so on, and these themselves.
func (c *contents) below(ids ...blobstor.ID) map[blobstor.ID]bool {
	all := map[blobstor.ID]bool{}
	for len(ids) > 0 {
		id := ids[0]
		ids = ids[1:]
		if !all[id] {
			all[id] = true
			ids = append(ids, c.parts(id)...)
		}
	}
	return all
}

// status decides about an object with the record that it has or would have.
func (m *model) status(c *contents, id blobstor.ID, r *Record, stored bool, depth int) (s Status) {
	if s.Mark = c.marks[id]; stored {
		s.State = Available
		s.Virtual, s.Location = r.Virtual, r.Location
	}
	s.HasParts = len(c.parts(id)) > 0
	if c.marked {
		s.State = ContainerGone
		return s
	}
	for _, l := range c.related(Lock, id) {
		if !s.Held && c.marks[l.Address.Object] != Garbage && (l.Expires == 0 || l.Expires >= m.epoch) {
			s.Held, s.By = true, l.Address.Object
		}
	}
	if s.Held {
		return s
	}
	switch by := c.tombstone(id); {
	case by != nil:
		s.State, s.By = Buried, by.Address.Object
	case stored && s.Mark == Garbage:
		s.State = Marked
	case stored && r.Expires != 0 && r.Expires < m.epoch:
		s.State = Expired
	}
	if r == nil || depth == 0 {
		return s
	}
	if parent := c.parent(r); !parent.IsZero() {
		above := c.recs[parent]
		switch p := m.status(c, parent, above, above != nil, depth-1); {
		case p.Held:
			s.Held, s.By = true, p.By
			if stored {
				s.State = Available
			}
		case p.State > max(s.State, Available):
			s.State, s.By = p.State, p.By
		}
	}
	return s
}

// tombstone returns the first that buries an object.
func (c *contents) tombstone(id blobstor.ID) *Record {
	for _, r := range c.related(Tombstone, id) {
		if c.marks[r.Address.Object] != Garbage {
			return r
		}
	}
	return nil
}

// going says why an object is to be removed, whatever holds it: by what is said of those above it, and with own also
// of itself.
func (c *contents) going(id blobstor.ID, r *Record, own bool) State {
	state := State(0)
	for depth := deepest; ; depth-- {
		switch {
		case !own:
		case c.tombstone(id) != nil:
			return Buried
		case c.marks[id] == Garbage:
			state = Marked
		}
		if r == nil || depth == 0 {
			return state
		}
		if id = c.parent(r); id.IsZero() {
			return state
		}
		r, own = c.recs[id], true
	}
}

func (m *model) statusOf(addr blobstor.Address) Status {
	c := m.of[addr.Container]
	if c == nil {
		return Status{}
	}
	r := c.recs[addr.Object]
	return m.status(c, addr.Object, r, r != nil, deepest)
}

// put records an entry, and returns the error that refuses it.
func (m *model) put(recs []Record, force bool) error {
	if validateEntry(recs) != nil {
		return ErrRecord
	}
	id := recs[0].Address.Container
	c := m.of[id]
	if c == nil {
		c = &contents{recs: map[blobstor.ID]*Record{}, marks: map[blobstor.ID]Mark{}}
	}
	if !force {
		whole := contents{c.marked, maps.Clone(c.recs), c.marks}
		for i := range recs[1:] {
			if up := &recs[1+i]; whole.recs[up.Address.Object] == nil {
				whole.recs[up.Address.Object] = up
			}
		}
		for i := range recs {
			if err := m.refuse(&whole, &recs[i], c.recs[recs[i].Address.Object]); err != nil {
				return err
			}
		}
	}
	m.of[id] = c
	own := map[blobstor.ID]bool{}
	for i := range recs {
		own[recs[i].Address.Object] = true
	}
	for i := range recs {
		c.record(&recs[len(recs)-1-i], own)
	}
	return nil
}

// refuse decides about a record, given what there is with all that it is a part of, and what is stored of it.
func (m *model) refuse(c *contents, r, old *Record) error {
	id := r.Address.Object
	s := m.status(c, id, r, old != nil, deepest)
	switch {
	case s.State == ContainerGone:
		return ErrContainer
	case s.State == Buried:
		return ErrBuried
	case !s.Held && c.going(id, r, false) == Marked:
		return ErrGarbage
	case !s.Held && r.Expires != 0 && r.Expires < m.epoch:
		return ErrExpired
	case r.Target.IsZero() || old != nil && (r.Virtual || !old.Virtual) && c.marks[id] != Garbage:
		return nil
	}
	target := c.recs[r.Target]
	t := m.status(c, r.Target, target, target != nil, deepest)
	switch {
	case target != nil && (target.Kind == Tombstone || target.Kind == Lock):
		return ErrTarget
	case r.Kind == Lock && target != nil && target.Kind != Regular:
		return ErrTarget
	case r.Kind == Tombstone && t.Held:
		return ErrHeld
	case r.Kind == Lock && (t.State == Buried || t.State == Marked):
		return t.State.Err()
	}
	return nil
}

// record takes a record over. The records of its entry decide about their marks themselves.
func (c *contents) record(r *Record, entry map[blobstor.ID]bool) {
	id := r.Address.Object
	old := c.recs[id]
	if old != nil && r.Virtual {
		return
	}
	mark := c.marks[id]
	if old == nil || old.Virtual {
		kept := *r
		c.recs[id] = &kept
	} else if r.Location != "" {
		old.Location = r.Location
	}
	delete(c.marks, id)
	above := c.going(id, r, false) != 0
	if above || c.tombstone(id) != nil {
		c.setMark(id, Garbage)
		c.markBelow(Garbage, id, entry)
	}
	if above && r.Chain != "" {
		for _, m := range c.ids() {
			if c.recs[m].Chain == r.Chain {
				c.markBelow(Garbage, m, entry)
			}
		}
	}
	if r.Kind == Tombstone && (old == nil || mark != None) {
		c.markBelow(Garbage, r.Target, entry)
	}
}

// markBelow marks an object and all parts of it, without some.
func (c *contents) markBelow(m Mark, id blobstor.ID, without map[blobstor.ID]bool) {
	for id := range c.below(id) {
		if !without[id] {
			c.setMark(id, m)
		}
	}
}

func (c *contents) setMark(id blobstor.ID, m Mark) {
	if c.recs[id] == nil {
		return
	}
	if m == None {
		delete(c.marks, id)
	} else {
		c.marks[id] = m
	}
}

// mark marks an object or a container.
func (m *model) mark(addr blobstor.Address, to Mark) error {
	c := m.of[addr.Container]
	switch {
	case c == nil:
		return nil
	case addr.Object.IsZero():
		c.marked = to != None
		return nil
	}
	if r := c.recs[addr.Object]; to == None && r != nil {
		if s := c.going(addr.Object, r, false); s != 0 {
			return s.Err()
		}
	}
	back := c.revived(addr.Object, to)
	c.markBelow(to, addr.Object, nil)
	for id := range c.below(addr.Object) {
		for _, by := range c.related(Tombstone, id) {
			if to == None {
				c.setMark(by.Address.Object, Garbage)
			}
		}
	}
	for _, r := range back {
		c.markBelow(Garbage, r.Target, map[blobstor.ID]bool{r.Address.Object: true})
	}
	return nil
}

// revived returns the tombstones that will count again.
func (c *contents) revived(id blobstor.ID, to Mark) (rs []*Record) {
	for id := range c.below(id) {
		if r := c.recs[id]; r != nil && r.Kind == Tombstone && c.marks[id] == Garbage && to != Garbage {
			rs = append(rs, r)
		}
	}
	return rs
}
