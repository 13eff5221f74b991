package blobovnicza

import (
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// saveIndexes writes the index files of all full files that have none.
func (l *leaf) saveIndexes() (err error) {
	files := l.version.Load().files
	for _, f := range files[:len(files)-1] {
		err = errors.Join(err, l.saveIndex(f))
	}
	return err
}

// saveIndex writes the index file of a full file, unless it has one or must have none, and lets look-ups use it instead
// of memory.
func (l *leaf) saveIndex(f *file) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	if f.recent() == nil || f.noIndex.Load() {
		return nil
	}
	if err := l.writeIndexOf(f); err != nil {
		return unlessDropped(err)
	}
	t, err := l.openTable(f)
	if err != nil {
		return unlessDropped(err)
	}
	l.setIndex(f, &index{table: t})
	return nil
}

// setRecalled gives a file the index in memory that Repair has made, and says whether it must have no index file. One
// that is being made of the index before must not come behind it.
func (f *file) setRecalled(r *recent, noIndex bool) {
	f.leaf.saving.Lock()
	defer f.leaf.saving.Unlock()
	f.noIndex.Store(noIndex)
	f.leaf.setIndex(f, &index{recent: r})
}

// unlessDropped makes it no error that a file needs no index any more.
func unlessDropped(err error) error {
	if errors.Is(err, errDropped) {
		return nil
	}
	return err
}

// writeIndexOf writes the index file of a file that has none and does not change meanwhile.
func (l *leaf) writeIndexOf(f *file) error {
	rows := f.recent().sorted()
	cover := coverage{listed: f.listing(), manifest: f.manifest.Load(), commit: f.commit.Load()}
	return l.inDir(func(dir *durable.Dir) error { return l.replaceIndex(dir, f, cover, rows) })
}

// replaceIndex makes an index file durable under its name, in place of another.
func (l *leaf) replaceIndex(dir *durable.Dir, f *file, cover coverage, rows []row) error {
	temp, err := dir.Temp()
	if err != nil {
		return err
	}
	err = writeIndex(temp, f.seed, cover, rows)
	if err == nil {
		err = temp.Datasync()
	}
	old, _ := dir.Stat(f.idx.name) // 0 if there is none
	if err == nil {
		err = temp.Replace(f.idx.name)
	}
	if err != nil {
		return errors.Join(err, temp.Discard())
	}
	size, err := temp.Size()
	l.tree.used.Add(size - old)
	return errors.Join(err, f.idx.close(), dir.Sync(), temp.Close())
}

// openTable reads what of the index file stays in memory.
func (l *leaf) openTable(f *file) (*table, error) {
	file, err := f.idx.pin()
	if err != nil {
		return nil, err
	}
	defer f.idx.unpin()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	t, err := openTable(&f.idx, size, f.seed)
	if err == nil {
		t.cache, t.id = l.tree.blocks, l.tree.tables.Add(1)
	}
	return t, err
}

// beyondHealing remembers that an index cannot be made again because records are damaged too, or every look-up that
// meets it would read the whole file.
type beyondHealing struct {
	index *index
	err   error
}

// heal reads the records of a file whose index file is damaged, and keeps what they say in memory until the index
// file is written again.
func (f *file) heal(broken *index, cause error) error {
	if b := f.beyond.Load(); b != nil && b.index == broken {
		return b.err
	}
	f.healing.Lock()
	defer f.healing.Unlock()
	if f.index.Load() != broken {
		return nil
	}
	f.leaf.tree.log.Warn("index is made again", "leaf", f.leaf.id, "file", f.number, "err", cause)
	s, err := scanFile(f, 0, f.end.Load(), 0)
	if err != nil {
		return fmt.Errorf("%w; its index: %v", err, cause) //nolint:errorlint // how the index failed decides nothing
	}
	if len(s.holes) > 0 || s.end < f.end.Load() {
		err := fmt.Errorf("%w: data and index of file %d: %v", blobstor.ErrCorrupt, f.number, cause) //nolint:errorlint // nor here
		f.beyond.Store(&beyondHealing{broken, err})
		return err
	}
	f.leaf.tree.healed.Add(1)
	f.leaf.setIndex(f, &index{recent: f.recall(s)})
	f.leaf.tree.wakeKeeper()
	return nil
}

// recall returns the index that a scan of the whole file tells.
func (f *file) recall(s *scan) *recent {
	r := &recent{}
	r.expect(len(s.records))
	for i := range s.records {
		if rec := &s.records[i]; rec.kind == kindPut || rec.kind == kindTombstone {
			r.put(f.leaf.tree.sortKey(rec.address), &rec.address, makeEntry(rec.kind, rec.off, rec.length))
		}
	}
	return r
}

// collectTombs fills the filter of tombstones from all files.
func (l *leaf) collectTombs() error {
	for {
		v := l.version.Load()
		var keys []uint64
		for i, f := range v.files {
			x := f.index.Load()
			if v.sieves[i] == nil || x.table == nil {
				continue
			}
			more, err := f.tombstoneKeys(x)
			if errors.Is(err, errDropped) {
				break // the version is an old one by now
			}
			if err != nil {
				return err
			}
			keys = append(keys, more...)
		}
		if l.setTombs(v, keys) {
			return nil
		}
	}
}

// setTombs makes the filter of these keys and of those in memory, unless the leaf has moved on.
func (l *leaf) setTombs(v *version, keys []uint64) bool {
	l.tombs.mu.Lock() // nobody adds a tombstone meanwhile
	defer l.tombs.mu.Unlock()
	if l.version.Load() != v {
		return false
	}
	for i, f := range v.files {
		x := f.index.Load()
		if (x.table == nil) != (v.sieves[i] == nil) { // it has just got this index, and the version is about to follow
			return false
		}
		if x.recent != nil {
			keys = append(keys, x.recent.tombstoneKeys()...)
		}
	}
	l.tombs.resetLocked(keys)
	return true
}

// tombstoneKeys reads the sort keys of the tombstones that the file's table knows of. If that is damaged, the index
// is in memory from then on, which makes a new version.
func (f *file) tombstoneKeys(x *index) ([]uint64, error) {
	keys, err := x.table.tombstoneKeys(&f.idx)
	if err == nil || errors.Is(err, errDropped) {
		return keys, err
	}
	return nil, f.heal(x, err)
}
