package fstree

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// maxDirs is how many directories stay open: the whole first level, and as many deeper ones.
const maxDirs = 512

// dirs keeps directories of the tree open. One that is in use, or whose sync has failed, is never closed: it
// would forget the failure.
type dirs struct {
	root *dirRef

	mu    sync.Mutex
	open  map[dirKey]*dirRef // without the root
	clock uint64             // of uses

	evictions uint64 // directories closed to make room for others
}

type dirRef struct {
	*durable.Dir
	key     dirKey
	lasting atomic.Bool // its name is durable
	users   int         // guarded by dirs.mu, as is used
	used    uint64      // clock of the last use
}

func newDirs(root *durable.Dir) *dirs {
	return &dirs{root: &dirRef{Dir: root}, open: map[dirKey]*dirRef{}}
}

// get returns an open directory, which the caller must put back. With create the directory is made if it is
// missing, and its name is durable, which another use of it may not have cared for.
func (d *dirs) get(key dirKey, create bool) (*dirRef, error) {
	if key == rootKey {
		return d.root, nil
	}
	ref := d.use(key, nil)
	if ref != nil && (ref.lasting.Load() || !create) {
		return ref, nil
	}
	var dir *durable.Dir
	err := d.retry(func() (err error) {
		dir, err = d.reach(key, ref == nil, create)
		return err
	})
	if err != nil {
		if ref != nil {
			d.put(ref)
		}
		return nil, levelError(key, err)
	}
	if ref == nil {
		if ref = d.use(key, dir); ref.Dir != dir {
			dir.Close() // Another call was faster, and nothing was done with this one.
		}
	}
	if create {
		ref.lasting.Store(true)
	}
	return ref, nil
}

// reach goes to a directory through its parent, to make it there and to open it, or only one of the two.
func (d *dirs) reach(key dirKey, open, create bool) (*durable.Dir, error) {
	parent, err := d.get(key.parent(), create)
	if err != nil {
		return nil, err
	}
	defer d.put(parent)
	if create {
		if err := parent.MakeDirs(key.name()); err != nil {
			return nil, err
		}
	}
	if !open {
		return nil, nil
	}
	return parent.Sub(key.name())
}

// use counts a use of an open directory; if it is not open it becomes so with dir, unless that is nil.
func (d *dirs) use(key dirKey, dir *durable.Dir) *dirRef {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := d.open[key]
	if ref == nil {
		if dir == nil {
			return nil
		}
		if len(d.open) >= maxDirs {
			d.closeOldest()
		}
		ref = &dirRef{Dir: dir, key: key}
		d.open[key] = ref
	}
	d.clock++
	ref.users++
	ref.used = d.clock
	return ref
}

func (d *dirs) put(ref *dirRef) {
	if ref == d.root {
		return
	}
	d.mu.Lock()
	ref.users--
	d.mu.Unlock()
}

// idle reports whether a directory may be closed; the caller holds mu.
func (r *dirRef) idle() bool { return r.users == 0 && r.Err() == nil }

func (d *dirs) closeOldest() {
	var oldest *dirRef
	for _, r := range d.open {
		if r.idle() && (oldest == nil || r.used < oldest.used) {
			oldest = r
		}
	}
	if oldest != nil {
		delete(d.open, oldest.key)
		d.evictions++
		oldest.Close() // Nothing was written through it that a sync has not covered.
	}
}

// shrink closes all idle directories, for a process that has no file descriptors left, and reports whether there
// were any.
func (d *dirs) shrink() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.open)
	for key, r := range d.open {
		if r.idle() {
			delete(d.open, key)
			d.evictions++
			r.Close()
		}
	}
	return len(d.open) < before
}

// retry makes a call that needs file descriptors, and once more without idle directories if there were too few.
func (d *dirs) retry(call func() error) error {
	err := call()
	if tooManyFiles(err) && d.shrink() {
		err = call()
	}
	return err
}

// failed returns the error of a directory whose sync has failed, nil if none has.
func (d *dirs) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.open {
		if err := r.Err(); err != nil {
			return err
		}
	}
	return d.root.Err()
}

// stats returns how many directories are open, and how many were closed to make room for others.
func (d *dirs) stats() (open int, evictions uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open), d.evictions
}

// close closes all directories but the root; no call is inside any more.
func (d *dirs) close() (err error) {
	for _, r := range d.open {
		err = errors.Join(err, r.Close())
	}
	return err
}

// levelError says what it means that a directory cannot be opened. Deeper levels are made on demand, but the
// first one was there from the start, and nobody can say what was in it.
func levelError(key dirKey, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w", blobstor.ErrLayout, err)
	case key.level() == 1 && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: directory %s is missing", blobstor.ErrCorrupt, key.name())
	}
	return err
}

func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
