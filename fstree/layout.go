package fstree

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// layout says where blobs lie. It never changes; a Reshape puts another one in its place.
type layout struct {
	depth int // of the directories that new blobs go to
	old   int // of those that a Reshape has not emptied yet; noDepth if there is none

	writes gate // the calls that put or delete by this layout
}

const noDepth = -1

// errReplaced sends a write to the layout that is in force now.
var errReplaced = errors.New("fstree: the layout was replaced")

// layoutOf reads the shape that a descriptor states: the depth plus one, the old depth plus one, and zeros.
func layoutOf(shape [4]uint32) (*layout, error) {
	good := shape[0] != 0 && shape[0] <= maxDepth+1 && shape[1] <= maxDepth+1 && shape[0] != shape[1]
	if !good || shape[2] != 0 || shape[3] != 0 {
		return nil, fmt.Errorf("%w: shape %v", blobstor.ErrLayout, shape)
	}
	return &layout{depth: int(shape[0]) - 1, old: int(shape[1]) - 1}, nil
}

// shape is the inverse of layoutOf.
func (l *layout) shape() [4]uint32 { return [4]uint32{uint32(l.depth + 1), uint32(l.old + 1)} }

// between reports whether a Reshape has begun and not ended: blobs lie at two depths.
func (l *layout) between() bool { return l.old != noDepth }

// depths are the depths of directories that hold blobs, in the order in which a blob moves: who looks at them in
// this order does not miss it.
func (l *layout) depths() []int {
	if l.between() {
		return []int{l.old, l.depth}
	}
	return []int{l.depth}
}

// coarse is the smallest of the depths: a directory there, and those below it, hold the blobs of one range of
// locations.
func (l *layout) coarse() int {
	if l.between() {
		return min(l.old, l.depth)
	}
	return l.depth
}

// setLayout durably records a layout, puts it in force and waits for the writes by the one before. Reads are not
// waited for: one that finds nothing looks again if the layout has changed.
func (t *Tree) setLayout(l *layout) error {
	if err := t.dirs.retry(func() error { return t.store.SetShape(l.shape()) }); err != nil {
		return err
	}
	<-t.layout.Swap(l).writes.shut(errReplaced)
	return nil
}

// openFile opens a blob's file, wherever it is.
func (t *Tree) openFile(p place) (*durable.File, error) {
	for {
		l := t.layout.Load()
		f, err := t.openBy(l, p)
		if !errors.Is(err, fs.ErrNotExist) || t.layout.Load() == l {
			return f, err
		}
	}
}

func (t *Tree) openBy(l *layout, p place) (*durable.File, error) {
	if !l.between() {
		return t.openIn(p.dir(l.depth), p)
	}
	f, oldErr := t.openIn(p.dir(l.old), p)
	if oldErr == nil {
		return f, nil
	}
	f, err := t.openIn(p.dir(l.depth), p)
	switch {
	case err == nil || errors.Is(oldErr, fs.ErrNotExist):
		return f, err
	case errors.Is(err, fs.ErrNotExist):
		return nil, oldErr // Nobody knows that it is not there.
	}
	return nil, errors.Join(oldErr, err)
}

// home are the directories that a write is concerned with, in use until leaveHome. In the middle of a Reshape
// there are two. Then a blob that the old one has is confirmed, and replaced if it is damaged, there: what is
// looked at first is never the worse copy.
type home struct {
	l   *layout
	dir *dirRef // where a new blob goes; nil if it is missing and was not made
	old *dirRef // nil if there is no such layout, or no such directory
}

// enterHome opens the directories of a blob. With create the one for new blobs is made if it is missing; without, the
// caller holds the lock on the blob's name, for else one that is missing may be made and get the blob at any time. A
// directory whose sync has failed is an error.
func (t *Tree) enterHome(p place, create bool) (h home, err error) {
	h.l = t.layout.Load()
	for h.l.writes.enter() != nil {
		h.l = t.layout.Load()
	}
	h.dir, err = t.usable(p.dir(h.l.depth), create)
	if err == nil && h.l.between() {
		h.old, err = t.usable(p.dir(h.l.old), false)
		if create && errors.Is(err, blobstor.ErrCorrupt) {
			err = nil // It is missing and should not be: there is no stored copy in it that could be confirmed.
		}
	}
	if err != nil {
		t.leaveHome(h)
		return home{}, err
	}
	return h, nil
}

// usable opens a directory that takes writes; it is nil if it is missing, which deeper levels may be.
func (t *Tree) usable(key dirKey, create bool) (*dirRef, error) {
	ref, err := t.dirs.get(key, create)
	if err != nil {
		if !create && errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	if err := ref.Err(); err != nil {
		t.dirs.put(ref)
		return nil, err
	}
	return ref, nil
}

func (t *Tree) leaveHome(h home) {
	for _, ref := range [...]*dirRef{h.dir, h.old} {
		if ref != nil {
			t.dirs.put(ref)
		}
	}
	h.l.writes.leave()
}

// holder returns the directory whose copy of the blob counts, or the one where it is to go. The caller holds the
// lock on its name, and so the answer holds.
func (h home) holder(p place) (*dirRef, error) {
	if h.old == nil {
		return h.dir, nil
	}
	_, err := h.old.Stat(p.name())
	switch {
	case err == nil, errors.Is(err, durable.ErrNotRegular):
		return h.old, nil
	case errors.Is(err, fs.ErrNotExist):
		return h.dir, nil
	}
	return nil, err
}

// removeFrom durably removes a blob from a directory, which may be nil, and reports whether it was there.
func (t *Tree) removeFrom(dir *dirRef, p place) (bool, error) {
	if dir == nil {
		return false, nil
	}
	err := t.dirs.retry(func() error { return dir.Remove(p.name()) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, t.syncDir(dir)
}
