package metabase

import (
	"bytes"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// cursor goes through the entries of a class whose keys begin with a prefix, and does not verify them.
type cursor struct {
	c          *bolt.Cursor
	from       []byte // where it begins
	prefix     []byte
	full       []byte // the key with its class
	key, value []byte
}

func (t *txn) cursor(class byte, from, prefix []byte) cursor {
	b := make([]byte, 0, 2+len(from)+len(prefix))
	b = append(append(b, class), from...)
	n := len(b)
	b = append(append(b, class), prefix...)
	return cursor{c: t.bucket().Cursor(), from: b[:n:n], prefix: b[n:]}
}

func (c *cursor) next() bool {
	if c.full == nil {
		c.full, c.value = c.c.Seek(c.from)
	} else {
		c.full, c.value = c.c.Next()
	}
	return c.see()
}

// seek goes to the first key that is not below this one, which has the class.
func (c *cursor) seek(full []byte) bool {
	c.full, c.value = c.c.Seek(full)
	return c.see()
}

func (c *cursor) see() bool {
	if c.full == nil || !bytes.HasPrefix(c.full, c.prefix) {
		return false
	}
	c.key = c.full[1:]
	return true
}

// record returns the record of an object that the cursor is at, verified.
func (c *cursor) record(addr blobstor.Address) (p packed, err error) {
	value, err := unseal(c.full, c.value)
	if err != nil {
		return p, err
	}
	return parseRecord(addr, value)
}
