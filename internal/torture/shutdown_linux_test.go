package torture

import (
	"errors"
	"fmt"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// TestSyncAfterShutdown: a file system stops between a change and its sync, as XFS does after an error in its log. The
// sync must not succeed, whatever the kernel says.
func TestSyncAfterShutdown(t *testing.T) {
	if !isolated(t) {
		return
	}
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			report(t, "T6", func() string { return fmt.Sprintf("a sync after %s has stopped", fs) })
			d := newDisk(t, fs, "", diskSizes[fs])
			dir, err := durable.OpenDir(d.mount, nil)
			must(t, err)
			defer dir.Close()
			must(t, dir.WriteFile("a", []byte("durable")))
			temp, err := dir.Temp()
			must(t, err)
			defer temp.Close()
			must(t, temp.Datasync())
			must(t, temp.Link("b"))
			must(t, cutPower(d.mount, false))
			if err := dir.Sync(); !errors.Is(err, blobstor.ErrFailed) {
				t.Errorf("sync of the directory: %v", err)
			}
			if _, err := temp.WriteAt([]byte("lost"), 0); err == nil {
				err = temp.Datasync()
				if !errors.Is(err, blobstor.ErrFailed) {
					t.Errorf("sync of the file: %v", err)
				}
			}
		})
	}
}
