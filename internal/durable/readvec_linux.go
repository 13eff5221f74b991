//go:build linux && !generic

package durable

import "golang.org/x/sys/unix"

func (f *sysFile) readVec(parts [][]byte, off int64) error {
	if err := f.use(); err != nil {
		return err
	}
	n, err := unix.Preadv(f.fd, parts, off)
	f.release()
	for _, p := range parts {
		n -= len(p)
	}
	if err == nil && n == 0 {
		return nil
	}
	return f.readEach(parts, off) // interrupted, short, or failed: the slow way finds out
}
