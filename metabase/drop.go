package metabase

import (
	"context"

	"github.com/granary-store/granary/blobstor"
)

// Drop forgets a container and all that is recorded of it, and nothing else: the blobs are the caller's to remove, for
// instance by marking the container and calling [DB.Collect] before. From the first commit on the container is unknown;
// the rest is done in many small ones, and what a crash leaves of it is done by the next Drop or Collect. A container
// that is not known is no error.
func (db *DB) Drop(ctx context.Context, id blobstor.ID) error {
	db.sweeping.Lock()
	defer db.sweeping.Unlock()
	err := db.doOne(ctx, 0, func(t *txn) error { return t.planUnknown(id) })
	if err == nil {
		err = db.finishDrops(ctx)
	}
	return blobstor.Wrap("drop", blobstor.Address{Container: id}, "", err)
}

// planUnknown plans that nobody knows a container any more, and that what is left of it will be removed.
func (t *txn) planUnknown(id blobstor.ID) error {
	n, ok := t.find(id)
	if !ok {
		return nil
	}
	n.gone = true
	t.planName(n)
	t.put(settings, t.done(n.number.append(append(t.begin(), keyDropped...))), nil)
	return nil
}

// dropKeys is how many keys go in one commit.
const dropKeys = 2000

// finishDrops removes what is left of dropped containers.
func (db *DB) finishDrops(ctx context.Context) error {
	for {
		c, found, err := db.dropped(ctx)
		if err != nil || !found {
			return err
		}
		if err := db.doOne(ctx, dropKeys*100, func(t *txn) error { return t.planDrop(c) }); err != nil {
			return err
		}
	}
}

// dropped returns a container of which something is left.
func (db *DB) dropped(ctx context.Context) (c container, found bool, err error) {
	err = db.view(ctx, "drop", blobstor.Address{}, func(t *txn) error {
		return t.scan(settings, keyDropped, func(key, _ []byte) (bool, error) {
			if len(key) != len(keyDropped)+prefix {
				return false, corrupt("dropped container %x", key)
			}
			c, found = containerOf(key[len(keyDropped):]), true
			return false, nil
		})
	})
	return c, found, err
}

// planDrop plans the removal of some keys of a container, if it still is one that was dropped: after a Reset its number
// may be another's. What the keys say does not matter any more, damaged or not, except when an object expires. A key
// that is out of order, where no look-up finds it, cannot be removed and is passed over: Check reports it.
func (t *txn) planDrop(c container) error {
	key := t.done(c.append(t.begin()))
	entry := t.done(append(append(t.begin(), keyDropped...), key...))
	if v, err := t.get(settings, entry); v == nil || err != nil {
		return err
	}
	left := dropKeys
	for _, class := range []byte{attrs, rels, marks, recs, counts} {
		all := t.cursor(class, key, key)
		for all.next() {
			if t.bucket().Get(all.full) == nil {
				continue
			}
			if left--; left < 0 {
				return nil
			}
			if class == recs {
				t.planNoExpiry(c, &all)
			}
			t.del(class, t.done(append(t.begin(), all.key...)))
		}
	}
	t.del(settings, entry)
	return nil
}

// planNoExpiry plans that the index of expiry forgets an object, if its record can still be read. An entry that stays
// belongs to no container and is passed over.
func (t *txn) planNoExpiry(c container, at *cursor) {
	id := lastID(at.key)
	if p, err := at.record(blobstor.Address{Object: id}); err == nil && p.head.Expires != 0 {
		t.del(expires, t.done(appendExpiry(t.begin(), p.head.Expires, c, &id)))
	}
}
