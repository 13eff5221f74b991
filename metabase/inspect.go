package metabase

import (
	"bytes"
	"context"

	"github.com/granary-store/granary/blobstor"
)

// Key is an entry of the database file that belongs to an object.
type Key struct {
	Class string
	Key   []byte // without its class
	Value []byte // without its checksum
	Err   error  // what is wrong with it
}

// Inspect returns the entries that an object's record has, and its mark, for a look at what the database knows. What is
// missing or damaged has an Err. They are the caller's.
func (db *DB) Inspect(ctx context.Context, addr blobstor.Address) (keys []Key, err error) {
	err = db.view(ctx, "inspect", addr, func(t *txn) error {
		n, ok := t.find(addr.Container)
		if !ok {
			return blobstor.ErrNotFound
		}
		look := func(class byte, key []byte, must bool) {
			v, err := t.get(class, key)
			if v == nil && err == nil && must {
				err = corrupt("missing")
			}
			if v != nil || err != nil {
				keys = append(keys, Key{classNames[class], bytes.Clone(key), bytes.Clone(v), err})
			}
		}
		look(recs, appendRecKey(nil, n.number, &addr.Object), false)
		look(marks, appendRecKey(nil, n.number, &addr.Object), false)
		p, stored, err := t.record(n.number, addr)
		if err != nil || !stored {
			return err
		}
		r, err := p.record()
		if err != nil {
			return err
		}
		pending, _ := t.pendingObjects() // of those that it cannot tell, entries are missing
		waits := pending[string(appendRecKey(nil, n.number, &addr.Object))]
		t.eachKey(n.number, &r, func(class byte, key []byte, _ func([]byte) []byte) { look(class, key, true) })
		t.eachEntry(n.number, &r, func(key []byte) { look(attrs, key, !waits) })
		return nil
	})
	return keys, err
}
