package durable

import (
	"errors"
	"io/fs"
)

// The mark of a store is one empty file whose name says how the store was left. It is renamed, not made and removed,
// so that neither Open nor Close needs space on a full disk. Part of the format, never change.
const (
	MarkClean    = "clean"    // all is durable
	MarkDirty    = "dirty"    // open for writing, or was when the process died; what was acknowledged was synced
	MarkUnsynced = "unsynced" // the same, but nothing was synced
)

// OpenMark is the mark of a store that is open for writing.
func OpenMark(noSync bool) string {
	if noSync {
		return MarkUnsynced
	}
	return MarkDirty
}

// FindMark returns the mark that d has, the worst if there should be several, "" if there is none: then nobody knows
// more than under MarkUnsynced.
func (d *Dir) FindMark() (string, error) {
	for _, mark := range []string{MarkUnsynced, MarkDirty, MarkClean} {
		if _, err := d.Stat(mark); err == nil {
			return mark, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

// SetMark changes the mark that FindMark or the last SetMark found into another. When it returns nil that is durable,
// also if both are the same: a process that died may have set it and not come to the sync.
func (d *Dir) SetMark(from, to string) error {
	switch from {
	case "":
		return d.WriteFile(to, nil)
	case to:
		return d.Sync()
	}
	if err := d.Rename(from, to); err != nil {
		return err
	}
	return d.Sync()
}
