//go:build unix

package blobstor

import "syscall"

// EFBIG is what a write gets behind RLIMIT_FSIZE or the most that the file system gives a file: room is limited
// there as on a full disk.
var noSpaceErrnos = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
