//go:build linux && !generic

package durable

import (
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// sysFile is an open file: a descriptor, which is closed when the last call that uses it has returned. An os.File
// costs three allocations, a finalizer and two system calls more at each open, which counts where each blob is a
// file.
type sysFile struct {
	fd     int
	users  atomic.Int32 // calls that use fd, and one for the file being open
	closed atomic.Bool
}

func (f *sysFile) init(fd int) {
	f.fd = fd
	f.users.Store(1)
}

// do runs a call on the descriptor, again if a signal interrupts it.
func (f *sysFile) do(call func(fd int) error) error {
	if err := f.use(); err != nil {
		return err
	}
	err := noEINTR(func() error { return call(f.fd) })
	f.release()
	return err
}

// use counts a caller in. The count falls to zero only after close, and is then sunk so deep that no later caller
// lifts it above zero; one that comes just before that keeps the file open until it leaves.
func (f *sysFile) use() error {
	if f.closed.Load() {
		return os.ErrClosed
	}
	if f.users.Add(1) > 0 {
		return nil
	}
	f.users.Add(-1)
	return os.ErrClosed
}

// release counts a caller out. The last one after close closes the descriptor, and there is nobody left to tell of
// an error: the file was synced or only read.
func (f *sysFile) release() {
	if f.leave() {
		_ = unix.Close(f.fd)
	}
}

// leave reports whether it was the last one.
func (f *sysFile) leave() bool { return f.users.Add(-1) == 0 && f.users.CompareAndSwap(0, sunk) }

const sunk = -1 << 30

func (f *sysFile) busy() bool { return f.users.Load() > 1 }

func (f *sysFile) close() error {
	if f.closed.Swap(true) {
		return os.ErrClosed
	}
	if f.leave() {
		return unix.Close(f.fd)
	}
	return nil
}

// all repeats a call that reads or writes until p is done. A call that does nothing has met the end.
func (f *sysFile) all(p []byte, call func(fd int, p []byte, done int) (int, error)) (done int, err error) {
	if err := f.use(); err != nil {
		return 0, err
	}
	defer f.release()
	for done < len(p) {
		n, err := call(f.fd, p[done:], done)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, err
		case n == 0:
			return done, io.EOF
		default:
			done += n
		}
	}
	return done, nil
}

func (f *sysFile) readAt(p []byte, off int64) (int, error) {
	return f.all(p, func(fd int, p []byte, done int) (int, error) { return unix.Pread(fd, p, off+int64(done)) })
}

func (f *sysFile) writeAt(p []byte, off int64) (int, error) {
	n, err := f.all(p, func(fd int, p []byte, done int) (int, error) { return unix.Pwrite(fd, p, off+int64(done)) })
	return n, noEOF(err)
}

func (f *sysFile) write(p []byte) (int, error) {
	n, err := f.all(p, func(fd int, p []byte, _ int) (int, error) { return unix.Write(fd, p) })
	return n, noEOF(err)
}

// noEOF names the end that a write meets.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrShortWrite
	}
	return err
}

func (f *sysFile) truncate(size int64) error {
	return f.do(func(fd int) error { return unix.Ftruncate(fd, size) })
}

func (f *sysFile) size() (int64, error) {
	var st unix.Stat_t
	err := f.do(func(fd int) error { return unix.Fstat(fd, &st) })
	return st.Size, err
}

// stat goes through an os.File, which knows how to say it.
func (f *sysFile) stat() (fs.FileInfo, error) {
	file, err := f.dup("file")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}
