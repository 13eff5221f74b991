//go:build unix

package durable

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// locked is an open file or directory.
type locked interface {
	do(call func(fd int) error) error
}

// lock takes the lock or fails at once. It belongs to the open file, so that a second open in the same process
// meets it too, and ends with it, also when the process dies.
func lock(f locked, shared bool) error {
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

// lockDir locks the store's directory besides: who removes the file of the other lock, which looks stale, must not let
// a second process in.
func lockDir(h handle, shared bool) error { return lock(h, shared) }

func unlockDir(h handle) error { return unlock(h) }

// unlock gives up a lock on the open file, whoever took it: a mapping would keep it after the file is closed.
func unlock(f locked) error {
	return f.do(func(fd int) error { return unix.Flock(fd, unix.LOCK_UN) })
}
