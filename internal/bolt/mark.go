package bolt

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
	markUnsynced = "unsynced" // the same, and commits were not synced
)

// trust is how much Open believes the file, by the mark it finds.
type trust uint8

const (
	trustClosed  trust = iota // the last open ended with Close
	trustCommits              // it did not, but every commit was synced
	trustNothing              // commits were not synced, or there is no mark
)

// findMark returns the mark's name, the worst if there should be several, "" if there is none.
func findMark(d *durable.Dir) (string, trust, error) {
	for _, name := range []string{markUnsynced, markDirty, markClean} {
		_, err := d.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", trustNothing, err
		case name == markClean:
			return name, trustClosed, nil
		case name == markDirty:
			return name, trustCommits, nil
		}
		return name, trustNothing, nil
	}
	return "", trustNothing, nil
}

// openMark makes the mark say, durably, that the store is open for writing.
func openMark(d *durable.Dir, found string, noSync bool) error {
	open := openName(noSync)
	switch found {
	case open:
		return nil
	case "":
		return d.WriteFile(open, nil)
	}
	return setMark(d, found, open)
}

// closeMark makes the mark say that all is durable. The caller has made it so.
func closeMark(d *durable.Dir, noSync bool) error { return setMark(d, openName(noSync), markClean) }

func openName(noSync bool) string {
	if noSync {
		return markUnsynced
	}
	return markDirty
}

func setMark(d *durable.Dir, from, to string) error {
	if err := d.Rename(from, to); err != nil {
		return err
	}
	return d.Sync()
}
