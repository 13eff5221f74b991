package fstree

import (
	"errors"
	"io/fs"

	"github.com/granary-store/granary/internal/durable"
)

// The mark is one empty file whose name says how the store was left. It is renamed, not made and removed, so that
// Open and Close need no space on a full disk.
const (
	markClean    = "clean"    // all is durable
	markDirty    = "dirty"    // open for writing, or was when the process died
	markUnsynced = "unsynced" // the same, and files were written without syncs
)

// openMark makes the mark say, durably, that the store is open for writing. If it finds that the last open did
// not end with Close, it first makes durable what that one may have left in the system's cache.
func openMark(root *durable.Dir, noSync bool) (unclean bool, err error) {
	found, err := findMark(root)
	if err != nil {
		return false, err
	}
	unclean = found != markClean
	if unclean {
		if err := root.SyncAll(found == markUnsynced); err != nil {
			return true, err
		}
	}
	open := markDirty
	if noSync {
		open = markUnsynced
	}
	switch found {
	case open:
		return unclean, nil
	case "":
		return unclean, root.WriteFile(open, nil)
	}
	return unclean, setMark(root, found, open)
}

// closeMark makes the mark say that all is durable, after making it so.
func closeMark(root *durable.Dir, noSync bool) error {
	open := markDirty
	if noSync {
		open = markUnsynced
		if err := root.SyncAll(true); err != nil {
			return err
		}
	}
	return setMark(root, open, markClean)
}

func setMark(root *durable.Dir, from, to string) error {
	if err := root.Rename(from, to); err != nil {
		return err
	}
	return root.Sync()
}

// findMark returns the mark's name, the worst if there should be several, "" if there is none.
func findMark(root *durable.Dir) (string, error) {
	for _, name := range []string{markUnsynced, markDirty, markClean} {
		f, err := root.Open(name)
		if err == nil {
			return name, f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}
