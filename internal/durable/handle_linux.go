//go:build linux && !generic

package durable

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// handle is an open directory: the descriptor that the *at calls and the sync of the directory work on.
type handle struct{ fd int }

func openHandle(path string) (handle, error) {
	var fd int
	err := noEINTR(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return handle{fd}, err
}

// do runs a call on the directory's descriptor, again if a signal interrupts it.
func (h handle) do(call func(fd int) error) error { return noEINTR(func() error { return call(h.fd) }) }

func (h handle) sub(name string) (handle, error) {
	fd, err := openat(h.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return handle{fd}, err
}

// O_NONBLOCK keeps the open of a pipe from waiting for its other end.
var accessFlags = [...]int{
	readOnly:  unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK,
	readWrite: unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK,
	openOrNew: unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CREAT,
	exclusive: unix.O_RDWR | unix.O_NOFOLLOW | unix.O_CREAT | unix.O_EXCL,
}

// open opens a file into f.
func (h handle) open(name string, how access, f *File) error {
	fd, err := openat(h.fd, name, accessFlags[how], f.o.perm)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENXIO):
		return ErrNotRegular
	case err != nil:
		return err
	}
	var st unix.Stat_t
	if err = noEINTR(func() error { return unix.Fstat(fd, &st) }); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	f.f.init(fd)
	f.size = st.Size
	return nil
}

// stat returns the size of a regular file.
func (h handle) stat(name string) (int64, error) {
	var st unix.Stat_t
	err := noEINTR(func() error { return unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	switch {
	case err != nil:
		return 0, err
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return 0, ErrNotRegular
	}
	return st.Size, nil
}

func (h handle) mkdir(name string, perm fs.FileMode) error {
	return noEINTR(func() error { return unix.Mkdirat(h.fd, name, uint32(perm)) })
}

func (h handle) remove(name string) error {
	err := noEINTR(func() error { return unix.Unlinkat(h.fd, name, 0) })
	if err == unix.EISDIR {
		err = noEINTR(func() error { return unix.Unlinkat(h.fd, name, unix.AT_REMOVEDIR) })
	}
	return err
}

func (h handle) rename(from, to string) error {
	return noEINTR(func() error { return unix.Renameat(h.fd, from, h.fd, to) })
}

// renameNew moves a name without replacing. File systems that know no such rename get a link and a removal; if
// only the latter fails kept says why, and both names are there.
func (h handle) renameNew(from string, to handle, name string) (kept, err error) {
	err = noEINTR(func() error { return unix.Renameat2(h.fd, from, to.fd, name, unix.RENAME_NOREPLACE) })
	if err != unix.EINVAL && err != unix.ENOSYS {
		return nil, err
	}
	if err = h.link(from, to, name); err != nil {
		return nil, err
	}
	return h.remove(from), nil
}

func (h handle) link(from string, to handle, name string) error {
	return noEINTR(func() error { return unix.Linkat(h.fd, from, to.fd, name, 0) })
}

// names lists through a descriptor of its own, for the position in a directory belongs to the descriptor.
func (h handle) names() ([]string, error) {
	fd, err := openat(h.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

func (h handle) sync() error {
	if err := h.do(unix.Fsync); err != nil {
		return err
	}
	return h.alive()
}

// alive returns an error if the file system has stopped. XFS does that after an error in its log, and an fsync of a
// directory succeeds from then on, although nothing of it is on the disk; the look-up of an attribute, which nobody has,
// does not.
func (h handle) alive() error {
	_, err := unix.Fgetxattr(h.fd, "user.granary", nil)
	if err == unix.EIO {
		return err
	}
	return nil
}

// syncFS syncs the whole file system, and reports that this took care of the files too.
func (h handle) syncFS() (bool, error) {
	return true, noEINTR(func() error { return unix.Syncfs(h.fd) })
}

// free returns how many bytes an unprivileged program can still write.
func (h handle) free() (int64, error) {
	var st unix.Statfs_t
	err := noEINTR(func() error { return unix.Fstatfs(h.fd, &st) })
	return int64(st.Bavail) * int64(st.Bsize), err
}

func (h handle) close() error { return unix.Close(h.fd) }

func openat(dir int, name string, flags int, perm fs.FileMode) (fd int, err error) {
	err = noEINTR(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, uint32(perm))
		return err
	})
	return fd, err
}

// noEINTR repeats a call that a signal interrupted.
func noEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
