package blobovnicza

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// counters count since Open.
type counters struct {
	commits  atomic.Int64
	records  atomic.Int64
	syncTime atomic.Int64 // nanoseconds
	corrupt  atomic.Int64
	torn     atomic.Int64

	compacted      atomic.Int64
	moved          atomic.Int64
	healed         atomic.Int64
	falsePositives atomic.Int64
	batches        [11]atomic.Int64 // by the binary logarithm of their number of records
}

// Stats is a snapshot of a store. Counts of events are since Open.
type Stats struct {
	Objects  int64 // stored blobs
	Live     int64 // bytes of their records
	Dead     int64 // bytes of records that newer ones replaced
	Used     int64 // bytes of all files, set aside ones included
	Reserved int64 // bytes zeroed ahead, for the next records
	Files    int
	Leaves   int

	Commits  int64
	Records  int64         // written by these commits; Records/Commits is the average batch
	SyncTime time.Duration // spent in syncs of data files

	// Batches counts the commits by how many records they wrote: 1, 2 to 3, 4 to 7, ..., 1024 and more.
	Batches [11]int64

	Compacted int64 // files whose space was given back
	Moved     int64 // bytes of live records that were copied for that
	Flawed    int   // files that must stay because blobs in them are damaged

	Open           int   // files that are open
	Evictions      int64 // closed to make room for others
	Healed         int64 // index files that were damaged and made again
	FalsePositives int64 // look-ups in index files that found nothing

	Corrupt int64 // calls that met a damaged blob
	Torn    int64 // places of unfinished commits that Open skipped
	Lost    int   // damaged ranges whose addresses are unknown: misses in their leaves are ErrCorrupt
}

// Stats returns what the store counts, for which it opens leaves that were not used yet. It may be called at any
// time, also after Close.
func (t *Tree) Stats() Stats {
	s := Stats{
		Leaves:   len(t.leaves),
		Commits:  t.commits.Load(),
		Records:  t.records.Load(),
		SyncTime: time.Duration(t.syncTime.Load()),
		Corrupt:  t.corrupt.Load(),
		Torn:     t.torn.Load(),

		Compacted:      t.compacted.Load(),
		Moved:          t.moved.Load(),
		Healed:         t.healed.Load(),
		FalsePositives: t.falsePositives.Load(),
		Open:           t.handles.len(),
		Evictions:      t.handles.evictions.Load(),
		Used:           t.used.Load(),
	}
	for i := range s.Batches {
		s.Batches[i] = t.batches[i].Load()
	}
	if call, err := t.calls.enter(context.Background(), &blobstor.Address{}); err == nil { // else the store is closed
		defer call.RUnlock()
		for _, l := range t.leaves {
			_ = l.use() // one that cannot be opened counts nothing
		}
	}
	for _, l := range t.leaves {
		l.addStats(&s)
	}
	return s
}

func (l *leaf) addStats(s *Stats) {
	if !l.open.Load() {
		return
	}
	v := l.version.Load()
	s.Reserved += l.reserved()
	s.Lost += int(l.losses.Load())
	for _, f := range v.files {
		s.Files++
		s.Objects += f.objects.Load()
		s.Live += f.live.Load()
		s.Dead += f.dead.Load()
		if f.flawed() {
			s.Flawed++
		}
	}
}
