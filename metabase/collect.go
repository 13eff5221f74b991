package metabase

import (
	"context"
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// Collect removes objects that are to go: those that are marked or buried and not held, and all of a marked container,
// at most limit of them. It returns how many it removed. For each it takes the lock on its address, passing over what is
// busy, calls remove with addresses and locations outside any transaction, and then forgets those whose Err is nil or
// ErrNotFound; the DeleteBatch of a storage fits. An object that is only known from its parts has no blob: it is
// forgotten with the last of them. When Collect returns, what it counted is durably removed. What could not be removed
// stays and is tried again by a later call; the errors are joined.
//
// A crash in between leaves a record that cannot be seen, which the next Collect removes. Calls of Collect and Drop take
// turns, so remove must call neither; each call of Collect begins where the last one ended.
func (db *DB) Collect(ctx context.Context, limit int, remove func(context.Context, []blobstor.Item) error) (int, error) {
	db.sweeping.Lock()
	defer db.sweeping.Unlock()
	n, err := db.collect(ctx, limit, remove)
	return n, blobstor.Wrap("collect", blobstor.Address{}, "", err)
}

func (db *DB) collect(ctx context.Context, limit int, remove func(context.Context, []blobstor.Item) error) (int, error) {
	if err := db.writable(); err != nil {
		return 0, err
	}
	if err := db.finishDrops(ctx); err != nil {
		return 0, err
	}
	found, err := db.removable(ctx, limit)
	if err != nil {
		return 0, err
	}
	found, release := db.lockAll(found)
	defer release()
	items, err := db.confirm(ctx, found)
	if err != nil || len(items) == 0 {
		return 0, err
	}
	err = remove(ctx, items)
	gone := items[:0:0]
	var failed []error
	for i := range items {
		if items[i].Err == nil || errors.Is(items[i].Err, blobstor.ErrNotFound) {
			gone = append(gone, items[i])
		} else {
			failed = append(failed, items[i].Err)
		}
	}
	if err != nil && len(failed) == 0 && !errors.Is(err, blobstor.ErrNotFound) {
		return 0, err // it concerns all of them
	}
	n, err := db.forget(ctx, gone)
	return n, errors.Join(append(failed, err)...)
}

// lockAll takes the locks of the addresses and returns those that were free.
func (db *DB) lockAll(addrs []blobstor.Address) (locked []blobstor.Address, release func()) {
	if db.opts.Locks == nil {
		return addrs, func() {}
	}
	var unlocks []func()
	for _, addr := range addrs {
		if unlock, ok := db.opts.Locks.TryLock(addr); ok {
			locked, unlocks = append(locked, addr), append(unlocks, unlock)
		}
	}
	return locked, func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
}

// confirm returns what of the addresses is still to go, now that nobody changes it, as items for the storage.
func (db *DB) confirm(ctx context.Context, addrs []blobstor.Address) (items []blobstor.Item, err error) {
	err = db.view(ctx, "collect", blobstor.Address{}, func(t *txn) error {
		for _, addr := range addrs {
			n, ok := t.find(addr.Container)
			if !ok {
				continue
			}
			if v, due := t.due(n, addr); due {
				items = append(items, blobstor.Item{Address: addr, Location: v.head.Location})
			}
		}
		return nil
	})
	return items, err
}

// forget removes the records of blobs that are gone, and those of virtual objects whose last part goes. It returns how
// many of items went.
func (db *DB) forget(ctx context.Context, items []blobstor.Item) (n int, err error) {
	steps, went := make([]step, len(items)), make([]bool, len(items))
	for i := range items {
		steps[i] = step{frees: true, plan: func(t *txn) (err error) {
			went[i], err = t.planForget(items[i].Address)
			return err
		}}
	}
	done, err := db.doAll(ctx, 500, steps)
	errs := []error{err}
	for i := range done {
		if errs = append(errs, steps[i].err); steps[i].err == nil && went[i] {
			n++
		}
	}
	return n, errors.Join(errs...)
}

// planForget plans that the record of a blob that is gone goes, even if the object was revived or locked meanwhile.
// A virtual object, which has no blob, stays if parts have come.
func (t *txn) planForget(addr blobstor.Address) (goes bool, err error) {
	n, ok := t.find(addr.Container)
	if !ok {
		return false, nil
	}
	p, stored, m, err := t.markedRecord(n, addr.Object)
	if err != nil || !stored {
		return false, err
	}
	if p.head.Virtual {
		if parts, err := t.hasParts(n.number, addr.Object); parts || err != nil {
			return false, err
		}
	}
	return true, t.planGone(n, &p, m, deepest)
}

// planGone plans that a record goes, and with it the virtual one above it that has no other part.
func (t *txn) planGone(n named, p *packed, mark Mark, depth int) error {
	if err := t.planRemoval(n.number, p, mark); err != nil {
		return err
	}
	parent, err := t.parentOf(n.number, &p.head)
	if err != nil || parent.IsZero() || depth == 0 {
		return err
	}
	above := blobstor.Address{Container: p.head.Address.Container, Object: parent}
	up, stored, err := t.record(n.number, above)
	if err != nil || !stored || !up.head.Virtual {
		return err
	}
	others, err := t.hasPartsBut(n.number, parent, p.head.Address.Object)
	if err != nil || others {
		return err
	}
	m, err := t.mark(n.number, parent)
	if err != nil {
		return err
	}
	return t.planGone(n, &up, m, depth-1)
}
