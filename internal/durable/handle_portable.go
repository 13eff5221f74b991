//go:build !linux || generic

package durable

import (
	"io/fs"
	"os"
	"path"
	"syscall"
)

// handle is an open directory: a path below the root that all directories of one open share, and the directory
// itself, kept open for its syncs.
type handle struct {
	root *os.Root
	rel  string // slash-separated, "." for the root
	dir  *os.File
}

func openHandle(p string) (handle, error) {
	root, err := os.OpenRoot(p)
	if err != nil {
		return handle{}, err
	}
	h, err := openIn(root, ".")
	if err != nil {
		root.Close()
	}
	return h, err
}

// do runs a call on the directory's descriptor, again if a signal interrupts it.
func (h handle) do(call func(fd int) error) error { return (&sysFile{h.dir}).do(call) }

func (h handle) sub(name string) (handle, error) {
	info, err := h.root.Lstat(h.at(name))
	if err != nil {
		return handle{}, err
	}
	if !info.IsDir() {
		return handle{}, syscall.ENOTDIR
	}
	return openIn(h.root, h.at(name))
}

func openIn(root *os.Root, rel string) (handle, error) {
	dir, err := root.Open(rel)
	return handle{root: root, rel: rel, dir: dir}, err
}

var accessFlags = [...]int{
	readOnly:  os.O_RDONLY,
	readWrite: os.O_RDWR,
	openOrNew: os.O_RDWR | os.O_CREATE,
	exclusive: os.O_RDWR | os.O_CREATE | os.O_EXCL,
}

// open opens a file into f. It looks before it opens, for os.Root follows symbolic links inside the root, and
// looks again if the name has been given to another file in between.
func (h handle) open(name string, how access, f *File) error {
	for {
		before, err := h.root.Lstat(h.at(name))
		if err == nil && !before.Mode().IsRegular() && how != exclusive {
			return ErrNotRegular
		}
		file, err := h.root.OpenFile(h.at(name), accessFlags[how]|nonBlock, f.o.perm)
		if err != nil {
			return err
		}
		info, err := file.Stat()
		if err == nil && (before == nil || os.SameFile(before, info)) {
			f.f.init(file)
			f.size = info.Size()
			return nil
		}
		file.Close()
		if err != nil {
			return err
		}
	}
}

// stat returns the size of a regular file.
func (h handle) stat(name string) (int64, error) {
	info, err := h.root.Lstat(h.at(name))
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, ErrNotRegular
	}
	return info.Size(), nil
}

func (h handle) mkdir(name string, perm fs.FileMode) error { return h.root.Mkdir(h.at(name), perm) }

func (h handle) remove(name string) error { return h.root.Remove(h.at(name)) }

func (h handle) rename(from, to string) error { return h.root.Rename(h.at(from), h.at(to)) }

// renameNew links and removes: there is no portable rename that does not replace. If only the
// removal fails kept says why, and both names are there.
func (h handle) renameNew(from string, to handle, name string) (kept, err error) {
	if err := h.link(from, to, name); err != nil {
		return nil, err
	}
	return h.remove(from), nil
}

func (h handle) link(from string, to handle, name string) error {
	return h.root.Link(h.at(from), to.at(name))
}

// names lists through a handle of its own, for the position in a directory belongs to the handle.
func (h handle) names() ([]string, error) {
	f, err := h.root.Open(h.rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (h handle) sync() error { return syncDir(h.dir) }

// syncFS leaves the work to the caller: there is no portable sync of a whole file system.
func (h handle) syncFS() (bool, error) { return false, nil }

func (h handle) free() (int64, error) { return freeSpace(h.dir) }

func (h handle) close() error {
	err := h.dir.Close()
	if h.rel == "." {
		if e := h.root.Close(); err == nil {
			err = e
		}
	}
	return err
}

func (h handle) at(name string) string { return path.Join(h.rel, name) }
