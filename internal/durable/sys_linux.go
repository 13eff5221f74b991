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
	err := f.do(func(fd int) error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
