package durable

import (
	"errors"

	"golang.org/x/sys/unix"
)

func datasync(f *sysFile) error { return f.do(unix.Fdatasync) }

func dropCache(f *sysFile) {
	_ = f.do(func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
}

func preallocate(f *sysFile, size int64) error {
	_, err := fallocate(f, unix.FALLOC_FL_KEEP_SIZE, size)
	return err
}

func reserve(f *sysFile, size int64) error {
	if able, err := fallocate(f, 0, size); able {
		return err
	}
	return writeZeros(f, size)
}

// fallocate reports whether the file system can do it, and how it went.
func fallocate(f *sysFile, mode uint32, size int64) (able bool, err error) {
	if size == 0 {
		return true, nil // The system refuses it.
	}
	err = f.do(func(fd int) error { return unix.Fallocate(fd, mode, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return true, err
}
