package blobovnicza

import (
	"errors"
	"io/fs"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/granary-store/granary/internal/durable"
)

// On a full disk blobs are deleted and files compacted in space that was set aside while there was some: each leaf has
// a small reserve, the tree a large spare. Either is a file without records that becomes the active one of a leaf,
// by a manifest and a new name, which need no space.
const (
	reserveName = "reserve" // in the leaf's directory
	spareName   = "spare"   // in the top one

	reserveSize  = 64 << 10 // for some six hundred tombstones, or a manifest
	minSpareSize = 64 << 10

	spareFree     = 32      // so many spares must be free on the disk to do without one
	roomyDisk     = 1 << 30 // and that much at least: the last of a small disk is gone quickly
	asideManifest = 4 << 10 // a guess at the first record
)

// aside is a file that is set aside.
type aside struct {
	mu   sync.Mutex   // held while the file is made, moved or made blank
	size atomic.Int64 // of the file as far as it is known to be there and blank, else 0; it may be read without mu
}

func (a *aside) has(size int64) bool { return a.size.Load() >= size }

// room is what records can take of the file when it is promoted.
func (a *aside) room() int64 { return max(0, a.size.Load()-asideManifest) }

// ensureReserve sets the leaf's reserve aside if it is not there.
func (l *leaf) ensureReserve() error {
	size := int64(reserveSize + 2*manifestEntry*len(l.version.Load().files))
	if l.reserve.has(size / 2) {
		return nil
	}
	return l.inDir(func(dir *durable.Dir) error { return l.tree.setAside(&l.reserve, dir, reserveName, size, size/2) })
}

// ensureSpare sets the spare aside if it is not there, or if a file has outgrown it: on a full disk compaction can
// give back the space of a file only if what is live in it fits into the spare.
func (t *Tree) ensureSpare() error {
	largest := int64(minSpareSize)
	for _, l := range t.leaves {
		if v := l.version.Load(); v != nil {
			for _, f := range v.files {
				largest = max(largest, f.end.Load())
			}
		}
	}
	size := min(int64(1)<<bits.Len64(uint64(largest-1)), max(largest, t.fileLimit()))
	if t.spare.has(largest) || !t.opts.KeepSpare && t.roomy(size) {
		return nil
	}
	return t.setAside(&t.spare, t.store.Dir, spareName, size, largest)
}

// roomy reports whether the disk is so far from full that the spare can be made later.
func (t *Tree) roomy(size int64) bool {
	free, err := t.store.Dir.Free()
	return err == nil && free >= max(spareFree*size, roomyDisk)
}

// setAside makes a file of zeros with all its space, or extends the one that is there, unless that has enough already.
// Less is kept, but is an error. The name need not survive a crash: Open makes another. A limit of the process on the
// size of files is no full disk, and no error.
func (t *Tree) setAside(a *aside, dir *durable.Dir, name string, size, enough int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.size.Store(0)
	have, err := t.openBlank(dir, name)
	if err != nil {
		return err
	}
	var got int64
	if have == nil {
		got, err = makeAside(dir, name, size)
		t.used.Add(got)
	} else {
		got, err = t.extendAside(have, size, enough)
	}
	a.size.Store(got)
	if got >= enough || errors.Is(err, syscall.EFBIG) {
		return nil
	}
	return err
}

// extendAside extends a file that has not enough, closes it, and returns its size.
func (t *Tree) extendAside(have *durable.File, size, enough int64) (got int64, err error) {
	got = have.OpenSize()
	if got < enough {
		err = have.Reserve(size)
		after, e := have.Size()
		t.used.Add(after - got)
		got, err = after, errors.Join(err, e)
	}
	return got, errors.Join(err, have.Close())
}

