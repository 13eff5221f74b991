package fstree

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/granary-store/granary/blobstor"
)

// maxMoved is how many blobs are moved with two syncs. More would hold up puts and deletes of the same blobs, and
// Close, for longer than a few syncs take.
const maxMoved = 256

// moveGroups cuts sorted blobs into groups that go to one directory of the given depth.
func moveGroups(found []place, depth int) iter.Seq[[]place] {
	return func(yield func([]place) bool) {
		for len(found) > 0 {
			n := 1
			for n < min(len(found), maxMoved) && found[n].dir(depth) == found[0].dir(depth) {
				n++
			}
			if !yield(found[:n]) {
				return
			}
			found = found[n:]
		}
	}
}

// move moves blobs of one old directory into one new directory. They get their new names, which are synced, and
// only then lose the old ones: a rename could be lost by a sync of the old directory that another call makes. The
// locks keep out puts and deletes of these blobs, which could otherwise leave different files under the two names.
// With NoSync it is all synced too, for the blobs may have been durable before.
func (t *Tree) move(ctx context.Context, l *layout, from dirKey, group []place) error {
	if err := t.enterWrite(ctx); err != nil {
		return err
	}
	defer t.leaveWrite()
	old, err := t.usable(from, false)
	if err != nil || old == nil {
		return err
	}
	defer t.dirs.put(old)
	dir, err := t.usable(group[0].dir(l.depth), true)
	if err != nil {
		return err
	}
	defer t.dirs.put(dir)
	for _, p := range group {
		t.names.lock(p.addr)
		defer t.names.unlock(p.addr)
	}
	linked, err := t.linkAll(old, dir, group)
	if err != nil || len(linked) == 0 {
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	for _, p := range linked {
		err = errors.Join(err, t.dirs.retry(func() error { return old.Remove(p.name()) }))
	}
	t.count.moved.Add(uint64(len(linked)))
	return errors.Join(err, old.Sync())
}

// linkAll gives blobs their new names beside the old ones, and returns those that were not deleted meanwhile.
func (t *Tree) linkAll(old, dir *dirRef, group []place) (linked []place, err error) {
	for _, p := range group {
		err := t.link(old, dir, p)
		if err == nil {
			linked = append(linked, p)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return linked, nil
}

// link gives a blob's file its new name. A file that has the name already is the same one, left by a Reshape that
// was interrupted, unless the store was copied in that state: then a whole copy wins.
func (t *Tree) link(old, dir *dirRef, p place) error {
	try := func() error { return t.dirs.retry(func() error { return old.Link(p.name(), dir.Dir, p.name()) }) }
	if err := try(); !errors.Is(err, fs.ErrExist) {
		return err
	}
	if t.sameFile(old, dir, p) {
		return nil
	}
	if err := t.verifyIn(dir, p); !errors.Is(err, blobstor.ErrCorrupt) {
		return err
	}
	if err := t.verifyIn(old, p); err != nil {
		if errors.Is(err, blobstor.ErrCorrupt) {
			return nil // Neither is whole.
		}
		return err
	}
	if err := t.dirs.retry(func() error { return dir.Remove(p.name()) }); err != nil {
		return err
	}
	return try()
}

// sameFile reports whether a blob's two names lead to one file. Where it cannot tell they do not.
func (t *Tree) sameFile(old, dir *dirRef, p place) bool {
	a, err := t.openIn(old.key, p)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := t.openIn(dir.key, p)
	if err != nil {
		return false
	}
	defer b.Close()
	same, err := a.Same(b)
	return err == nil && same
}

// verifyIn reads the whole copy that a directory has.
func (t *Tree) verifyIn(dir *dirRef, p place) error {
	f, err := t.openIn(dir.key, p)
	b, err := asBlob(f, p, err)
	if err != nil {
		return err
	}
	defer b.free()
	return b.verify()
}
