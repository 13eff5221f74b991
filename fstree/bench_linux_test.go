package fstree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

func init() {
	contestants = append(contestants, struct {
		name string
		open func(b *testing.B, dir string, sync bool) func(blobstor.Address, []byte) error
	}{"rawfile", rawPuts})
}

// rawPuts is the floor: the system calls of a durable put by hand, into the same directories, with nothing around
// them but the arithmetic of the name.
func rawPuts(b *testing.B, dir string, sync bool) func(blobstor.Address, []byte) error {
	var dirs [256]int
	for n := range dirs {
		path := filepath.Join(dir, levelName(byte(n)))
		check(b, os.MkdirAll(path, 0o700))
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(b, err)
		check(b, unix.Fsync(fd))
		dirs[n] = fd
		b.Cleanup(func() { unix.Close(fd) })
	}
	return func(addr blobstor.Address, data []byte) error {
		p := placeOf([16]byte{}, addr)
		return rawPut(dirs[p.key>>56], p.name(), data, sync)
	}
}

func rawPut(dir int, name string, data []byte, sync bool) error {
	fd, err := unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if n, err := unix.Write(fd, data); err != nil || n < len(data) {
		return err
	}
	if sync {
		if err := unix.Fdatasync(fd); err != nil {
			return err
		}
	}
	if err := unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	if sync {
		return unix.Fsync(dir)
	}
	return nil
}

// spread asks ext4 to put the directories below root far from each other, and so far from what other cases have
// removed or filled. It is a hint.
func spread(root string) {
	f, err := os.Open(root)
	if err != nil {
		return
	}
	defer f.Close()
	const topdir = 0x00020000 // FS_TOPDIR_FL
	if flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topdir))
	}
}

func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// dropFile takes a synced file out of the page cache.
func dropFile(b *testing.B, path string) {
	f, err := os.Open(path)
	check(b, err)
	defer f.Close()
	check(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}
