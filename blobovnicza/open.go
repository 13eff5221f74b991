package blobovnicza

import (
	"cmp"
	"errors"
	"slices"

	"github.com/granary-store/granary/internal/durable"
)

// found is a file as Open finds it.
type found struct {
	*file
	size  int64
	table *table // its index file, nil if that is missing or damaged
	scan  *scan  // of what the table does not cover; nil if that is nothing, or not known yet
	owed  int64  // what a whole index file covers, if that is more than there is
}

// use opens the leaf if it is not open. An error is not kept: the next call tries again.
func (l *leaf) use() error {
	if l.open.Load() {
		return nil
	}
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.open.Load() {
		return nil
	}
	l.lost, l.missing, l.namesSynced, l.tight = nil, nil, false, false
	l.zeroed.Store(0)
	l.losses.Store(0)
	if err := l.inDir(l.replay); err != nil {
		return errors.Join(err, l.close())
	}
	l.open.Store(true)
	l.tree.wakeKeeper()
	return nil
}

// replay finds out what the leaf holds, and leaves the active file ready for the next record.
func (l *leaf) replay(dir *durable.Dir) error {
	all, indexes, err := l.list(dir)
	if err != nil {
		return err
	}
	var list []listed
	complete := false
	if len(all) > 0 {
		newest := all[len(all)-1]
		if err := newest.inspect(); err != nil {
			return err
		}
		if list, complete, err = newest.newestManifest(); err != nil {
			return err
		}
	}
	if complete {
		err = l.replayListed(dir, all, list)
	} else {
		err = l.replayAll(all)
	}
	if err != nil || l.tree.opts.ReadOnly {
		return err
	}
	if err := l.removeStale(dir, indexes); err != nil {
		return err
	}
	if err := l.ensureReserve(); err != nil {
		l.tree.log.Warn("no space could be set aside for a full disk", "leaf", l.id, "err", err)
		l.tight = noSpace(err)
	}
	return nil
}

// syncNames makes the names in the leaf's directory durable, once: a killed process may not have come to that. It is
// due before anything is trusted or written that is not known to be synced, and before a file is removed.
func (l *leaf) syncNames(dir *durable.Dir) error {
	if l.namesSynced {
		return nil
	}
	err := dir.Sync()
	l.namesSynced = err == nil
	return err
}

