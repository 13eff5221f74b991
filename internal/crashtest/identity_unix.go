//go:build unix

package crashtest

import (
	"io/fs"
	"syscall"
)

// identity tells inodes apart.
type identity struct{ dev, ino uint64 }

func identify(info fs.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{uint64(st.Dev), st.Ino}
}
