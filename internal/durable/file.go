package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// ErrNotRegular is returned for a name that is not a regular file: a symbolic link, a directory, a pipe.
var ErrNotRegular = errors.New("not a regular file")

// File is an open regular file. It is as safe for concurrent use as an [os.File].
type File struct {
	o      *origin
	d      *Dir
	f      sysFile
	name   string
	size   int64 // when it was opened
	failed atomic.Pointer[error]
}

// access says how a file is opened.
type access uint8

const (
	readOnly  access = iota
	readWrite        // an existing file
	openOrNew        // for reading and writing, made if missing
	exclusive        // for reading and writing, made, and an error if it exists
)

// Open opens a file for reading.
func (d *Dir) Open(name string) (*File, error) { return d.open(name, readOnly) }

// OpenRW opens an existing file for reading and writing.
func (d *Dir) OpenRW(name string) (*File, error) { return d.open(name, readWrite) }

func (d *Dir) open(name string, how access) (*File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	op := OpOpen
	if how >= openOrNew {
		op = OpCreate
	}
	if err := d.o.before(op, d, name, nil); err != nil {
		return nil, err
	}
	f := &File{o: d.o, d: d, name: name}
	if err := d.h.open(name, how, f); err != nil {
		return nil, pathError("open", name, err)
	}
	d.o.after(op, d, name, f)
	return f, nil
}

// Name returns the name under which the file was opened, a name of its own if it has none.
func (f *File) Name() string { return f.name }

// OpenSize returns the length in bytes that the file had when it was opened, at no cost.
func (f *File) OpenSize() int64 { return f.size }

// Size returns the file's length in bytes.
func (f *File) Size() (int64, error) {
	size, err := f.f.size()
	return size, pathError("stat", f.name, err)
}

// Stat returns what the system knows of the file.
func (f *File) Stat() (fs.FileInfo, error) {
	info, err := f.f.stat()
	return info, pathError("stat", f.name, err)
}

// Same reports whether f and g are one file on the disk, opened twice or under two names.
func (f *File) Same(g *File) (bool, error) {
	a, errA := f.Stat()
	b, errB := g.Stat()
	if err := errors.Join(errA, errB); err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// ReadAt is as in [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.o.before(OpRead, f.d, f.name, f); err != nil {
		return 0, err
	}
	n, err := f.PeekAt(p, off)
	if err == nil {
		f.o.after(OpRead, f.d, f.name, f)
	}
	return n, err
}

// PeekAt is ReadAt behind the tap's back: a tap reads with it.
func (f *File) PeekAt(p []byte, off int64) (int, error) {
	n, err := f.f.readAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, pathError("read", f.name, err)
}

// WriteAt writes all of p at off. Short writes are continued.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if err := f.o.before(OpWrite, f.d, f.name, f); err != nil {
		return 0, err
	}
	n, err := f.f.writeAt(p, off)
	if err != nil {
		return n, pathError("write", f.name, err)
	}
	f.o.after(OpWrite, f.d, f.name, f)
	return n, nil
}

// Write writes all of p at the file's position, behind what Write has written before.
func (f *File) Write(p []byte) (int, error) {
	if err := f.o.before(OpWrite, f.d, f.name, f); err != nil {
		return 0, err
	}
	n, err := f.f.write(p)
	if err != nil {
		return n, pathError("write", f.name, err)
	}
	f.o.after(OpWrite, f.d, f.name, f)
	return n, nil
}

// Truncate sets the file's length in bytes.
func (f *File) Truncate(size int64) error {
	if err := f.o.before(OpTruncate, f.d, f.name, f); err != nil {
		return err
	}
	if err := f.f.truncate(size); err != nil {
		return pathError("truncate", f.name, err)
	}
	f.o.after(OpTruncate, f.d, f.name, f)
	return nil
}

// Datasync makes the file's bytes and length durable, but no name of it. After a failure this and every later
// call returns an error that matches blobstor.ErrFailed: what was written since the last good sync is lost.
func (f *File) Datasync() error {
	if err := f.Err(); err != nil {
		return err
	}
	err := f.o.before(OpSync, f.d, f.name, f)
	if err == nil {
		err = datasync(&f.f)
	}
	if err != nil {
		err = blobstor.Failed(pathError("sync", f.name, err))
		f.failed.Store(&err)
		return err
	}
	f.o.after(OpSync, f.d, f.name, f)
	return nil
}

// Err returns the error of a Datasync that failed, nil if none did.
func (f *File) Err() error {
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Preallocate reserves room for size bytes without changing the length, so that a full disk shows early. Where
// the system cannot do that it returns nil.
func (f *File) Preallocate(size int64) error {
	if err := f.o.before(OpWrite, f.d, f.name, f); err != nil {
		return err
	}
	if err := preallocate(&f.f, size); err != nil {
		return pathError("allocate", f.name, err)
	}
	f.o.after(OpWrite, f.d, f.name, f)
	return nil
}

// Reserve extends the file to size bytes that have room on the disk and read as zeros; what it has already it
// keeps, also if that is more. Later writes below size can then not meet a full disk, as far as the file system
// overwrites in place. Where the system cannot allocate, zeros are written. The length is durable after Datasync.
// After an error, which matches that of a write, the file may have any length up to size: discard it.
func (f *File) Reserve(size int64) error {
	if err := f.o.before(OpWrite, f.d, f.name, f); err != nil {
		return err
	}
	if err := reserve(&f.f, size); err != nil {
		return pathError("allocate", f.name, err)
	}
	f.o.after(OpWrite, f.d, f.name, f)
	return nil
}

// writeZeros extends the file to size by writing, in calls of 1 MiB.
func writeZeros(f *sysFile, size int64) error {
	done, err := f.size()
	zeros := make([]byte, min(max(size-done, 0), 1<<20))
	for err == nil && done < size {
		var n int
		n, err = f.writeAt(zeros[:min(size-done, int64(len(zeros)))], done)
		done += int64(n)
	}
	return err
}

// Busy reports whether a call is using the file right now: a hint for choosing which of many files to close. It is
// false where the system layer does not count.
func (f *File) Busy() bool { return f.f.busy() }

// Dup returns the same open file as one of the system's, for code that cannot do with less. It is the caller's to
// close, and what it does no Tap sees.
func (f *File) Dup() (*os.File, error) {
	file, err := f.f.dup(f.name)
	return file, pathError("open", f.name, err)
}

// dup returns a second descriptor of the open file.
func (f *sysFile) dup(name string) (file *os.File, err error) {
	err = f.do(func(fd int) error {
		again, err := dupFD(fd)
		if err == nil {
			file = os.NewFile(uintptr(again), name)
		}
		return err
	})
	return file, err
}

// Unlock gives up the lock that other code took on a file it got by Dup, and cannot give up itself.
func (f *File) Unlock() error { return pathError("unlock", f.name, unlock(&f.f)) }

// Close releases the file. It does not sync it.
func (f *File) Close() error { return pathError("close", f.name, f.f.close()) }