// recycle sets a data file aside that is no longer listed, if there is no other as large: on a full disk others may be
// quicker to take the space that its removal would give back. It reports whether the file has left its name.
func (l *leaf) recycle(dir *durable.Dir, name string) bool {
	t := l.tree
	if !t.opts.KeepSpare && t.roomy(t.fileLimit()) {
		return false
	}
	return t.reuse(&t.spare, dir, name, t.store.Dir, spareName, math.MaxInt64) ||
		t.reuse(&l.reserve, dir, name, dir, reserveName, reserveSize)
}

// reuse makes a file of dir the one that is set aside as asideName, if there is none as large. It keeps at most that
// size.
func (t *Tree) reuse(a *aside, dir *durable.Dir, name string, to *durable.Dir, asideName string, most int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	size, err := dir.Stat(name)
	if size = min(size, most); err != nil || a.has(size) {
		return false
	}
	if a.has(1) && to.Remove(asideName) == nil {
		t.used.Add(-a.size.Swap(0))
	}
	if dir.Move(name, to, asideName) != nil {
		return false
	}
	f, err := to.OpenRW(asideName)
	if err == nil {
		if err = errors.Join(blankOut(f, size), f.Close()); err == nil {
			t.used.Add(size - f.OpenSize())
			a.size.Store(size)
		}
	}
	if err != nil {
		t.log.Warn("file not set aside", "name", asideName, "err", err)
	}
	return true
}

// blankOut makes all of a file zeros, in place. The first ones come last: they say that the others are there.
func blankOut(f *durable.File, size int64) error {
	err := f.Truncate(size)
	for end := size; end > 0 && err == nil; {
		n := min(end, zeroSize)
		if end -= n; end == 0 {
			err = f.Datasync()
		}
		_, e := f.WriteAt(zeros[:n], end)
		err = errors.Join(err, e)
	}
	return errors.Join(err, f.Datasync())
}

// openBlank opens a file that was set aside, nil if there is none. One that was used is removed: it may be a second
// name of an active file.
func (t *Tree) openBlank(dir *durable.Dir, name string) (*durable.File, error) {
	f, err := dir.OpenRW(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || isBlank(f) {
		return f, err
	}
	if err := errors.Join(f.Close(), dir.Remove(name)); err != nil {
		return nil, err
	}
	t.used.Add(-f.OpenSize())
	return nil, nil
}

// makeAside makes a file of that size, or of a part of it that there is room for.
func makeAside(dir *durable.Dir, name string, size int64) (int64, error) {
	temp, err := dir.Temp()
	if err != nil {
		return 0, err
	}
	cause := temp.Reserve(size)
	for part := size / 2; cause != nil && noSpace(cause) && part >= size/16; part /= 2 {
		if temp.Reserve(part) == nil {
			break
		}
	}
	got, err := temp.Size()
	if err == nil && got < headerSize {
		err = cause
	}
	if err == nil {
		err = temp.Link(name)
	}
	if err != nil {
		return 0, errors.Join(err, temp.Discard())
	}
	return got, errors.Join(cause, temp.Close())
}

// isBlank reports whether a file that was set aside was never used.
func isBlank(f *durable.File) bool {
	var b [headerSize]byte
	n, err := f.ReadAt(b[:], 0)
	return n == len(b) && err == nil && b == [headerSize]byte{}
}

// promote turns a file that was set aside in from into the leaf's next one.
func (l *leaf) promote(a *aside, from, dir *durable.Dir, name string, list []listed) (*file, int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.size.Store(0)
	space, err := from.OpenRW(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = errTight
	}
	if err != nil {
		return nil, 0, err
	}
	f, record := l.begin(list)
	size := space.OpenSize()
	if !isBlank(space) || size < int64(len(record)) {
		return nil, 0, errors.Join(errTight, space.Close())
	}
	if _, err = space.WriteAt(record, 0); err == nil && !l.tree.opts.NoSync {
		err = space.Datasync()
	}
	if err = errors.Join(err, space.Close()); err == nil {
		err = from.Move(name, dir, f.data.name)
	}
	if err != nil {
		return nil, 0, err
	}
	l.tree.used.Add(-size) // from now on it counts as far as it is written
	return f, size, l.named(dir, f, record)
}
