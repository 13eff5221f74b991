package pilorama

import (
	"bytes"

	"github.com/granary-store/granary/internal/bolt"
)

// txn is a transaction of the database file. What it returns is valid until it ends.
type txn struct {
	tx     *bolt.Tx
	lookup *bolt.Cursor
	room   [128]byte // for one key
	arena  []byte    // for values: the file's library keeps them until the commit
	writes int
}

func (t *txn) bucket() *bolt.Bucket { return t.tx.Bucket(0) }

// cursor returns the one cursor for look-ups. Each seeks anew, so what was written meanwhile does not matter.
func (t *txn) cursor() *bolt.Cursor {
	if t.lookup == nil {
		t.lookup = t.bucket().Cursor()
	}
	return t.lookup
}

// get returns the value of a key, verified; nil if there is none.
func (t *txn) get(key []byte) ([]byte, error) {
	k, v := t.cursor().Seek(key)
	if !bytes.Equal(k, key) {
		return nil, nil
	}
	return unseal(key, v)
}

// has reports whether there is a key without a value.
func (t *txn) has(key []byte) (bool, error) {
	v, err := t.get(key)
	if len(v) > 0 {
		err = corrupt("a value under %x", key)
	}
	return v != nil, err
}

// lastOf returns the last key that begins with a prefix, and its value, not verified.
func (t *txn) lastOf(prefix []byte) (key, value []byte) {
	c := t.cursor()
	step := c.Prev
	if k, _ := c.Seek(following(prefix)); k == nil {
		step = c.Last
	}
	if key, value = step(); !bytes.HasPrefix(key, prefix) {
		return nil, nil
	}
	return key, value
}

// begin returns memory to which a value is appended; the file's library has it until the transaction ends.
func (t *txn) begin() []byte {
	if cap(t.arena)-len(t.arena) < 1<<10 {
		t.arena = make([]byte, 0, arenaSize)
	}
	return t.arena[len(t.arena):]
}

const arenaSize = 64 << 10

// put writes an entry, whose value was appended to what begin returned.
func (t *txn) put(key, value []byte) error {
	value = seal(key, value)
	if cap(t.arena)-len(t.arena) >= len(value) {
		t.arena = t.arena[:len(t.arena)+len(value)]
	}
	t.writes++
	return t.bucket().Put(key, value[:len(value):len(value)])
}

func (t *txn) del(key []byte) error {
	t.writes++
	return t.bucket().Delete(key)
}

// scan yields the entries whose keys begin with a prefix, from a key on, verified, until yield returns false. Nothing
// must be written meanwhile: a cursor that goes on after a write misses keys.
func (t *txn) scan(from, prefix []byte, yield func(key, value []byte) (bool, error)) error {
	c := t.bucket().Cursor()
	for k, v := c.Seek(from); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		value, err := unseal(k, v)
		if err != nil {
			return err
		}
		if more, err := yield(k, value); !more || err != nil {
			return err
		}
	}
	return nil
}
