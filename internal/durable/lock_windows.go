package durable

import (
	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/windows"
)

// lock takes the lock or fails at once. It belongs to the open file, so that a second open in the same process
// meets it too, and ends with it, also when the process dies.
func lock(f *sysFile, shared bool) error {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.f.Fd()), how, 0, 1, 0, &windows.Overlapped{})
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return blobstor.ErrInUse
	}
	return pathError("lock", lockName, err)
}

// unlock does nothing: the system takes the lock back when the last handle is closed.
func unlock(*sysFile) error { return nil }

// lockDir does nothing: the file of the lock cannot be removed while it is open.
func lockDir(handle, bool) error { return nil }

func unlockDir(handle) error { return nil }
