//go:build linux && !generic

package durable

import (
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// How temporaries are made, found out once per open by making one.
const (
	modeUnknown = iota
	modeEmpty   // O_TMPFILE, linked by AT_EMPTY_PATH
	modeProc    // O_TMPFILE, linked through /proc: kernels before 6.10 let only privileged processes do without
	modeNamed   // an exclusive temporary name
)

func (d *Dir) newTemp(name string) (*Temp, error) {
	mode, err := d.o.tempMode(d.h)
	if err != nil {
		return nil, err
	}
	if mode == modeNamed {
		return d.namedTemp(name)
	}
	fd, err := d.h.unnamed(d.o.perm)
	if err != nil {
		return nil, err
	}
	both := &struct {
		temp Temp
		file File
	}{file: File{o: d.o, d: d, name: name}}
	both.temp.File = &both.file
	both.file.f.init(fd)
	return &both.temp, nil
}

// unnamed makes a file without a name.
func (h handle) unnamed(perm fs.FileMode) (int, error) {
	return openat(h.fd, ".", unix.O_TMPFILE|unix.O_RDWR, perm)
}

func (t *Temp) linkUnnamed(d *Dir, name string) error {
	mode := t.o.mode.Load()
	return t.f.do(func(fd int) error { return linkFile(mode, fd, d.h, name) })
}

func linkFile(mode uint32, fd int, to handle, name string) error {
	if mode == modeEmpty {
		return unix.Linkat(fd, "", to.fd, name, unix.AT_EMPTY_PATH)
	}
	proc := "/proc/self/fd/" + strconv.Itoa(fd)
	return unix.Linkat(unix.AT_FDCWD, proc, to.fd, name, unix.AT_SYMLINK_FOLLOW)
}

// tempMode returns the way of making temporaries. A failure that says nothing of the file system's abilities, as
// a full disk, is returned and decides nothing.
func (o *origin) tempMode(h handle) (uint32, error) {
	if mode := o.mode.Load(); mode != modeUnknown {
		return mode, nil
	}
	o.probe.Lock()
	defer o.probe.Unlock()
	mode := o.mode.Load()
	if mode != modeUnknown {
		return mode, nil
	}
	mode, err := o.findMode(h)
	if err == nil {
		o.mode.Store(mode)
	}
	return mode, err
}

func (o *origin) findMode(h handle) (uint32, error) {
	if o.named {
		return modeNamed, nil
	}
	name := o.tempName()
	fd, err := h.unnamed(o.perm)
	if err != nil {
		return named(err)
	}
	defer unix.Close(fd)
	if err = linkFile(modeEmpty, fd, h, name); err == nil {
		return modeEmpty, h.remove(name)
	}
	if err = linkFile(modeProc, fd, h, name); err == nil {
		return modeProc, h.remove(name)
	}
	return named(err)
}

// named decides for named temporaries if err means that the system cannot do without names.
func named(err error) (uint32, error) {
	for _, no := range []error{
		unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS, unix.ENOENT, unix.EPERM, unix.EXDEV,
	} {
		if errors.Is(err, no) {
			return modeNamed, nil
		}
	}
	return modeUnknown, err
}
