package blobovnicza

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// openLeaf replays a leaf: every file that the newest manifest lists, then the active one.
func openLeaf(t *Tree, id uint16, dir *durable.Dir) (*leaf, error) {
	l := &leaf{tree: t, id: id, dir: dir}
	files, err := l.openFiles()
	if err != nil {
		return nil, err
	}
	l.files.Store(&files)
	if err := l.replay(files); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	return l, nil
}

// openFiles opens the data files in the order of their numbers, and makes their names durable: a killed process may
// not have come to that.
func (l *leaf) openFiles() (files []*file, err error) {
	names, err := l.dir.Names()
	if err != nil {
		return nil, err
	}
	if !l.tree.readOnly.Load() {
		if err := l.dir.Sync(); err != nil {
			return nil, err
		}
	}
	slices.Sort(names) // fixed-width digits: the order of numbers
	for _, name := range names {
		number, ok := parseDataName(name)
		if !ok {
			continue
		}
		f := &file{number: number, seed: fileSeed(l.tree.storeID, l.id, number)}
		if f.f, err = l.openData(name); err != nil {
			for _, f := range files {
				f.f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (l *leaf) openData(name string) (*durable.File, error) {
	if l.tree.readOnly.Load() {
		return l.dir.Open(name)
	}
	return l.dir.OpenRW(name)
}

func (l *leaf) closeFiles() (err error) {
	for _, f := range *l.files.Load() {
		if f.f != nil {
			err = errors.Join(err, f.f.Close())
		}
	}
	return err
}

// replay builds the indexes and counters, and leaves the active file ready for the next record.
func (l *leaf) replay(files []*file) error {
	scans := make([]*scan, len(files))
	for i, f := range files {
		var err error
		if scans[i], err = l.scan(f); err != nil {
			return err
		}
	}
	list, complete := newestManifest(files, scans)
	files, scans, err := l.reconcile(files, scans, list, complete)
	if err != nil {
		return err
	}
	active := len(files) - 1
	if orphaned(files, list) {
		active++
	}
	for i, f := range files[:active] {
		l.settleFull(f, scans[i], list)
		l.index(files, f, scans[i])
	}
	if active == len(files) {
		l.adopt(files)
		return nil
	}
	if err := l.settleActive(files[active], scans[active]); err != nil {
		return err
	}
	l.index(files, files[active], scans[active])
	l.limit = l.fileLimit(files)
	if !complete {
		l.giveUp(errNoManifest)
	}
	return nil
}

// scan reads the headers of a file. Unless a manifest at its end proves that all was synced, what a killed process
// left in the page cache is made durable first and then read from the disk, so that it is neither lost later nor
// trusted.
func (l *leaf) scan(f *file) (*scan, error) {
	size, err := f.f.Size()
	if err != nil {
		return nil, err
	}
	f.end.Store(size)
	s, err := scanFile(f, size)
	if err != nil || l.tree.readOnly.Load() || s.endsSynced(size) {
		return s, err
	}
	if err := f.f.Datasync(); err != nil {
		return nil, err
	}
	f.f.DropCache()
	return scanFile(f, size)
}

// endsSynced reports whether the last bytes of the file are a manifest that was written when all before it was
// synced. The first record proves nothing: it is written before the file has a name.
func (s *scan) endsSynced(size int64) bool {
	if len(s.records) < 2 || s.end != size {
		return false
	}
	last := &s.records[len(s.records)-1]
	return last.kind == kindManifest && last.synced == last.off
}

// newestManifest returns what the newest valid manifest lists; complete says that it stands in the newest file,
// so that it speaks of all the others.
func newestManifest(files []*file, scans []*scan) (list []listed, complete bool) {
	for i := len(files) - 1; i >= 0; i-- {
		for _, rec := range slices.Backward(scans[i].records) {
			if rec.kind != kindManifest {
				continue
			}
			if list, err := files[i].readManifest(&rec); err == nil {
				return list, i == len(files)-1
			}
		}
	}
	return nil, false
}

// reconcile drops what the manifest no longer lists and notes what is listed and missing. Without a complete
// manifest nothing is dropped, and an unknown file may be missing.
func (l *leaf) reconcile(files []*file, scans []*scan, list []listed, complete bool) ([]*file, []*scan, error) {
	var newest uint32
	if len(files) > 0 {
		newest = files[len(files)-1].number
	}
	keep, keepScans := files[:0:0], scans[:0:0]
	for i, f := range files {
		_, isListed := find(list, f.number)
		if complete && !isListed && f.number != newest {
			f.f.Close()
			if !l.tree.readOnly.Load() {
				if err := l.dir.Remove(dataName(f.number)); err != nil {
					return nil, nil, err
				}
			}
			continue
		}
		keep, keepScans = append(keep, f), append(keepScans, scans[i])
	}
	l.files.Store(&keep)
	for _, e := range list {
		if byNumber(keep, e.number) == nil {
			l.missing = append(l.missing, e)
			l.lose(e.number, span{0, e.end}, "listed file is missing")
		}
	}
	if !complete {
		l.lose(newest, span{}, "manifest is damaged")
	}
	return keep, keepScans, nil
}

func find(list []listed, number uint32) (listed, bool) {
	i, ok := slices.BinarySearchFunc(list, number, func(e listed, n uint32) int { return cmp.Compare(e.number, n) })
	if !ok {
		return listed{}, false
	}
	return list[i], true
}

// settleFull fixes the end of a full file: what its successor's manifest says was synced, so all that is missing
// before it is damage.
func (l *leaf) settleFull(f *file, s *scan, list []listed) {
	end := s.end
	if e, ok := find(list, f.number); ok {
		end = e.end
		s.cut(end)
		if s.end < end {
			s.holes = append(s.holes, span{s.end, end})
		}
	}
	f.end.Store(end)
	for _, hole := range s.holes {
		l.lose(f.number, hole, "records are damaged")
	}
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
	*s = scan{proven: s.proven, commit: s.commit, records: records[:0]}
	for _, rec := range records {
		commit := s.commit
		s.accept(rec.header, rec.off)
		s.commit = commit
	}
}

// settleActive finds the end of the active file. Behind what later records prove synced, a hole or a damaged
// payload is a torn commit or damage to the last one, which nothing can tell apart: whole records behind it are
// kept, a void takes the hole's place, and what follows the last record is cut off.
func (l *leaf) settleActive(f *file, s *scan) error {
	size := f.end.Load()
	whole := s.records[:0:0]
	for _, rec := range s.records {
		if rec.off < s.proven || f.verify(&rec) {
			whole = append(whole, rec)
		}
	}
	if len(whole) < len(s.records) {
		s.keep(whole)
	}
	if len(s.records) == 0 { // not even the manifest that it was named with: nothing here can be told
		s.end = size
		s.holes = []span{{0, size}}
	}
	changed := s.end < size
	for _, hole := range s.holes {
		if short := hole.to-hole.from < headerSize; short || hole.from < s.proven || hole.from == 0 {
			l.lose(f.number, hole, "records are damaged")
			continue
		}
		l.tree.torn.Add(1)
		l.tree.log.Warn("torn commit skipped", "leaf", l.id, "file", f.number, "from", hole.from, "to", hole.to)
		f.dead.Add(hole.to - hole.from)
		changed = true
		if err := l.void(f, s, hole); err != nil {
			return err
		}
	}
	f.end.Store(s.end)
	l.unproven = len(s.records) == 0 || s.records[len(s.records)-1].kind != kindManifest
	l.commit, l.synced, l.next = s.commit, s.end, f.number+1
	if !changed || l.tree.readOnly.Load() {
		return nil
	}
	if err := f.f.Truncate(s.end); err != nil {
		return err
	}
	return f.f.Datasync()
}

// verify reports whether the payload of a record is whole.
func (f *file) verify(rec *scanned) bool {
	if rec.kind == kindManifest {
		_, err := f.readManifest(rec)
		return err == nil
	}
	if rec.kind == kindVoid {
		return true
	}
	r := reading{addr: rec.address, mode: modeVerify}
	return f.read(rec.off, rec.length, &r) == nil
}

// void writes a void over a hole, not yet synced. It proves nothing of what lies before it.
func (l *leaf) void(f *file, s *scan, hole span) error {
	if l.tree.readOnly.Load() {
		return nil
	}
	h := header{kind: kindVoid, length: uint32(hole.to - hole.from - headerSize)}
	for _, rec := range s.records {
		if rec.off < hole.from {
			h.commit = rec.commit
		}
	}
	f.records.Add(1)
	_, err := f.f.WriteAt(appendHeader(nil, &h, f.seed, hole.from), hole.from)
	return err
}

// index makes the records of a file visible, in order.
func (l *leaf) index(files []*file, f *file, s *scan) {
	for i := range s.records {
		rec := &s.records[i]
		f.records.Add(1)
		switch rec.kind {
		case kindVoid:
			f.dead.Add(rec.size())
		case kindPut, kindTombstone:
			key := l.tree.sortKey(rec.address)
			l.apply(files, f, key, &rec.header, rec.off, f.clashes(key, &rec.address))
		}
	}
	l.commit = max(l.commit, s.commit)
}

// clashes reports whether the entry that the index has for addr is another address's.
func (f *file) clashes(key uint64, addr *blobstor.Address) bool {
	e := f.index.get(key, addr)
	if e == 0 {
		return false
	}
	r := reading{addr: *addr, mode: modeHeader}
	return errors.Is(f.read(e.off(), e.length(), &r), errStranger)
}

// lose notes damage whose addresses are unknown: from now on a miss in this leaf proves nothing.
func (l *leaf) lose(number uint32, s span, why string) {
	l.lost = append(l.lost, lostSpan{number, s})
	err := fmt.Errorf("%w: leaf %d, file %d, from %d to %d: %s", blobstor.ErrCorrupt, l.id, number, s.from, s.to, why)
	l.tree.log.Error("addresses are lost", "err", err)
	if hook := l.tree.opts.Hooks.Fault; hook != nil {
		hook("open", err)
	}
}
