//go:build !unix

package blobstor

import "syscall"

// ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL and ERROR_FILE_TOO_LARGE of Windows.
var noSpaceErrnos = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.Errno(39), syscall.Errno(112), syscall.Errno(223),
}
