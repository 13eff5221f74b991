package metabase

// Counters tell what a container holds. They change with every operation and equal a recount at any time.
type Counters struct {
	Objects    int64 // that have a blob here
	Roots      int64 // regular objects that are not part of another one, virtual ones included
	Tombstones int64
	Locks      int64
	Links      int64
	Garbage    int64 // marked [Garbage] or [Redundant]
	Payload    int64 // bytes of the objects that have a blob here and are not marked
}

// unknown are counters that let a verdict look for everything.
var unknown = Counters{Tombstones: 1, Locks: 1, Garbage: 1}

const counterSize = 7 * 8

func (c *Counters) fields() [7]*int64 {
	return [...]*int64{&c.Objects, &c.Roots, &c.Tombstones, &c.Locks, &c.Links, &c.Garbage, &c.Payload}
}

func (c *Counters) add(by *Counters, times int64) {
	f, b := c.fields(), by.fields()
	for i := range f {
		*f[i] += times * *b[i]
	}
}

func (c *Counters) appendTo(b []byte) []byte {
	for _, f := range c.fields() {
		b = appendUint64(b, uint64(*f))
	}
	return b
}

func (c *Counters) parse(b []byte) error {
	if len(b) != counterSize {
		return corrupt("counters of %d bytes", len(b))
	}
	for i, f := range c.fields() {
		*f = int64(uint64Of(b[8*i:]))
	}
	return nil
}

// countersOf returns what one record with this mark adds to its container's counters.
func countersOf(r *Record, m Mark) (c Counters) {
	if !r.Virtual {
		c.Objects = 1
		if m == None {
			c.Payload = r.Size
		}
	}
	if m != None {
		c.Garbage = 1
	}
	switch r.Kind {
	case Regular:
		if !r.isPart() {
			c.Roots = 1
		}
	case Tombstone:
		c.Tombstones = 1
	case Lock:
		c.Locks = 1
	case Link:
		c.Links = 1
	}
	return c
}

// counters returns a container's counters as this transaction has changed them.
func (t *txn) counters(c container) (*Counters, error) {
	if n := t.counted[c]; n != nil {
		return n, nil
	}
	n, err := t.readCounters(c)
	if t.counted == nil {
		t.counted = make(map[container]*Counters)
	}
	t.counted[c] = &n
	return &n, err
}

func (t *txn) readCounters(c container) (n Counters, err error) {
	var buf [prefix]byte
	v, err := t.get(counts, c.append(buf[:0]))
	if err == nil && v != nil {
		err = n.parse(v)
	}
	return n, err
}

// flush writes the counters that changed, and what is pending.
func (t *txn) flush() error {
	for c, n := range t.counted {
		key := t.done(c.append(t.begin()))
		t.put(counts, key, n.appendTo)
	}
	t.planPending()
	t.apply()
	return t.err
}
