package metabase

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

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
// turns; each call of Collect begins where the last one ended.
func (db *DB) Collect(ctx context.Context, limit int, remove func(context.Context, []blobstor.Item) error) (int, error) {
	db.sweeping.Lock()
	defer db.sweeping.Unlock()
	n, err := db.collect(ctx, limit, remove)
	return n, blobstor.Wrap("collect", blobstor.Address{}, "", err)
}

func (db *DB) collect(ctx context.Context, limit int, remove func(context.Context, []blobstor.Item) error) (int, error) {
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

// removable returns the addresses of objects that are to go, from where the last call ended.
func (db *DB) removable(ctx context.Context, limit int) (addrs []blobstor.Address, err error) {
	err = db.view(ctx, "collect", blobstor.Address{}, func(t *txn) error {
		names, err := t.scanNames()
		if err != nil {
			return err
		}
		for c, n := range names {
			if n.marked && len(addrs) < limit {
				if addrs, err = t.members(c, n, addrs, limit); err != nil {
					return err
				}
			}
		}
		for range 2 { // to the end, and from the beginning
			if addrs, err = t.marked(names, addrs, limit); err != nil || len(addrs) >= limit {
				return err
			}
			db.after = nil
		}
		return nil
	})
	return addrs, err
}

// members appends the addresses of a container's objects, virtual ones last.
func (t *txn) members(c container, n named, addrs []blobstor.Address, limit int) ([]blobstor.Address, error) {
	err := t.scan(recs, c.append(nil), func(key, _ []byte) (bool, error) {
		addrs = append(addrs, blobstor.Address{Container: n.id, Object: lastID(key)})
		return len(addrs) < limit, nil
	})
	return addrs, err
}

// marked appends the addresses of marked objects that are to go.
func (t *txn) marked(names map[container]named, addrs []blobstor.Address, limit int) ([]blobstor.Address, error) {
	seen := make(map[blobstor.Address]bool, len(addrs))
	for _, a := range addrs {
		seen[a] = true
	}
	err := t.scanFrom(marks, slices.Concat(t.db.after, []byte{0}), nil, func(key, _ []byte) (bool, error) {
		t.db.after = bytes.Clone(key)
		n, ok := names[container(binary.BigEndian.Uint32(key))]
		addr := blobstor.Address{Container: n.id, Object: lastID(key)}
		if !ok || seen[addr] {
			return true, nil
		}
		v, err := t.judge(n, addr)
		if err != nil {
			return true, nil // it is Check's to report; one bad record must not stop the others
		}
		if v.goes() {
			addrs, seen[addr] = append(addrs, addr), true
		}
		return len(addrs) < limit, nil
	})
	return addrs, err
}

// goes reports whether Collect removes the object.
func (v *verdict) goes() bool {
	return v.stored && !v.held && (v.state >= Marked || v.state == Available && v.mark == Redundant)
}

// confirm returns what of the addresses is still to go, now that nobody changes it, as items for the storage. Virtual
// objects that have parts are left out: they go with the last of them.
func (db *DB) confirm(ctx context.Context, addrs []blobstor.Address) (items []blobstor.Item, err error) {
	err = db.view(ctx, "collect", blobstor.Address{}, func(t *txn) error {
		for _, addr := range addrs {
			n, ok := t.find(addr.Container)
			if !ok {
				continue
			}
			v, err := t.judge(n, addr)
			if err != nil || !v.goes() {
				continue
			}
			whole := true
			if v.head.Virtual {
				err = t.parts(n.number, addr.Object, func(blobstor.ID) (bool, error) {
					whole = false
					return false, nil
				})
			}
			if whole && err == nil {
				items = append(items, blobstor.Item{Address: addr, Location: v.head.Location})
			}
		}
		return nil
	})
	return items, err
}

// forget removes records, and those of virtual objects whose last part goes. It returns how many of items went.
func (db *DB) forget(ctx context.Context, items []blobstor.Item) (n int, err error) {
	steps := make([]step, len(items))
	for i := range items {
		addr := items[i].Address
		steps[i] = step{frees: true, plan: func(t *txn) error { return t.planForget(addr) }}
	}
	for len(steps) > 0 {
		part := steps[:min(len(steps), groupOps)]
		if err := db.do(ctx, int64(500*len(part)), part...); err != nil {
			return n, err
		}
		var errs []error
		for i := range part {
			if errs = append(errs, part[i].err); part[i].err == nil {
				n++
			}
		}
		if err := errors.Join(errs...); err != nil {
			return n, err
		}
		steps = steps[len(part):]
	}
	return n, nil
}

// planForget plans that a record goes, if it still is to go.
func (t *txn) planForget(addr blobstor.Address) error {
	n, ok := t.find(addr.Container)
	if !ok {
		return nil
	}
	v, err := t.judge(n, addr)
	if err != nil || !v.goes() {
		return err
	}
	return t.planGone(n, &v.packed, v.mark, deepest)
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
	others := false
	err = t.parts(n.number, parent, func(id blobstor.ID) (bool, error) {
		others = others || id != p.head.Address.Object
		return !others, nil
	})
	if err != nil || others {
		return err
	}
	m, err := t.mark(n.number, parent)
	if err != nil {
		return err
	}
	return t.planGone(n, &up, m, depth-1)
}
