package blobovnicza

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
	"github.com/granary-store/granary/internal/groupcommit"
)

// leaf is a directory of blobovniczas. The last of its files is active, the others are full and never change. It is
// opened when it is used first.
type leaf struct {
	tree    *Tree
	id      uint16
	commits *groupcommit.Committer[*request]

	opening sync.Mutex
	open    atomic.Bool

	version atomic.Pointer[version]
	saving  sync.Mutex // held while index files are written, or Repair replaces what they are written of
	tombs   tombs      // of all tombstones that its files have
	reserve aside
	victim  atomic.Pointer[file] // what compaction copies from

	mu      sync.Mutex // guards what is below; never held across I/O
	pinned  map[*version]int
	doomed  []*file      // no longer listed, and kept by a pinned version
	lost    []lostSpan   // damage whose addresses are unknown
	losses  atomic.Int32 // how many these are
	missing []listed     // listed files that are not there; every manifest goes on listing them

	writer // the committer's own
}

// lostSpan is a damaged part of a file: the addresses of the records in it are unknown.
type lostSpan struct {
	file uint32
	span
}

// newLeaf returns a leaf that is not open.
func (t *Tree) newLeaf(id uint16) *leaf {
	l := &leaf{tree: t, id: id}
	l.commits = groupcommit.New(groupcommit.Limits{MaxOps: groupOps, MaxBytes: groupBytes}, l.commitGroup, l.afterGroup)
	return l
}

// active returns the file that takes writes.
func (l *leaf) active() *file { return l.version.Load().active() }

// inDir calls do with the leaf's directory. It is open only so long, because a tree may have more leaves than a
// process may have files open.
func (l *leaf) inDir(do func(dir *durable.Dir) error) error {
	dir, err := l.tree.store.Dir.Sub(treeDir)
	if err != nil {
		return leafMissing(l.id, err)
	}
	for _, digit := range l.digits() {
		sub, err := dir.Sub(strconv.Itoa(digit))
		if err = errors.Join(err, dir.Close()); err != nil {
			return leafMissing(l.id, err)
		}
		dir = sub
	}
	return errors.Join(do(dir), dir.Close())
}

// digits returns the leaf's number to the base of the width, the most significant digit first.
func (l *leaf) digits() []int {
	width, depth := int(l.tree.store.Shape[0]), int(l.tree.store.Shape[1])-1
	digits := make([]int, depth)
	for i, rest := depth-1, int(l.id); i >= 0; i-- {
		digits[i], rest = rest%width, rest/width
	}
	return digits
}

// leafMissing makes the absence of a directory what it is: damage, and not the absence of a blob.
func leafMissing(id uint16, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: directory of leaf %d: %v", blobstor.ErrCorrupt, id, err) //nolint:errorlint // it must not match fs.ErrNotExist
	}
	return err
}

// openFile opens a file of the leaf.
func (l *leaf) openFile(name string) (f *durable.File, err error) {
	err = l.inDir(func(dir *durable.Dir) (err error) {
		if l.tree.opts.ReadOnly {
			f, err = dir.Open(name)
		} else {
			f, err = dir.OpenRW(name)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %v", errNoFile, err) //nolint:errorlint // it must not match fs.ErrNotExist
	}
	return f, err
}

// errNoFile is a file that is missing: damage, and not the absence of a blob.
var errNoFile = fmt.Errorf("%w: file is missing", blobstor.ErrCorrupt)

// hasLost reports whether addresses are lost to damage, so that a miss proves nothing.
func (l *leaf) hasLost() bool { return l.losses.Load() > 0 }

// apply makes a record at off visible: the index points to it, and the counters follow; those of other files only if
// others is set.
func (l *leaf) apply(files []*file, f *file, key uint64, h *header, off int64, others bool) {
	if old := byNumber(files, h.replaced.file); old != nil && (old == f || others) {
		old.dead.Add(h.replaced.size())
		if r := old.recent(); r == nil || r.get(key, &h.address).in(old.number) == h.replaced {
			old.count(h.replaced, -1)
		}
	}
	e := makeEntry(h.kind, off, h.length)
	if h.kind == kindTombstone { // whoever makes a new filter meanwhile must find one of both
		l.tombs.mu.Lock()
		defer l.tombs.mu.Unlock()
		l.tombs.addLocked(key)
	}
	f.recent().put(key, &h.address, e)
	f.count(e.in(f.number), 1)
}

// close closes the files of a leaf that takes no more calls.
func (l *leaf) close() (err error) {
	v := l.version.Load()
	if v == nil {
		return nil
	}
	for _, f := range v.files {
		err = errors.Join(err, f.data.close(), f.idx.close())
	}
	return err
}
