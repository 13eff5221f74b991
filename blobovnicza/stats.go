package blobovnicza

import (
	"sync/atomic"
	"time"
)

// counters count since Open.
type counters struct {
	commits  atomic.Int64
	records  atomic.Int64
	syncTime atomic.Int64 // nanoseconds
	corrupt  atomic.Int64
	torn     atomic.Int64
}

// Stats is a snapshot of a store. Counts of events are since Open.
type Stats struct {
	Objects  int64 // stored blobs
	Live     int64 // bytes of their records
	Dead     int64 // bytes of records that newer ones replaced
	Reserved int64 // bytes zeroed ahead, for the next records
	Files    int
	Leaves   int

	Commits  int64
	Records  int64         // written by these commits; Records/Commits is the average batch
	SyncTime time.Duration // spent in syncs of data files

	Corrupt int64 // calls that met a damaged blob
	Torn    int64 // places of unfinished commits that Open skipped
	Lost    int   // damaged ranges whose addresses are unknown: misses in their leaves are ErrCorrupt
}

// Stats returns what the store counts. It may be called at any time, also after Close.
func (t *Tree) Stats() Stats {
	s := Stats{
		Leaves:   len(t.leaves),
		Commits:  t.commits.Load(),
		Records:  t.records.Load(),
		SyncTime: time.Duration(t.syncTime.Load()),
		Corrupt:  t.corrupt.Load(),
		Torn:     t.torn.Load(),
	}
	for _, l := range t.leaves {
		s.Reserved += l.reserved()
		s.Lost += len(l.lost)
		for _, f := range *l.files.Load() {
			s.Files++
			s.Objects += f.objects.Load()
			s.Live += f.live.Load()
			s.Dead += f.dead.Load()
		}
	}
	return s
}
