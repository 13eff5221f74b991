package torture

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's structures of seccomp user notification.
type seccompData struct {
	nr   int32
	arch uint32
	ip   uint64
	args [6]uint64
}

type seccompNotif struct {
	id    uint64
	pid   uint32
	flags uint32
	data  seccompData
}

type seccompResp struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// fault says which system call fails, and how.
type fault struct {
	Call    string
	N       int // how many of these succeed before
	Errno   syscall.Errno
	Short   bool // instead: only half of it is done
	Forever bool // all later ones fail too
}

// trap answers for the system calls of a child, those that are about files below root.
type trap struct {
	listener int
	pidfd    int // of the child
	root     string
	names    map[int32]string

	armed  atomic.Bool // else all calls succeed and none counts
	mu     sync.Mutex  // guards what is below
	fault  *fault
	counts map[string]int // calls since the fault was armed
	hits   int            // of the fault
}

// newTrap receives the listener from a child that runs trapMain.
func newTrap(socket, pid int, root string) (*trap, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, 0)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("the child has sent no listener"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	t := &trap{listener: fds[0], pidfd: pidfd, root: root, names: map[int32]string{}, counts: map[string]int{}}
	for name, c := range trapped {
		t.names[c.nr] = name
	}
	return t, nil
}

// arm begins to count, and lets the fault happen unless it is nil.
func (t *trap) arm(f *fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.counts, t.hits = f, map[string]int{}, 0
	t.armed.Store(true)
}

// disarm lets all calls succeed and returns what was counted.
func (t *trap) disarm() (counts map[string]int, hits int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = nil
	t.armed.Store(false)
	return t.counts, t.hits
}

// serve answers until the child is gone.
func (t *trap) serve() {
	defer unix.Close(t.listener)
	defer unix.Close(t.pidfd)
	// The child goes on where the answer was given, without a wait for another processor. Old kernels cannot do that.
	_, _, _ = syscall.Syscall(unix.SYS_IOCTL, uintptr(t.listener), notifSetFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		var n seccompNotif
		err := ioctl(t.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		if err != nil && abandoned(t.listener) {
			return
		}
		if err != nil {
			continue // the call was given up
		}
		r := t.answer(&n)
		_ = ioctl(t.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // or its thread is dead
	}
}

// notifSetFlags is SECCOMP_IOCTL_NOTIF_SET_FLAGS.
const notifSetFlags = 0x40082104

// abandoned reports whether nobody is trapped any more.
func abandoned(listener int) bool {
	poll := []unix.PollFd{{Fd: int32(listener)}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&unix.POLLHUP != 0
}

func ioctl(fd int, how uint, arg unsafe.Pointer) error {
	for {
		_, _, errno := syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(how), uintptr(arg))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// answer decides about a call.
func (t *trap) answer(n *seccompNotif) seccompResp {
	f := t.turn(n)
	switch {
	case f == nil:
		return seccompResp{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	case f.Short:
		if done, ok := t.doHalf(n); ok {
			return seccompResp{id: n.id, val: int64(done)}
		}
		return seccompResp{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	}
	return seccompResp{id: n.id, error: -int32(f.Errno)}
}

// turn counts a call and returns the fault if it is to happen now.
func (t *trap) turn(n *seccompNotif) *fault {
	name := t.names[n.data.nr]
	if !t.armed.Load() || !strings.HasPrefix(callPath(n, trapped[name].where), t.root) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[name]++
	f := t.fault
	if f == nil || f.Call != name || t.counts[name] <= f.N || t.hits > 0 && !f.Forever {
		return nil
	}
	t.hits++
	return f
}

// callPath returns the path of the file or directory that a call is about, "" if it is about none.
func callPath(n *seccompNotif, w where) string {
	fd := int32(n.data.args[w.fd])
	path := ""
	if w.path >= 0 {
		path = readString(n.pid, uintptr(n.data.args[w.path]))
	}
	if strings.HasPrefix(path, "/") || fd < 0 {
		return path
	}
	link, err := os.Readlink("/proc/" + strconv.Itoa(int(n.pid)) + "/fd/" + strconv.Itoa(int(fd)))
	if err != nil {
		return ""
	}
	return link
}

// readString reads a string of another process; it is short or begins with what matters.
func readString(pid uint32, addr uintptr) string {
	b := make([]byte, 256)
	n := copyFrom(pid, addr, b[:256-addr%256]) // not into a page that may not be there
	s, _, _ := strings.Cut(string(b[:n]), "\x00")
	return s
}

func copyFrom(pid uint32, addr uintptr, b []byte) int {
	local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	n, err := unix.ProcessVMReadv(int(pid), []unix.Iovec{local}, []unix.RemoteIovec{{Base: addr, Len: len(b)}}, 0)
	if err != nil {
		return 0
	}
	return n
}

// doHalf does half of a read or write for the child. It reports false if there is no half.
func (t *trap) doHalf(n *seccompNotif) (done int, ok bool) {
	a := &n.data.args
	b := make([]byte, a[2]/2)
	fd, err := unix.PidfdGetfd(t.pidfd, int(a[0]), 0) // the same open file, position included
	if err != nil || len(b) == 0 {
		return 0, false
	}
	defer unix.Close(fd)
	switch n.data.nr {
	case unix.SYS_PREAD64:
		if done, err = unix.Pread(fd, b, int64(a[3])); err != nil || done == 0 {
			return 0, false
		}
		local, remote := unix.Iovec{Base: &b[0], Len: uint64(done)}, unix.RemoteIovec{Base: uintptr(a[1]), Len: done}
		_, err = unix.ProcessVMWritev(int(n.pid), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		return done, err == nil
	case unix.SYS_PWRITE64, unix.SYS_WRITE:
		if copyFrom(n.pid, uintptr(a[1]), b) != len(b) {
			return 0, false
		}
		if n.data.nr == unix.SYS_WRITE {
			done, err = unix.Write(fd, b)
		} else {
			done, err = unix.Pwrite(fd, b, int64(a[3]))
		}
		return done, err == nil
	}
	return 0, false
}
