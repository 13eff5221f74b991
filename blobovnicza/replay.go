package blobovnicza

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// endsSynced reports whether the last bytes of the file are a manifest that was written when all before it was
// synced. The first record proves nothing: it is written before the file has a name.
func (s *scan) endsSynced(size int64) bool {
	if len(s.records) < 2 || s.end != size {
		return false
	}
	last := &s.records[len(s.records)-1]
	return last.kind == kindManifest && last.synced == last.off
}

// settleFull fixes the end of a full file that was scanned: its successor's manifest says what was synced, so all
// that is missing before it is damage.
func (f *found) settleFull(end int64) {
	f.scan.cut(end)
	if f.scan.end < end {
		f.scan.holes = append(f.scan.holes, span{f.scan.end, end})
	}
	f.end.Store(end)
	for _, hole := range f.scan.holes {
		f.leaf.lose(f.number, hole, "records are damaged")
		f.noIndex.Store(true)
	}
}

// isNew reports whether the file has only the manifest that was synced before it got its name.
func (s *scan) isNew(size int64) bool {
	return len(s.records) == 1 && s.records[0].kind == kindManifest && s.records[0].off == 0 && s.end == size
}

// cut forgets the records behind end.
func (s *scan) cut(end int64) {
	kept := len(s.records)
	for kept > 0 && s.records[kept-1].off+s.records[kept-1].size() > end {
		kept--
	}
	if kept < len(s.records) {
		s.keep(s.records[:kept])
	}
}

// keep accepts only the given ones of the records.
func (s *scan) keep(records []scanned) {
	*s = scan{start: s.start, end: s.start, proven: s.proven, commit: s.commit, records: records[:0]}
	for _, rec := range records {
		commit := s.commit
		s.accept(rec.header, rec.off)
		s.commit = commit
	}
}

// settleActive finds the end of the active file. Behind what later records prove synced, a hole or a damaged
// payload is a torn commit or damage to the last one, which nothing can tell apart: whole records behind it are
// kept, a void takes the hole's place, and what follows the last record is cut off.
func (l *leaf) settleActive(f *found) error {
	s := f.scan
	proven, _ := slices.BinarySearchFunc(s.records, s.proven, func(rec scanned, off int64) int { return cmp.Compare(rec.off, off) })
	last, err := f.whole(s.records[proven:])
	if err != nil {
		return err
	}
	if proven+len(last) < len(s.records) {
		s.keep(append(slices.Clone(s.records[:proven]), last...))
	}
	if s.end == 0 { // not even the manifest that it was named with: nothing here can be told
		s.end = f.size
		s.holes = []span{{0, f.size}}
	}
	changed := s.end < f.size
	for _, hole := range s.holes {
		if hole.from < s.proven || hole.from == 0 {
			l.lose(f.number, hole, "records are damaged")
			f.noIndex.Store(true)
			continue
		}
		l.tree.torn.Add(1)
		l.tree.log.Warn("torn commit skipped", "leaf", l.id, "file", f.number, "from", hole.from, "to", hole.to)
		f.dead.Add(hole.to - hole.from)
		changed = true
		if err := l.void(f, hole); err != nil {
			return err
		}
	}
	f.end.Store(s.end)
	l.tree.used.Add(s.end - f.size)
	l.unproven = len(s.records) > 0 && s.records[len(s.records)-1].kind != kindManifest || s.end == 0
	l.commit, l.synced, l.nextNumber = s.commit, s.end, f.number+1
	if !changed || l.tree.opts.ReadOnly {
		return nil
	}
	return l.cutTail(f)
}

// cutTail removes what lies behind the end of the active file. Zeros in which there are no records stay: a full disk
// may have no other space for deletes.
func (l *leaf) cutTail(f *found) error {
	data, err := f.data.pin()
	if err != nil {
		return err
	}
	defer f.data.unpin()
	blank, err := isZero(&scanner{f: f.file, size: f.size}, f.end.Load())
	if err != nil {
		return err
	}
	if blank {
		l.zeroed.Store(f.size)
	} else if err := data.Truncate(f.end.Load()); err != nil {
		return err
	}
	return data.Datasync()
}

