//go:build !linux || generic

package durable

import (
	"io/fs"
	"os"
	"syscall"
)

// sysFile is an open file.
type sysFile struct{ f *os.File }

func (f *sysFile) init(file *os.File) { f.f = file }

// do runs a call on the descriptor, again if a signal interrupts it.
func (f *sysFile) do(call func(fd int) error) error {
	conn, err := f.f.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var callErr error
		if conn.Control(func(fd uintptr) { callErr = call(int(fd)) }) != nil {
			return os.ErrClosed // Control has no other error.
		}
		if callErr != syscall.EINTR {
			return callErr
		}
	}
}

func (f *sysFile) busy() bool { return false }

func (f *sysFile) close() error { return f.f.Close() }

func (f *sysFile) readAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

func (f *sysFile) writeAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }

func (f *sysFile) write(p []byte) (int, error) { return f.f.Write(p) }

func (f *sysFile) truncate(size int64) error { return f.f.Truncate(size) }

func (f *sysFile) stat() (fs.FileInfo, error) { return f.f.Stat() }

func (f *sysFile) size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
