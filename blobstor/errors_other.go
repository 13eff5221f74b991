//go:build !unix

package blobstor

import "syscall"

// ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL of Windows.
var noSpaceErrnos = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.Errno(39), syscall.Errno(112)}
