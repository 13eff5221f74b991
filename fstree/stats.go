package fstree

import (
	"sync/atomic"
	"time"
)

// Stats are figures since Open, but for Free.
type Stats struct {
	Puts    uint64 // blobs stored; those that were there already are not counted
	Deletes uint64 // blobs removed
	Healed  uint64 // damaged blobs replaced by a Put
	Corrupt uint64 // times that damage was met
	Swept   uint64 // stale temporaries removed
	Free    int64  // bytes that the file system can still take, -1 if it does not say
}

type counters struct{ puts, deletes, healed, corrupt, swept atomic.Uint64 }

// Stats returns a snapshot; after Close, that of Close, with no Free.
func (t *Tree) Stats() Stats {
	s := Stats{
		Puts:    t.count.puts.Load(),
		Deletes: t.count.deletes.Load(),
		Healed:  t.count.healed.Load(),
		Corrupt: t.count.corrupt.Load(),
		Swept:   t.count.swept.Load(),
		Free:    -1,
	}
	if t.calls.enter() != nil {
		return s
	}
	defer t.calls.leave()
	if free, err := t.store.Dir.Free(); err == nil {
		s.Free = free
	}
	return s
}

// clock is the time if a hook wants to know it.
func (t *Tree) clock() time.Time {
	if t.opts.Hooks.Commit == nil {
		return time.Time{}
	}
	return time.Now()
}

func (t *Tree) since(start time.Time) time.Duration {
	if start.IsZero() {
		return 0
	}
	return time.Since(start)
}

// committed tells the hook of a put: each is a commit of its own, and waited only for its turn on the address
// and the disk.
func (t *Tree) committed(bytes int64, start time.Time, synced time.Duration) {
	if hook := t.opts.Hooks.Commit; hook != nil {
		hook(1, bytes, time.Since(start)-synced, synced)
	}
}
