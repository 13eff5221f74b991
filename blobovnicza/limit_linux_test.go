//go:build linux

package blobovnicza

import (
	"testing"

	"golang.org/x/sys/unix"
)

// limitFiles bounds how many files the process may have open.
func limitFiles(t *testing.T, n uint64) {
	t.Helper()
	r := unix.Rlimit{Cur: n, Max: n}
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &r))
}
