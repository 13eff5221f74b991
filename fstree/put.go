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
	start := t.clock()
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
	dir, err := t.dirs.get(p.dir(t.depth), true)
	if err != nil {
		return 0, err
	}
	defer t.dirs.put(dir)
	if err := dir.Err(); err != nil {
		return 0, err
	}
	if len(data) >= lookLimit {
		if stored, err := t.confirm(dir, p); stored || err != nil {
			return 0, err
		}
	}
	synced, err := t.putNew(dir, p, data)
	if isNoSpace(err) {
		// A blob that is stored needs no room.
		if stored, e := t.confirm(dir, p); stored && e == nil {
			return 0, nil
		}
	}
	return synced, err
}

// putNew writes the blob to a new file and publishes that.
func (t *Tree) putNew(dir *dirRef, p place, data []byte) (synced time.Duration, err error) {
	temp, err := t.temp(dir.Dir)
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
	return t.publish(b, dir, p)
}

func (t *Tree) temp(dir *durable.Dir) (temp *durable.Temp, err error) {
	err = t.dirs.retry(func() error { temp, err = dir.Temp(); return err })
	return temp, err
}

// publish makes a written file durable and gives it its name, or confirms the copy that has the name. It always
// ends the file.
func (t *Tree) publish(b *body, dir *dirRef, p place) (synced time.Duration, err error) {
	start, temp := t.clock(), b.temp
	if err := b.sync(); err != nil {
		return 0, errors.Join(err, temp.Discard())
	}
	t.names.lock(p.addr)
	defer t.names.unlock(p.addr)
	if err := t.name(temp, dir, p); err != nil {
		return 0, errors.Join(err, temp.Discard())
	}
	return t.since(start), temp.Discard()
}

// name links the file under its name. If the name is there, the copy is confirmed, or replaced if it is damaged.
func (t *Tree) name(temp *durable.Temp, dir *dirRef, p place) error {
	name := p.name()
	err := t.dirs.retry(func() error { return temp.LinkIn(dir.Dir, name) })
	switch {
	case err == nil:
		return t.settle(dir, p)
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	err = t.verify(p)
	if errors.Is(err, blobstor.ErrCorrupt) || errors.Is(err, blobstor.ErrNotFound) {
		return t.heal(temp, dir, p, err)
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
// a crash, so nothing needs to be taken back.
func (t *Tree) heal(temp *durable.Temp, dir *dirRef, p place, damage error) error {
	t.log.Warn("fstree: a damaged blob is replaced", "address", p.addr, "damage", damage)
	if err := temp.ReplaceIn(dir.Dir, p.name()); err != nil {
		return err
	}
	t.count.healed.Add(1)
	return t.syncDir(dir)
}

// confirm reports whether a whole copy of the blob is stored, and makes its name durable.
func (t *Tree) confirm(dir *dirRef, p place) (bool, error) {
	t.names.lock(p.addr)
	defer t.names.unlock(p.addr)
	err := t.verify(p)
	if errors.Is(err, blobstor.ErrNotFound) || errors.Is(err, blobstor.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
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
	dir, err := t.dirs.get(p.dir(t.depth), false)
	if errors.Is(err, fs.ErrNotExist) {
		return blobstor.ErrNotFound
	}
	if err != nil {
		return err
	}
	defer t.dirs.put(dir)
	if err := dir.Err(); err != nil {
		return err
	}
	t.names.lock(p.addr)
	defer t.names.unlock(p.addr)
	err = t.dirs.retry(func() error { return dir.Remove(p.name()) })
	if errors.Is(err, fs.ErrNotExist) {
		return blobstor.ErrNotFound
	}
	if err != nil {
		return err
	}
	t.count.deletes.Add(1)
	return t.syncDir(dir)
}

// isNoSpace reports whether err means a full disk.
func isNoSpace(err error) bool {
	return err != nil && errors.Is(blobstor.Wrap("", blobstor.Address{}, "", err), blobstor.ErrNoSpace)
}
