package blobovnicza

import "math"

// choose returns the file to compact next, nil if it is not worth it.
func (t *Tree) choose() *compaction {
	var best *compaction
	var dead, all int64
	for _, l := range t.leaves {
		if !l.open.Load() {
			continue
		}
		for _, f := range l.version.Load().files {
			dead += f.dead.Load()
			all += f.end.Load()
		}
		if c, _ := l.sparsest(); c != nil && (best == nil || c.ratio() > best.ratio()) {
			best = c
		}
	}
	if best == nil || !t.shortOfSpace() && float64(dead) < t.opts.Compact.DeadRatio*float64(all) {
		return nil
	}
	return best
}

// sparsest returns the compaction of the leaf's full file that has the largest part of dead bytes, nil if none gains
// more than the manifest takes that it costs. Roomless is the largest part of a file whose copies have no room.
func (l *leaf) sparsest() (best *compaction, roomless float64) {
	files := l.version.Load().files
	room := l.copyRoom()
	cost := int64(headerSize + manifestHead + manifestEntry*len(files))
	l.mu.Lock()
	complete := len(l.missing) == 0
	l.mu.Unlock()
	for i, f := range files[:len(files)-1] {
		c := &compaction{leaf: l, file: f, gain: f.dead.Load()}
		if i == 0 && complete { // nothing older needs its tombstones
			c.gain += f.tombstones.Load() * recordSize(kindTombstone, 0)
		}
		if f.objects.Load() == 0 && f.tombstones.Load() == 0 {
			c.gain = f.end.Load()
		}
		if f.flawed() || f.noIndex.Load() || c.gain <= cost {
			continue
		}
		if f.toCopy() > room {
			roomless = max(roomless, c.ratio())
			continue
		}
		if best == nil || c.ratio() > best.ratio() {
			best = c
		}
	}
	return best, roomless
}

// toCopy is how much compaction copies of the file, at most.
func (f *file) toCopy() int64 {
	return f.live.Load() + f.tombstones.Load()*recordSize(kindTombstone, 0)
}

// copyRoom is how much compaction can copy: if that is too little for a file, to begin would use the spare up for
// nothing.
func (l *leaf) copyRoom() int64 {
	free, err := l.tree.store.Dir.Free()
	if err != nil {
		return math.MaxInt64
	}
	return free + l.tree.spare.room() + l.reserved()
}
