package fstree

import (
	"sync/atomic"
	"time"
)

// Stats are figures since Open, but for the last four. How many blobs there are is not known without a walk.
type Stats struct {
	Puts     uint64        // blobs stored; those that were there already are not counted
	Deletes  uint64        // blobs removed
	Healed   uint64        // damaged blobs replaced by a Put
	Corrupt  uint64        // times that damage was met
	Swept    uint64        // stale temporaries removed
	SyncTime time.Duration // that puts spent in making blobs and names durable, summed over callers

	Scrubbed      uint64 // blobs that Scrub has read whole and right
	ScrubbedBytes uint64 // read by Scrub
	Moved         uint64 // blobs that Reshape has moved

	Evictions uint64 // directories closed to make room for others

	Open     int   // directories that are open, without the root
	Depth    int   // of the directories that new blobs go to
	OldDepth int   // of those that a Reshape has to empty; -1 if it has ended, or none began
	Free     int64 // bytes that the file system can still take, -1 if it does not say
}

type counters struct {
	puts, deletes, healed, corrupt, swept  atomic.Uint64
	scrubbed, scrubbedBytes, moved, syncNS atomic.Uint64
}

// Stats returns a snapshot; after Close, that of Close, with no Free.
func (t *Tree) Stats() Stats {
	l := t.layout.Load()
	s := Stats{
		Puts:     t.count.puts.Load(),
		Deletes:  t.count.deletes.Load(),
		Healed:   t.count.healed.Load(),
		Corrupt:  t.count.corrupt.Load(),
		Swept:    t.count.swept.Load(),
		SyncTime: time.Duration(t.count.syncNS.Load()),

		Scrubbed:      t.count.scrubbed.Load(),
		ScrubbedBytes: t.count.scrubbedBytes.Load(),
		Moved:         t.count.moved.Load(),

		Depth:    l.depth,
		OldDepth: l.old,
		Free:     -1,
	}
	s.Open, s.Evictions = t.dirs.stats()
	if t.calls.enter() != nil {
		return s
	}
	defer t.calls.leave()
	if free, err := t.store.Dir.Free(); err == nil {
		s.Free = free
	}
	return s
}

// committed counts the time of a put and tells the hook: each is a commit of its own, and waited only for its turn on
// the address and the disk.
func (t *Tree) committed(bytes int64, start time.Time, synced time.Duration) {
	t.count.syncNS.Add(uint64(synced))
	if hook := t.opts.Hooks.Commit; hook != nil {
		hook(1, bytes, time.Since(start)-synced, synced)
	}
}
