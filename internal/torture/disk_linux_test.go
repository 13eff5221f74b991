package torture

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// disk is a file that holds a file system, and where that is mounted.
type disk struct {
	t       *testing.T
	fs      string
	options string
	flags   uintptr // of the mount
	loop    string  // device
	image   string
	mount   string
}

// diskSizes are the least that each file system can live with, and a bit.
var diskSizes = map[string]int64{"ext4": 128 << 20, "xfs": 320 << 20}

// newDisk makes and mounts a file system in a sparse file, or skips the test where that is not possible.
func newDisk(t *testing.T, fs, options string, size int64, mkfs ...string) *disk {
	t.Helper()
	dir := fastDir(t)
	d := &disk{t: t, fs: fs, options: options, image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "mount")}
	must(t, os.Mkdir(d.mount, 0o700))
	must(t, os.WriteFile(d.image, nil, 0o600))
	must(t, os.Truncate(d.image, size))
	make := "mkfs." + fs
	if _, err := exec.LookPath(make); err != nil {
		t.Skipf("%s is needed: %v", make, err)
	}
	quiet := map[string][]string{"ext4": {"-q", "-F"}, "xfs": {"-q", "-f"}}[fs]
	if out, err := exec.Command(make, append(append(quiet, mkfs...), d.image)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", make, err, out)
	}
	if err := d.attach(); err != nil {
		t.Skipf("a loop device with %s is needed: %v", fs, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// attach mounts the file system through a loop device, which ends with the mount.
func (d *disk) attach() error {
	loop, err := attachLoop(d.image)
	if err != nil {
		return err
	}
	d.loop = loop.Name()
	err = unix.Mount(d.loop, d.mount, d.fs, d.flags, d.options)
	return errors.Join(err, loop.Close())
}

// detach unmounts the file system. Nobody uses it any more.
func (d *disk) detach() error { return unix.Unmount(d.mount, 0) }

// attachLoop gives a file to a free loop device, which is free again when it is neither open nor mounted.
func attachLoop(image string) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &config)
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if err != unix.EBUSY { // else another process was faster
			return nil, err
		}
	}
}
