package torture

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// where says which argument of a system call tells the file that it is about.
type where struct {
	fd   int // the descriptor, of a directory if there is a path
	path int // the path, relative to the descriptor; -1 if there is none
}

// trapped are the calls that can be made to fail. close is not among them: a close that fails has closed all the same,
// which cannot be played.
var trapped = map[string]struct {
	nr int32
	where
}{
	"openat":          {unix.SYS_OPENAT, where{0, 1}},
	"pread64":         {unix.SYS_PREAD64, where{0, -1}},
	"pwrite64":        {unix.SYS_PWRITE64, where{0, -1}},
	"write":           {unix.SYS_WRITE, where{0, -1}},
	"fsync":           {unix.SYS_FSYNC, where{0, -1}},
	"fdatasync":       {unix.SYS_FDATASYNC, where{0, -1}},
	"syncfs":          {unix.SYS_SYNCFS, where{0, -1}},
	"ftruncate":       {unix.SYS_FTRUNCATE, where{0, -1}},
	"fallocate":       {unix.SYS_FALLOCATE, where{0, -1}},
	"getdents64":      {unix.SYS_GETDENTS64, where{0, -1}},
	"fstat":           {unix.SYS_FSTAT, where{0, -1}},
	"fstatfs":         {unix.SYS_FSTATFS, where{0, -1}},
	"flock":           {unix.SYS_FLOCK, where{0, -1}},
	"fcntl":           {unix.SYS_FCNTL, where{0, -1}},
	"fadvise64":       {unix.SYS_FADVISE64, where{0, -1}},
	"sync_file_range": {unix.SYS_SYNC_FILE_RANGE, where{0, -1}},
	"mmap":            {unix.SYS_MMAP, where{4, -1}},
	"newfstatat":      {unix.SYS_NEWFSTATAT, where{0, 1}},
	"mkdirat":         {unix.SYS_MKDIRAT, where{0, 1}},
	"unlinkat":        {unix.SYS_UNLINKAT, where{0, 1}},
	"renameat":        {unix.SYS_RENAMEAT, where{0, 1}},
	"renameat2":       {unix.SYS_RENAMEAT2, where{0, 1}},
	"linkat":          {unix.SYS_LINKAT, where{2, 3}},
}

// trapMain is a child that has its system calls trapped, hands the listener over descriptor 3, and becomes the child
// that the environment names next. The filter outlives the exec and holds for all threads then.
func trapMain() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var filter []unix.SockFilter
	filter = append(filter, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}) // the call's number
	for _, c := range trapped {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(c.nr), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without the last flag a signal of Go's scheduler would interrupt a call that is being answered.
	flags := unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return err
	}
	if err := os.Setenv(childEnv, os.Getenv(trapNextEnv)); err != nil {
		return err
	}
	return unix.Exec(os.Args[0], os.Args[:1], os.Environ())
}

const trapNextEnv = "GRANARY_TORTURE_TRAP_NEXT"
