package blobovnicza

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// smallFS mounts a file system of that size, which is unmounted when the test ends.
func smallFS(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("granary-test", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no tmpfs here: %v", err)
	}
	t.Cleanup(func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}