// settleShort gives the active file up if its index file proves that there was more of it. The next file's manifest
// says where it ended, so that the loss is not forgotten.
func (l *leaf) settleShort(f *found) {
	end := f.end.Load()
	if f.owed <= end {
		return
	}
	l.lose(f.number, span{end, f.owed}, "file is shorter than its index")
	f.noIndex.Store(true)
	f.end.Store(f.owed)
	l.giveUp(errShort)
}

// isZero reports whether a file has nothing but zeros from off on.
func isZero(s *scanner, off int64) (bool, error) {
	for off < s.size {
		b, err := s.window(off, 1)
		if err != nil || !bytes.Equal(b, zeros[:len(b)]) {
			return false, err
		}
		off += int64(len(b))
	}
	return true, nil
}

// whole returns those of the records whose payloads are whole. One that cannot be read is an error: it is not to be
// taken for torn, and cut off.
func (f *file) whole(records []scanned) (whole []scanned, err error) {
	for i := range records {
		err := f.verify(&records[i])
		if err != nil && !notWhole(err) {
			return nil, err
		}
		if err == nil {
			whole = append(whole, records[i])
		}
	}
	return whole, nil
}

// verify reads the payload of a record.
func (f *file) verify(rec *scanned) (err error) {
	switch rec.kind {
	case kindVoid:
		return nil
	case kindManifest:
		_, err = f.readManifest(rec.off)
	default:
		r := reading{addr: rec.address, mode: modeVerify}
		err = f.read(rec.off, rec.length, &r)
	}
	return err
}

// notWhole reports whether err says what is there, and not that nobody could look.
func notWhole(err error) bool {
	return errors.Is(err, blobstor.ErrCorrupt) || errors.Is(err, errNoRecord)
}

// void writes a void over a hole, not yet synced. It proves nothing of what lies before it.
func (l *leaf) void(f *found, hole span) error {
	if l.tree.opts.ReadOnly {
		return nil
	}
	var before uint64
	if f.table != nil {
		before = f.table.commit
	}
	h := f.scan.void(hole, before)
	data, err := f.data.pin()
	if err != nil {
		return err
	}
	defer f.data.unpin()
	f.records.Add(1)
	_, err = data.WriteAt(appendHeader(nil, &h, f.seed, hole.from), hole.from)
	return err
}

// index makes the scanned records of a file visible, in order. The counters of other files follow from where they are
// known: all along, or behind the manifest that counts them.
func (l *leaf) index(files []*file, f *found, all bool) {
	if f.table == nil {
		f.recent().expect(len(f.scan.records))
	}
	for i := range f.scan.records {
		rec := &f.scan.records[i]
		f.records.Add(1)
		switch rec.kind {
		case kindVoid:
			f.dead.Add(rec.size())
		case kindPut, kindTombstone:
			key := l.tree.sortKey(rec.address)
			l.apply(files, f.file, key, &rec.header, rec.off, all || rec.off > f.manifest.Load())
		}
	}
	f.commit.Store(f.scan.commit)
	l.commit = max(l.commit, f.scan.commit)
}

// lose notes damage whose addresses are unknown: from now on a miss in this leaf proves nothing.
func (l *leaf) lose(number uint32, s span, why string) {
	l.mu.Lock()
	l.lost = append(l.lost, lostSpan{number, s})
	l.mu.Unlock()
	l.losses.Add(1)
	err := fmt.Errorf("%w: leaf %d, file %d, from %d to %d: %s", blobstor.ErrCorrupt, l.id, number, s.from, s.to, why)
	l.tree.log.Error("addresses are lost", "err", err)
	l.tree.tellFault("open", err)
}
