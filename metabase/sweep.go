package metabase

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// place is where a Collect goes on. It looks at the records of marked containers and then at the marks, round and
// round, so that what cannot be removed keeps nothing else from being removed.
type place struct {
	inMarks bool
	behind  []byte // a key of recs or marks
}

// sweep looks for objects that are to go.
type sweep struct {
	t     *txn
	names map[container]named
	left  int // keys that this transaction may still look at
	ends  int // of classes that were reached
	limit int
	addrs []blobstor.Address
	seen  map[blobstor.Address]bool
}

// removable returns the addresses of objects that are to go, from where the last call ended.
func (db *DB) removable(ctx context.Context, limit int) ([]blobstor.Address, error) {
	s := sweep{limit: limit, seen: map[blobstor.Address]bool{}}
	for !s.full() && !s.round() {
		err := db.view(ctx, "collect", blobstor.Address{}, func(t *txn) (err error) {
			s.t, s.left = t, db.scanLimit()
			if s.names, err = t.scanNames(); err != nil {
				return err
			}
			for !s.paused() && !s.round() {
				s.class()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return s.addrs, nil
}

func (s *sweep) full() bool   { return len(s.addrs) >= s.limit }
func (s *sweep) paused() bool { return s.full() || s.left <= 0 }

// round reports whether all was looked at: the rest of one class, the other one, and the beginning of the first.
func (s *sweep) round() bool { return s.ends == 3 }

// class looks at the rest of one class, and at its end turns to the other one.
func (s *sweep) class() {
	at := &s.t.db.at
	from := append(bytes.Clone(at.behind), 0)
	if at.inMarks {
		s.keys(marks, from, nil)
	} else {
		for _, c := range slices.Sorted(maps.Keys(s.names)) {
			all := c.append(nil)
			if s.names[c].marked && bytes.Compare(from[:min(len(from), prefix)], all) <= 0 {
				s.keys(recs, slices.MaxFunc([][]byte{from, all}, bytes.Compare), all)
			}
		}
	}
	if !s.paused() {
		*at = place{inMarks: !at.inMarks}
		s.ends++
	}
}

// keys looks at the objects of keys. What an entry says does not matter, damaged or not: the verdict verifies it.
func (s *sweep) keys(class byte, from, prefix []byte) {
	at := &s.t.db.at
	c := s.t.cursor(class, from, prefix)
	for ; !s.paused() && c.next(); s.left-- {
		at.behind = append(at.behind[:0], c.key...)
		if len(c.key) == recKey {
			s.look(containerOf(c.key), lastID(c.key))
		}
	}
}

func (s *sweep) look(c container, id blobstor.ID) {
	n, ok := s.names[c]
	addr := blobstor.Address{Container: n.id, Object: id}
	if !ok || s.seen[addr] {
		return
	}
	if _, due := s.t.due(n, addr); due {
		s.addrs, s.seen[addr] = append(s.addrs, addr), true
	}
}

// due returns the verdict about an object, and whether Collect removes it. A virtual one goes with the last of its
// parts. One that cannot be read is passed over: it is Check's to report, and must not stop the others.
func (t *txn) due(n named, addr blobstor.Address) (v verdict, due bool) {
	v, err := t.judge(n, addr)
	if err != nil || !v.stored || v.held || v.state < Marked && v.mark != Redundant {
		return v, false
	}
	if v.head.Virtual {
		parts, err := t.hasParts(n.number, addr.Object)
		return v, err == nil && !parts
	}
	return v, true
}
