//go:build unix

package blobovnicza

import "golang.org/x/sys/unix"

// openLimit returns how many files the process may have open.
func openLimit() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 1024
	}
	return int(min(uint64(r.Cur), 1<<20))
}
