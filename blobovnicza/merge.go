package blobovnicza

import (
	"container/heap"
	"errors"
	"iter"
)

// view is a file's records as of one moment: those whose index was in memory then, for the rest the index file.
type view struct {
	*file
	inMemory bool
	kept     []row  // in memory
	live     bitset // of the rows, in their order
}

// bitset is a set of small numbers.
type bitset []uint64

// What is beyond a set is not in it: Repair may give a file more rows than it had when the set was made.
func (b bitset) has(n int) bool { return n>>6 < len(b) && b[n>>6]>>(n&63)&1 == 1 }

func (b bitset) set(n int) {
	if n>>6 < len(b) {
		b[n>>6] |= 1 << (n & 63)
	}
}

// viewOf returns views of the version's files. Only the active file changes, and it is looked at once, so a blob that
// is replaced now is found in one place.
func viewOf(v *version) []*view {
	views := make([]*view, len(v.files))
	for i, f := range v.files {
		x := f.index.Load()
		views[i] = &view{file: f, inMemory: x.recent != nil}
		n := 0
		if x.recent != nil {
			views[i].kept = x.recent.sorted()
			n = len(views[i].kept)
		} else {
			n = int(x.table.rows)
		}
		views[i].live = make(bitset, n/64+1)
	}
	return views
}

// liveViews returns views of the version's files with their live bits set.
func liveViews(v *version) ([]*view, error) {
	for {
		views := viewOf(v)
		if err := markLive(views); !errors.Is(err, errHealed) {
			return views, err
		}
	}
}

// stream returns the rows that live counts, in their order.
func (v *view) stream() iter.Seq2[row, error] {
	if v.inMemory {
		return rowsOf(v.kept, nil)
	}
	if x := v.index.Load(); x.table != nil {
		return v.healing(x)
	}
	return rowsOf(v.rows()) // its index file turned out to be damaged, and was made again
}

// rowsOf yields rows, or the error.
func rowsOf(rows []row, err error) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		if err != nil {
			yield(row{}, err)
			return
		}
		for i := range rows {
			if !yield(rows[i], nil) {
				return
			}
		}
	}
}

// errHealed says that an index file was damaged and is made again: ask again.
var errHealed = errors.New("index was made again")

// healing is a scan of the index file that makes it again if it is damaged.
func (v *view) healing(x *index) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for e, err := range x.table.scan(&v.idx) {
			if err != nil && !errors.Is(err, errDropped) {
				err = firstOf(v.heal(x, err), errHealed)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// markLive sets the live bits: of all records of an address the newest one, be it a put or a tombstone.
func markLive(views []*view) error {
	m, err := newMerge(views)
	if err != nil {
		return err
	}
	defer m.stop()
	var last row
	for first := true; len(m.cursors) > 0; first = false {
		c := m.cursors[0]
		if first || c.at.key != last.key || c.at.address != last.address {
			views[c.rank].live.set(c.n)
		}
		last = c.at
		if err := m.advance(); err != nil {
			return err
		}
	}
	return nil
}

// merge walks the entries of all views in the order of key and address, the newest file first.
type merge struct{ cursors []*cursor }

// cursor is where a merge stands in one view.
type cursor struct {
	rank int // of the view
	n    int // of the entry
	at   row
	next func() (row, error, bool)
	stop func()
}

func newMerge(views []*view) (*merge, error) {
	m := &merge{}
	for rank, v := range views {
		c := &cursor{rank: rank, n: -1}
		c.next, c.stop = iter.Pull2(v.stream())
		m.cursors = append(m.cursors, c)
	}
	for i := len(m.cursors) - 1; i >= 0; i-- {
		more, err := m.cursors[i].step()
		if err != nil {
			m.stop()
			return nil, err
		}
		if !more {
			m.cursors = append(m.cursors[:i], m.cursors[i+1:]...)
		}
	}
	heap.Init(m)
	return m, nil
}

// step moves on to the next entry and reports whether there is one.
func (c *cursor) step() (bool, error) {
	at, err, ok := c.next()
	if err != nil || !ok {
		c.stop()
		return false, err
	}
	c.at = at
	c.n++
	return true, nil
}

// advance moves the first cursor on.
func (m *merge) advance() error {
	more, err := m.cursors[0].step()
	if err != nil {
		return err
	}
	if more {
		heap.Fix(m, 0)
	} else {
		heap.Pop(m)
	}
	return nil
}

func (m *merge) stop() {
	for _, c := range m.cursors {
		c.stop()
	}
}

func (m *merge) Len() int      { return len(m.cursors) }
func (m *merge) Swap(i, j int) { m.cursors[i], m.cursors[j] = m.cursors[j], m.cursors[i] }
func (m *merge) Push(any)      { panic("a merge only shrinks") }

func (m *merge) Pop() any {
	m.cursors = m.cursors[:len(m.cursors)-1]
	return nil
}

func (m *merge) Less(i, j int) bool {
	a, b := m.cursors[i], m.cursors[j]
	if order := a.at.compare(&b.at); order != 0 {
		return order < 0
	}
	return a.rank > b.rank
}
