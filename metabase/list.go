package metabase

import (
	"bytes"
	"context"

	"github.com/granary-store/granary/blobstor"
)

// Found is an object that a List, a Search or Expired found.
type Found struct {
	Address blobstor.Address
	Kind    Kind
	Size    int64
	Values  []string // of the attributes that were asked for, in their order; "" where the object has none
}

// found makes what a caller gets of a record.
func (p *packed) found(keys []string) (Found, error) {
	f := Found{Address: p.head.Address, Kind: p.head.Kind, Size: p.head.Size}
	if len(keys) == 0 {
		return f, nil
	}
	parts := append(make([][]byte, 0, 16), make([][]byte, len(keys))...)
	n := 0
	err := p.each(func(_ Mode, key, value []byte) bool {
		for i, k := range keys {
			if parts[i] == nil && string(key) == k {
				parts[i], n = value, n+len(value)
			}
		}
		return true
	})
	f.Values = join(parts, n)
	return f, err
}

// join copies parts of n bytes in all to strings, with one allocation for all of them.
func join(parts [][]byte, n int) []string {
	var room [256]byte
	b := room[:0]
	if n > len(room) {
		b = make([]byte, 0, n)
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	text, values := string(b), make([]string, len(parts))
	for i, p := range parts {
		values[i], text = text[:len(p)], text[len(p):]
	}
	return values
}

// MaxPage is the most objects that one call of List, Expired or Search returns, so that no read transaction lasts long.
const MaxPage = 10_000

// List returns the objects that have a blob here and can be read, in the order of container and object, from behind an
// address, zero for the beginning: at most limit of them, or [MaxPage], and fewer only at the end. The address need not
// be of an object that is stored. A page is one transaction, and the caller's. An object that cannot be read ends it with
// an error that has its address: what came before is returned too, and the next page may begin behind that address.
func (db *DB) List(ctx context.Context, after blobstor.Address, limit int, keys ...string) (page []Found, err error) {
	limit = min(limit, MaxPage)
	err = db.view(ctx, "list", blobstor.Address{}, func(t *txn) error {
		if limit <= 0 {
			return nil
		}
		t.many = true
		return t.scanFrom(dict, after.Container[:], nil, func(key, value []byte) (bool, error) {
			n, err := t.name(key, value)
			if err != nil || n.marked {
				return true, err
			}
			var from *blobstor.ID
			if n.id == after.Container {
				from = &after.Object
			}
			page, err = t.list(n, from, page, limit, keys)
			return len(page) < limit, err
		})
	})
	return page, err
}

// list appends the objects of a container from behind one of them.
func (t *txn) list(n named, after *blobstor.ID, page []Found, limit int, keys []string) ([]Found, error) {
	all := n.number.append(nil)
	from := all
	if after != nil {
		from = append(appendRecKey(nil, n.number, after), 0)
	}
	c := t.cursor(recs, from, all)
	for len(page) < limit && c.next() {
		addr := blobstor.Address{Container: n.id, Object: lastID(c.key)}
		v, err := t.listed(n, addr, &c)
		if err == nil && v.state == Available && !v.head.Virtual {
			var f Found
			if f, err = v.found(keys); err == nil {
				page = append(page, f)
			}
		}
		if err != nil {
			return page, blobstor.Wrap("list", addr, "", err)
		}
	}
	return page, nil
}

// listed decides about the object whose record the cursor is at.
func (t *txn) listed(n named, addr blobstor.Address, c *cursor) (v verdict, err error) {
	v.stored = true
	if v.packed, err = c.record(addr); err == nil {
		err = t.judgeRecord(n, &v, deepest)
	}
	return v, err
}

// Expired returns objects whose last epoch is over and that nothing holds, at most limit of them, or [MaxPage], those
// first that expired first. It removes nothing, and passes over what cannot be read. After is an object of the page
// before; if that is not stored any more, the pages begin again, for what was returned before is gone or still to be
// removed. A page is the caller's, and may be more than one transaction.
func (db *DB) Expired(ctx context.Context, after blobstor.Address, limit int) (page []Found, err error) {
	limit = min(limit, MaxPage)
	var from []byte // nil is the beginning
	for more := true; more && err == nil; {
		err = db.view(ctx, "expired", blobstor.Address{}, func(t *txn) (err error) {
			if from == nil {
				from, err = t.expiryOf(after)
			}
			if err == nil {
				page, from, err = t.expired(from, page, limit)
			}
			more = from != nil
			return err
		})
	}
	return page, err
}

// expired appends objects that have expired, and returns the key to go on from if it looked at many before the page was
// full. What an entry says does not matter, damaged or not: the verdict verifies it, or Check reports it.
func (t *txn) expired(from []byte, page []Found, limit int) (_ []Found, next []byte, err error) {
	names, err := t.scanNames()
	if err != nil {
		return page, nil, err
	}
	c := t.cursor(expires, from, nil)
	for left := t.db.scanLimit(); len(page) < limit && c.next(); left-- {
		if left == 0 {
			return page, bytes.Clone(c.key), nil
		}
		if len(c.key) != 8+recKey {
			continue
		}
		epoch := uint64Of(c.key)
		if epoch >= t.epoch {
			break
		}
		n, ok := names[containerOf(c.key[8:])]
		if !ok {
			continue // of a container that was dropped
		}
		v, err := t.judge(n, blobstor.Address{Container: n.id, Object: lastID(c.key)})
		if err != nil || v.state != Expired || v.head.Expires != epoch {
			continue
		}
		f, err := v.found(nil)
		if err != nil {
			return page, nil, err
		}
		page = append(page, f)
	}
	return page, nil, nil
}

// expiryOf returns the key behind which the objects come that expire after this one.
func (t *txn) expiryOf(addr blobstor.Address) ([]byte, error) {
	n, ok := t.find(addr.Container)
	if !ok {
		return nil, nil
	}
	p, stored, err := t.record(n.number, addr)
	if err != nil || !stored || p.head.Expires == 0 {
		return nil, err
	}
	return append(appendExpiry(nil, p.head.Expires, n.number, &addr.Object), 0), nil
}
