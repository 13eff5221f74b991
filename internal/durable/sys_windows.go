package durable

import (
	"os"

	"golang.org/x/sys/windows"
)

const nonBlock = 0

// syncDir does nothing: Windows has no sync for directories.
func syncDir(*os.File) error { return nil }

// freeSpace returns how many bytes an unprivileged program can still write.
func freeSpace(dir *os.File) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir.Name())
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}

func dupFD(fd int) (int, error) {
	self := windows.CurrentProcess()
	var again windows.Handle
	err := windows.DuplicateHandle(self, windows.Handle(fd), self, &again, 0, false, windows.DUPLICATE_SAME_ACCESS)
	return int(again), err
}
