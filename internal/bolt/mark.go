package bolt

import "github.com/granary-store/granary/internal/durable"

const (
	markClean    = durable.MarkClean
	markDirty    = durable.MarkDirty
	markUnsynced = durable.MarkUnsynced
)

// trust is how much Open believes the file, by the mark it finds.
type trust uint8

const (
	trustClosed  trust = iota // the last open ended with Close
	trustCommits              // it did not, but every commit was synced
	trustNothing              // commits were not synced, or there is no mark
)

// findMark returns the mark of the store, "" if there is none.
func findMark(d *durable.Dir) (string, trust, error) {
	found, err := d.FindMark()
	switch found {
	case markClean:
		return found, trustClosed, nil
	case markDirty:
		return found, trustCommits, nil
	}
	return found, trustNothing, err
}

// openMark makes the mark say, durably, that the store is open for writing.
func openMark(d *durable.Dir, found string, noSync bool) error {
	return d.SetMark(found, durable.OpenMark(noSync))
}

// closeMark makes the mark say that all is durable. The caller has made it so.
func closeMark(d *durable.Dir, noSync bool) error {
	return d.SetMark(durable.OpenMark(noSync), markClean)
}
