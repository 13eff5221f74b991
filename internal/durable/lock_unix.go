//go:build unix

package durable

import (
	"os"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// lock takes the lock or fails at once. It belongs to the open file, so that a second open in the same process
// meets it too, and ends with it, also when the process dies.
func lock(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			return blobstor.ErrInUse
		default:
			return pathError("lock", lockName, err)
		}
	}
}
