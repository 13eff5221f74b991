package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/granary-store/granary/blobstor"
)

// Dir is an open directory. All methods are safe for concurrent use, Close excepted.
type Dir struct {
	o    *origin
	h    handle
	path string
	sync sharedSync

	levels sync.Mutex      // guards made, and is held while directories are made, so that one caller makes them
	made   map[string]bool // names that were there before a sync of this Dir
}

// OpenDir opens an existing directory. tap is nil outside tests.
func OpenDir(path string, tap Tap) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	h, err := openHandle(path)
	if err != nil {
		return nil, pathError("open", filepath.Base(path), err)
	}
	return newDir(newOrigin(tap), h, path), nil
}

func newDir(o *origin, h handle, path string) *Dir {
	return &Dir{o: o, h: h, path: path, made: map[string]bool{}}
}

// Sub opens an existing directory of d.
func (d *Dir) Sub(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	h, err := d.h.sub(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return newDir(d.o, h, d.join(name)), nil
}

// Mkdir opens a directory of d, which it makes if it is missing. When it returns nil the directory's name is
// durable, whoever made it.
func (d *Dir) Mkdir(name string) (*Dir, error) {
	if err := d.MakeDirs(name); err != nil {
		return nil, err
	}
	return d.Sub(name)
}

// MakeDirs makes the directories that are missing, with one sync of d for all of them. That a directory exists
// does not prove its name durable, for another process may have made it and died; so d is synced the first time
// it meets a name, which covers all names that are there by then.
func (d *Dir) MakeDirs(names ...string) error {
	d.levels.Lock()
	defer d.levels.Unlock()
	var fresh []string
	for _, name := range names {
		if !d.made[name] {
			fresh = append(fresh, name)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	for _, name := range fresh {
		if err := d.mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if len(d.made) == 0 {
		all, err := d.Names()
		if err != nil {
			return err
		}
		fresh = append(fresh, all...)
	}
	if err := d.Sync(); err != nil {
		return err
	}
	for _, name := range fresh {
		d.made[name] = true
	}
	return nil
}

func (d *Dir) mkdir(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := d.o.before(OpMkdir, d, name, nil); err != nil {
		return err
	}
	if err := d.h.mkdir(name, d.o.dirPerm()); err != nil {
		return pathError("mkdir", name, err)
	}
	d.o.after(OpMkdir, d, name, nil)
	return nil
}

// Names lists the directory, in no order.
func (d *Dir) Names() ([]string, error) {
	names, err := d.h.names()
	return names, pathError("list", filepath.Base(d.path), err)
}

// Stat returns the length in bytes of a regular file without opening it. The error matches fs.ErrNotExist for a
// missing name and ErrNotRegular for what is no regular file.
func (d *Dir) Stat(name string) (size int64, err error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	size, err = d.h.stat(name)
	return size, pathError("stat", name, err)
}

// Remove removes a file or an empty directory. The removal is durable after Sync.
func (d *Dir) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := d.o.before(OpRemove, d, name, nil); err != nil {
		return err
	}
	if err := d.h.remove(name); err != nil {
		return pathError("remove", name, err)
	}
	d.levels.Lock()
	delete(d.made, name)
	d.levels.Unlock()
	d.o.after(OpRemove, d, name, nil)
	return nil
}

// RemoveAll removes name and all below it; a missing name is no error. The removal is durable after Sync.
func (d *Dir) RemoveAll(name string) error {
	err := d.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	sub, subErr := d.Sub(name)
	switch {
	case errors.Is(subErr, syscall.ENOTDIR), errors.Is(subErr, fs.ErrNotExist):
		return err // Remove knew why it stays.
	case subErr != nil:
		return subErr
	}
	names, err := sub.Names()
	for _, n := range names {
		err = errors.Join(err, sub.RemoveAll(n))
	}
	if err = errors.Join(err, sub.Close()); err != nil {
		return err
	}
	return d.Remove(name)
}

// Rename moves a name within the directory, replacing what bore the new one. It is durable after Sync.
func (d *Dir) Rename(from, to string) error {
	if err := errors.Join(checkName(from), checkName(to)); err != nil {
		return err
	}
	if err := d.o.before(OpRename, d, to, nil); err != nil {
		return err
	}
	if err := d.h.rename(from, to); err != nil {
		return pathError("rename", from, err)
	}
	d.o.after(OpRename, d, to, nil)
	return nil
}

// Move moves a file of d into the directory to, of the same OpenDir or OpenStore, without replacing: if name is
// there the error matches fs.ErrExist, and fs.ErrNotExist if from is missing. After an error the file still
// bears its old name, after nil the new one alone; that is durable after a Sync of to, and the old name is gone
// for good after a later Sync of d. After a loss of power before the second both names may be there, and a Sync of
// d that comes first may lose the file.
func (d *Dir) Move(from string, to *Dir, name string) error {
	if err := errors.Join(checkName(from), checkName(name)); err != nil {
		return err
	}
	if err := d.o.before(OpRename, to, name, nil); err != nil {
		return err
	}
	kept, err := d.h.renameNew(from, to.h, name)
	if kept != nil {
		err = errors.Join(kept, to.h.remove(name)) // Two names for one file would be a surprise.
	}
	if err != nil {
		return pathError("move", from, err)
	}
	d.o.after(OpRename, to, name, nil)
	return nil
}

// Link gives a file of d a second name in the directory to, of the same OpenDir or OpenStore, without replacing: if
// name is there the error matches fs.ErrExist, and fs.ErrNotExist if from is missing. The new name is durable after
// a Sync of to; only then may the old one be removed by a caller that must not lose the file. The file system must
// know more than one name for a file.
func (d *Dir) Link(from string, to *Dir, name string) error {
	if err := errors.Join(checkName(from), checkName(name)); err != nil {
		return err
	}
	if err := d.o.before(OpLink, to, name, nil); err != nil {
		return err
	}
	if err := d.h.link(from, to.h, name); err != nil {
		return pathError("link", from, err)
	}
	d.o.after(OpLink, to, name, nil)
	return nil
}

// Sync makes the directory's names durable. Callers share syncs, and one joins only a sync that starts after its
// call. After a failure this and every later call returns an error that matches blobstor.ErrFailed.
func (d *Dir) Sync() error { return d.sync.do(d.syncNow) }

func (d *Dir) syncNow() error {
	if err := d.o.before(OpSyncDir, d, "", nil); err != nil {
		return blobstor.Failed(err)
	}
	if err := d.h.sync(); err != nil {
		return blobstor.Failed(pathError("sync", filepath.Base(d.path), err))
	}
	d.o.after(OpSyncDir, d, "", nil)
	return nil
}

// Err returns the error of a Sync that failed, nil if none did. Such a directory should take no more names.
func (d *Dir) Err() error { return d.sync.err() }

// Free returns how many bytes the file system of d can still take.
func (d *Dir) Free() (int64, error) {
	n, err := d.h.free()
	return n, pathError("stat", filepath.Base(d.path), err)
}

// Path returns the directory's full path.
func (d *Dir) Path() string { return d.path }

// Close releases the directory; no other call may be running.
func (d *Dir) Close() error { return d.h.close() }

// join returns the full path of a name, or of the directory itself for "".
func (d *Dir) join(name string) string { return filepath.Join(d.path, name) }

// checkName refuses what is not a single component.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("durable: %q is not a file name: %w", name, fs.ErrInvalid)
	}
	return nil
}

// pathError adds what was tried to an error of the system, unless it is nil. The name is relative: an error's
// text does not give away where the program keeps its data.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	switch e := err.(type) {
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
