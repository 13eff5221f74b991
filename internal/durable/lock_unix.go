//go:build unix

package durable

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// lock takes the lock or fails at once. It belongs to the open file, so that a second open in the same process
// meets it too, and ends with it, also when the process dies.
func lock(f *sysFile, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := f.do(func(fd int) error { return unix.Flock(fd, how|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return blobstor.ErrInUse
	}
	return pathError("lock", lockName, err)
}

// unlock gives up a lock on the open file, whoever took it: a mapping would keep it after the file is closed.
func unlock(f *sysFile) error {
	return f.do(func(fd int) error { return unix.Flock(fd, unix.LOCK_UN) })
}