// list returns the data files in the order of their numbers, and the names of index files.
func (l *leaf) list(dir *durable.Dir) (all []*found, indexes []string, err error) {
	names, err := dir.Names()
	if err != nil {
		return nil, nil, err
	}
	if !l.tree.opts.ReadOnly {
		if _, err := dir.Sweep(); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(names) // fixed-width digits: the order of numbers
	for _, name := range names {
		if _, ok := parseName(name, indexSuffix); ok {
			indexes = append(indexes, name)
		}
		number, ok := parseDataName(name)
		if !ok {
			continue
		}
		f := &found{file: l.newFile(number)}
		if f.size, err = dir.Stat(name); err != nil {
			return nil, nil, err
		}
		f.end.Store(f.size)
		all = append(all, f)
	}
	return all, indexes, nil
}

// inspect reads the index file and scans what it does not cover.
func (f *found) inspect() error {
	f.readTable()
	from, commit := int64(0), uint64(0)
	if f.table != nil {
		from, commit = f.table.end, f.table.commit
	}
	if from == f.size {
		f.scan = &scan{end: from, proven: from, commit: commit}
		return nil
	}
	return f.scanFrom(from, commit)
}

// readTable opens the index file, if it is there and whole and the data file is as long as it says.
func (f *found) readTable() {
	t, err := f.leaf.openTable(f.file)
	switch {
	case errors.Is(err, errNoFile):
		return
	case err != nil:
		f.leaf.tree.healed.Add(1)
		f.leaf.tree.log.Warn("index is made again", "leaf", f.leaf.id, "file", f.number, "err", err)
		return
	}
	if t.number != f.number || t.end > f.size {
		f.owed = t.end
		return
	}
	f.table = t
}

// scanFrom reads the headers behind from. What a killed process left in the page cache is made durable first and then
// read from the disk, so that it is neither lost later nor trusted.
func (f *found) scanFrom(from int64, commit uint64) (err error) {
	l := f.leaf
	if f.size-from < scanWindow || l.tree.opts.ReadOnly {
		// One read tells whether that is needed.
		f.scan, err = scanFile(f.file, from, f.size, commit)
		if err != nil || l.tree.opts.ReadOnly || f.scan.endsSynced(f.size) || f.scan.isNew(f.size) {
			return err
		}
	}
	if err := l.inDir(l.syncNames); err != nil {
		return err
	}
	data, err := f.data.pin()
	if err != nil {
		return err
	}
	defer f.data.unpin()
	if err := data.Datasync(); err != nil {
		return err
	}
	data.DropCache()
	f.scan, err = scanFile(f.file, from, f.size, commit)
	return err
}

// newestManifest returns what the newest valid manifest of the file lists, and notes where it is. One that cannot be read
// is an error: an older one would bring back what is gone.
func (f *found) newestManifest() (list []listed, ok bool, err error) {
	var places []int64
	for _, rec := range slices.Backward(f.scan.records) {
		if rec.kind == kindManifest {
			places = append(places, rec.off)
		}
	}
	if f.table != nil {
		places = append(places, f.table.manifest)
	}
	for _, off := range places {
		list, err := f.readManifest(off)
		if err == nil {
			f.manifest.Store(off)
			return list, true, nil
		}
		if !notWhole(err) {
			return nil, false, err
		}
	}
	return nil, false, nil
}

// replayListed opens a leaf by the manifest of its newest file. Of a full file the index file is enough, and what the
// manifest counts; the records behind the manifest change that.
func (l *leaf) replayListed(dir *durable.Dir, all []*found, list []listed) error {
	newest := all[len(all)-1]
	all, err := l.dropUnlisted(dir, all, list)
	if err != nil {
		return err
	}
	l.noteMissing(all, list)
	for _, f := range all {
		e, full := find(list, f.number)
		if !full {
			continue
		}
		if err := f.openFull(e); err != nil {
			return err
		}
	}
	files := filesOf(all)
	if _, sealed := find(list, newest.number); sealed {
		l.commit = newest.scan.commit
		l.adopt(files)
	} else if err := l.openActive(newest, files); err != nil {
		return err
	}
	return l.collectTombs()
}

// dropUnlisted removes what the manifest no longer lists: compaction had moved all that was needed.
func (l *leaf) dropUnlisted(dir *durable.Dir, all []*found, list []listed) ([]*found, error) {
	keep := all[:0:0]
	for i, f := range all {
		if _, ok := find(list, f.number); ok || i == len(all)-1 {
			keep = append(keep, f)
			continue
		}
		if l.tree.opts.ReadOnly {
			continue
		}
		if err := errors.Join(all[len(all)-1].prove(), l.syncNames(dir)); err != nil {
			return nil, err
		}
		if err := l.removeFile(dir, f.data.name); err != nil {
			return nil, err
		}
	}
	return keep, nil
}

// prove makes sure that the records of the newest file, which decide about the others, are durable: a killed process
// may have come no further than to write them.
func (f *found) prove() error {
	data, err := f.data.pin()
	if err != nil {
		return err
	}
	defer f.data.unpin()
	return data.Datasync()
}

// noteMissing notes what is listed and not there.
func (l *leaf) noteMissing(all []*found, list []listed) {
	for _, e := range list {
		if !slices.ContainsFunc(all, func(f *found) bool { return f.number == e.number }) {
			l.missing = append(l.missing, e)
			l.lose(e.number, span{0, e.end}, "listed file is missing")
		}
	}
}

func filesOf(all []*found) []*file {
	files := make([]*file, len(all))
	for i, f := range all {
		files[i] = f.file
	}
	return files
}

// openFull opens a full file as the manifest lists it: with its index file if that covers all, by a scan else.
func (f *found) openFull(e listed) error {
	f.setCounts(e)
	f.readTable()
	f.end.Store(min(e.end, f.size))
	if f.table != nil && f.table.end == e.end {
		f.manifest.Store(f.table.manifest)
		f.index.Store(&index{table: f.table})
		return nil
	}
	f.table = nil
	if err := f.scanFrom(0, 0); err != nil {
		return err
	}
	f.settleFull(e.end)
	f.index.Store(&index{recent: f.recall(f.scan)})
	return nil
}

// openActive readies the newest file for the next record, and counts what its records behind the manifest changed.
func (l *leaf) openActive(f *found, files []*file) error {
	if f.table != nil {
		rows, err := f.table.allRows(&f.idx)
		if err != nil { // then all of it is read
			l.tree.log.Warn("index is made again", "leaf", l.id, "file", f.number, "err", err)
			f.table = nil
			if err := f.scanFrom(0, 0); err != nil {
				return err
			}
		} else {
			f.setCounts(f.table.listed)
			f.recent().load(rows)
			l.indexed = f.table.end
		}
	}
	if err := l.settleActive(f); err != nil {
		return err
	}
	l.settleShort(f)
	l.setFiles(files)
	l.index(files, f, false)
	l.limit = max(l.tree.fileLimit(), l.zeroed.Load())
	return nil
}

// replayAll opens a leaf whose newest file has no readable manifest: every file is read, nothing is dropped, an
// unknown file may be missing, and the next write goes into a new file.
func (l *leaf) replayAll(all []*found) error {
	var list []listed
	for _, f := range all {
		f.table = nil
		f.end.Store(f.size)
		if err := f.scanFrom(0, 0); err != nil {
			return err
		}
		older, ok, err := f.newestManifest()
		if err != nil {
			return err
		}
		if ok {
			list = older
		}
	}
	l.noteMissing(all, list)
	var newest uint32
	if len(all) > 0 {
		newest = all[len(all)-1].number
	}
	l.lose(newest, span{}, "manifest is damaged")
	files := filesOf(all)
	l.setFiles(files)
	if len(all) == 0 {
		l.adopt(files)
		return nil
	}
	for _, f := range all[:len(all)-1] {
		end := f.scan.end
		if e, ok := find(list, f.number); ok {
			end = e.end
		}
		f.settleFull(end)
		l.index(files, f, true)
	}
	active := all[len(all)-1]
	if err := l.settleActive(active); err != nil {
		return err
	}
	l.settleShort(active)
	l.index(files, active, true)
	l.limit = l.tree.fileLimit()
	l.giveUp(errNoManifest)
	return l.collectTombs()
}

func find(list []listed, number uint32) (listed, bool) {
	i, ok := slices.BinarySearchFunc(list, number, func(e listed, n uint32) int { return cmp.Compare(e.number, n) })
	if !ok {
		return listed{}, false
	}
	return list[i], true
}
