package blobovnicza

const (
	// zeroSize is how much is zeroed at once. A sync after a write over zeroed space has no new length or blocks
	// to record, which saves it a commit of the file system's journal: a third of its time and more.
	zeroSize = 1 << 20

	// zeroBatch is the commit from which on zeroing ahead costs more than it saves.
	zeroBatch = 64 << 10

	// zeroLow is the rest of zeroed space that starts the next zeroing: a commit must still fit in it.
	zeroLow = zeroBatch

	// zeroLimit bounds what all leaves of a tree hold zeroed.
	zeroLimit = 64 << 20
)

var zeros [zeroSize]byte

// zeroAhead zeroes the space behind the end of the active file, and syncs it, if little of it is left and the last
// commit was small. The leader does so between two commits, when its own group was woken. A sync that fails is a
// failed sync, and the file is given up; without room nothing is zeroed until the next file.
func (l *leaf) zeroAhead() {
	f := l.held
	end := f.end.Load()
	size := min(zeroSize, zeroLimit/int64(len(l.tree.leaves))&^(zeroBatch-1))
	small := l.out.written > 0 && l.out.written < zeroBatch
	left := l.zeroed.Load() - end
	if !small || left > zeroLow || size == 0 || end+size > l.limit ||
		l.failed != nil || l.noRoom || l.tight || l.tree.opts.NoSync || l.tree.readOnly.Load() {
		return
	}
	from := max(end, l.zeroed.Load())
	if _, err := l.w.WriteAt(zeros[:size], from); err != nil {
		l.noRoom = true
		_ = l.w.Truncate(from) // a part of it helps nobody
		return
	}
	if err := l.w.Datasync(); err != nil {
		l.tree.log.Error("sync of zeroed space failed", "leaf", l.id, "file", f.number, "err", l.revoke(err))
		return
	}
	l.zeroed.Store(from + size)
}

// reserved is how much space lies zeroed behind the end of the active file.
func (l *leaf) reserved() int64 { return max(0, l.zeroed.Load()-l.active().end.Load()) }
