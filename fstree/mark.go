package fstree

import "github.com/granary-store/granary/internal/durable"

// openMark makes the mark say, durably, that the store is open for writing. If it finds that the last open did
// not end with Close, it first makes durable what that one may have left in the system's cache.
func openMark(root *durable.Dir, noSync bool) (unclean bool, err error) {
	found, err := root.FindMark()
	if err != nil {
		return false, err
	}
	unclean = found != durable.MarkClean
	if unclean {
		if err := root.SyncAll(found != durable.MarkDirty); err != nil {
			return true, err
		}
	}
	return unclean, root.SetMark(found, durable.OpenMark(noSync))
}

// closeMark makes the mark say that all is durable, after making it so.
func closeMark(root *durable.Dir, noSync bool) error {
	if noSync {
		if err := root.SyncAll(true); err != nil {
			return err
		}
	}
	return root.SetMark(durable.OpenMark(noSync), durable.MarkClean)
}
