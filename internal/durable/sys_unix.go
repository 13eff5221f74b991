//go:build unix

package durable

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlock keeps the open of a pipe from waiting for its other end.
const nonBlock = syscall.O_NONBLOCK

func syncDir(dir *os.File) error { return dir.Sync() }

// freeSpace returns how many bytes an unprivileged program can still write.
func freeSpace(dir *os.File) (int64, error) {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(dir.Fd()), &st)
	return int64(st.Bavail) * int64(st.Bsize), err
}

func dupFD(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) }
