//go:build !generic

package durable

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// TestSyncAsksWhetherAlive: the sync of a directory succeeds and the look-up of an attribute does not, as on an XFS that
// has stopped. That is a failed sync. Any other answer, such as that there are no attributes, is none.
func TestSyncAsksWhetherAlive(t *testing.T) {
	for no, want := range map[unix.Errno]error{
		unix.EIO: blobstor.ErrFailed, unix.ENODATA: nil, unix.EOPNOTSUPP: nil, unix.EACCES: nil, unix.EPERM: nil,
	} {
		d, err := OpenDir(t.TempDir(), nil)
		check(t, err)
		defer d.Close()
		check(t, d.Sync())
		done := make(chan error)
		var refused error
		go func() {
			runtime.LockOSThread() // It ends with the goroutine, and the filter with it.
			if refused = refuse(unix.SYS_FGETXATTR, no); refused != nil {
				done <- nil
				return
			}
			done <- d.Sync()
		}()
		got := <-done
		if refused != nil {
			t.Skipf("system calls cannot be refused: %v", refused)
		}
		if !errors.Is(got, want) || want != nil && !errors.Is(got, no) {
			t.Errorf("%v: %v, want %v", no, got, want)
		}
	}
}

// refuse has all calls of a number fail in this thread from now on.
func refuse(call uint32, no unix.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(no)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
