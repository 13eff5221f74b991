package fstree

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// lookLimit is the smallest payload for which Put looks whether the blob is stored before it writes. For smaller
// ones it just tries, because nearly all are new.
const lookLimit = 256 << 10

// Put stores data under addr. When it returns nil, blob and name are durable, unless the store was opened with
// NoSync. Put of a stored blob verifies the stored copy, and replaces it if it is damaged. Put returns
// blobstor.ErrTooLarge above the limit, blobstor.ErrNoSpace on a full disk, and blobstor.ErrFailed after a sync
// failed; in all these cases the blob is not stored. It does not retain data.
func (t *Tree) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	p := t.place(addr)
	start := time.Now()
	synced, err := t.put(ctx, p, data)
	if err != nil {
		return "", t.report("put", p, err)
	}
	t.committed(int64(len(data)), start, synced)
	return location(p.key), nil
}

func (t *Tree) put(ctx context.Context, p place, data []byte) (time.Duration, error) {
	if err := t.enterWrite(ctx); err != nil {
		return 0, err
	}
	defer t.leaveWrite()
	if int64(len(data)) > t.opts.limit() {
		return 0, blobstor.ErrTooLarge
	}
	synced, err := t.putNew(p, data)
	if isNoSpace(err) {
		if stored, e := t.confirm(p); stored && e == nil {
			return 0, nil // It needs no room.
		}
	}
	return synced, err
}

// putNew writes the blob to a new file and publishes that.
func (t *Tree) putNew(p place, data []byte) (synced time.Duration, err error) {
	if len(data) >= lookLimit {
		if stored, err := t.confirm(p); stored || err != nil {
			return 0, err
		}
	}
	at, err := t.enterHome(p, true)
	if err != nil {
		return 0, err
	}
	defer t.leaveHome(at)
	temp, err := t.temp(at.dir.Dir)
	if err != nil {
		return 0, err
	}
	b := bodies.Get().(*body)
	defer bodies.Put(b)
	if err = b.begin(temp, int64(len(data)), t.opts.NoSync); err == nil {
		err = b.whole(p.addr, data)
	}
	if err != nil {
		return 0, errors.Join(err, temp.Discard())
	}
	return t.publish(b, at, p)
}

func (t *Tree) temp(dir *durable.Dir) (temp *durable.Temp, err error) {
	err = t.dirs.retry(func() error { temp, err = dir.Temp(); return err })
	return temp, err
}

// publish makes a written file durable and gives it its name, or confirms the copy that has the name. It always
// ends the file.
func (t *Tree) publish(b *body, at home, p place) (synced time.Duration, err error) {
	start, temp := time.Now(), b.temp
	if err := b.sync(); err != nil {
		return 0, errors.Join(err, temp.Discard())
	}
	t.names.lock(p.addr)
	defer t.names.unlock(p.addr)
	if err := t.name(temp, at, p); err != nil {
		return 0, errors.Join(err, temp.Discard())
	}
	return time.Since(start), temp.Discard()
}

// name links the file under its name. If the name is there, the copy is confirmed, or replaced if it is damaged.
func (t *Tree) name(temp *durable.Temp, at home, p place) error {
	dir, err := at.holder(p)
	if err != nil {
		return err
	}
	name := p.name()
	err = t.dirs.retry(func() error { return temp.LinkIn(dir.Dir, name) })
	switch {
	case err == nil:
		return t.settle(dir, p)
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	err = t.verify(p)
	if errors.Is(err, blobstor.ErrCorrupt) || errors.Is(err, blobstor.ErrNotFound) {
		return t.heal(temp, at, dir, p, err)
	}
	if err != nil {
		return err
	}
	return t.syncDir(dir)
}

// settle makes a new name durable. If that fails the name is taken back, for whoever asked is told that the blob
// is not stored; the directory takes no more writes until the next Open, which makes the removal durable.
func (t *Tree) settle(dir *dirRef, p place) error {
	err := t.syncDir(dir)
	if err == nil {
		t.count.puts.Add(1)
		return nil
	}
	return errors.Join(err, t.dirs.retry(func() error { return dir.Remove(p.name()) }))
}

// heal puts a whole copy in the place of a damaged one. If the directory's sync fails either may be there after
// a crash, so nothing needs to be taken back. In the middle of a Reshape the damaged file may have two names; the
// one that stays behind goes first, for a Reshape that turns back would look at it before the whole copy.
func (t *Tree) heal(temp *durable.Temp, at home, dir *dirRef, p place, damage error) error {
	t.log.Warn("fstree: a damaged blob is replaced", "address", p.addr, "damage", damage)
	if dir == at.old {
		if _, err := t.removeFrom(at.dir, p); err != nil {
			return err
		}
	}
	if err := temp.ReplaceIn(dir.Dir, p.name()); err != nil {
		return err
	}
	t.count.healed.Add(1)
	return t.syncDir(dir)
}

// confirm reports whether a whole copy of the blob is stored, and makes its name durable. The lock comes first: a move
// that holds it may make a directory that is missing, and put the blob there.
func (t *Tree) confirm(p place) (bool, error) {
	t.names.lock(p.addr)
	defer t.names.unlock(p.addr)
	var dir *dirRef
	at, err := t.enterHome(p, false)
	if err == nil {
		defer t.leaveHome(at)
		dir, err = at.holder(p)
	}
	if err == nil {
		err = t.verify(p)
	}
	switch {
	case errors.Is(err, blobstor.ErrNotFound), errors.Is(err, blobstor.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, t.syncDir(dir)
}

// verify reads the whole stored copy.
func (t *Tree) verify(p place) error {
	b, err := t.openBlob(p)
	if err != nil {
		return err
	}
	defer b.free()
	return b.verify()
}

func (t *Tree) syncDir(dir *dirRef) error {
	if t.opts.NoSync {
		return nil
	}
	return dir.Sync()
}

// Delete removes a blob. When it returns nil the removal is durable. A missing blob is blobstor.ErrNotFound.
func (t *Tree) Delete(ctx context.Context, addr blobstor.Address, _ blobstor.Location) error {
	p := t.place(addr)
	return t.report("delete", p, t.delete(ctx, p))
}

func (t *Tree) delete(ctx context.Context, p place) error {
	if err := t.enterWrite(ctx); err != nil {
		return err
	}
	defer t.leaveWrite()
	// As in confirm: what was missing before the lock may be there under it.
	t.names.lock(p.addr)
	defer t.names.unlock(p.addr)
	at, err := t.enterHome(p, false)
	if err != nil {
		return err
	}
	defer t.leaveHome(at)
	wasOld, oldErr := t.removeFrom(at.old, p)
	was, err := t.removeFrom(at.dir, p)
	if was || wasOld {
		t.count.deletes.Add(1)
	} else if err == nil && oldErr == nil {
		return blobstor.ErrNotFound
	}
	return errors.Join(oldErr, err)
}

// isNoSpace reports whether err means a full disk.
func isNoSpace(err error) bool {
	return err != nil && errors.Is(blobstor.Wrap("", blobstor.Address{}, "", err), blobstor.ErrNoSpace)
}
