package torture

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ioctlShutdown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, which are one number. The file system stops as if its disk
// had been pulled: with noLogFlush not even its own journal reaches the disk any more.
const (
	ioctlShutdown = 0x8004587d
	logFlush      = 1
	noLogFlush    = 2
)

// cutPower cuts the power of the file system that is mounted there.
func cutPower(mount string, flush bool) error {
	f, err := os.Open(mount)
	if err != nil {
		return err
	}
	how := noLogFlush
	if flush {
		how = logFlush
	}
	return errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, how), f.Close())
}
