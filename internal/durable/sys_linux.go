package durable

import (
	"errors"

	"golang.org/x/sys/unix"
)

func datasync(f *sysFile) error { return f.do(unix.Fdatasync) }

func readAhead(f *sysFile, off, n int64) { advise(f, off, n, unix.FADV_WILLNEED) }

func dropRange(f *sysFile, off, n int64) { advise(f, off, n, unix.FADV_DONTNEED) }

func advise(f *sysFile, off, n int64, what int) {
	_ = f.do(func(fd int) error { return unix.Fadvise(fd, off, n, what) })
}

// writeBack does not wait, and so takes no error from the sync that follows.
func writeBack(f *sysFile, off, n int64) {
	_ = f.do(func(fd int) error { return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE) })
}

func memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
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
