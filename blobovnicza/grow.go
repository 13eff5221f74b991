package blobovnicza

import (
	"cmp"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// Why a leaf needs a new active file before it takes writes.
var (
	errNoActive   = errors.New("the active file is missing")
	errNoManifest = errors.New("the active file has no manifest")
	errShort      = errors.New("the active file is short")
)

// giveUp lets no more writes into the active file: the next one must be made first.
func (l *leaf) giveUp(cause error) {
	l.failed = cause
	l.broken.Store(true)
}

// startNext makes the next file the active one. Its manifest lists all others with their ends, so what a failed
// commit left behind the end of the last one does not exist from then on; nor do the files without, which the
// caller removes. On a full disk the need decides whether what was set aside for that is used.
func (l *leaf) startNext(how need, without ...*file) error {
	old := l.version.Load().files
	last := old[len(old)-1]
	files := slices.DeleteFunc(slices.Clone(old), func(f *file) bool {
		return f.data.name == "" || slices.Contains(without, f)
	})
	list := l.listing(files)
	f, space, err := l.next(list, how)
	if err != nil {
		return err
	}
	whole := l.failed == nil && last.data.name != ""
	files = append(files, f)
	if whole {
		l.seal(last, list)
	}
	l.countTail(last)
	l.releaseActive()
	l.setFiles(files)
	l.failed, l.unproven, l.indexed, l.synced = nil, false, 0, f.end.Load()
	l.tight, l.limit = space > 0 || l.tight && how != normal, l.tree.fileLimit()
	if space > 0 {
		l.limit = space
	}
	l.broken.Store(false)
	l.zeroed.Store(space)
	l.noRoom = false
	l.tree.wakeKeeper()
	return l.takeActive()
}

// listing is what a manifest says now: the files that are there, and those that should be.
func (l *leaf) listing(files []*file) []listed {
	list := slices.Clone(l.missing)
	for _, f := range files {
		list = append(list, f.listing())
	}
	slices.SortFunc(list, func(a, b listed) int { return cmp.Compare(a.number, b.number) })
	return list
}

// create makes a data file that begins with a manifest. It gets its name only when the manifest is synced, so a
// bad first manifest is damage and never a torn creation. A number that failed is not used again.
func (l *leaf) create(dir *durable.Dir, list []listed) (*file, error) {
	f, record := l.begin(list)
	temp, err := dir.Temp()
	if err != nil {
		return nil, err
	}
	_, err = temp.WriteAt(record, 0)
	if err == nil && !l.tree.opts.NoSync {
		err = temp.Datasync()
	}
	if err == nil {
		err = temp.Link(f.data.name)
	}
	if err != nil {
		return nil, errors.Join(err, temp.Discard())
	}
	if err := l.named(dir, f, record); err != nil {
		return nil, errors.Join(err, temp.Close())
	}
	f.data.adopt(temp.File)
	return f, nil
}

// begin returns the next file, which is yet to be made, and its first record.
func (l *leaf) begin(list []listed) (*file, []byte) {
	f := l.newFile(l.nextNumber)
	l.nextNumber++
	l.commit++
	f.commit.Store(l.commit)
	return f, manifestRecord(list, f.seed, 0, 0, l.commit)
}

// named makes the name of a file that begins with record durable. If that fails the name may be found after a crash all
// the same, with what the file says of the active one's end, so nothing may be written behind that end any more.
func (l *leaf) named(dir *durable.Dir, f *file, record []byte) error {
	if !l.tree.opts.NoSync {
		if err := dir.Sync(); err != nil {
			l.giveUp(err)
			return errors.Join(err, dir.Remove(f.data.name))
		}
	}
	f.records.Store(1)
	l.extend(f, int64(len(record)))
	return nil
}

// seal ends a full file with a manifest that lists the file itself: whoever finds it last in a leaf knows that
// its successor was lost. The successor's manifest does not count it, and nothing depends on its success.
func (l *leaf) seal(f *file, list []listed) {
	if _, err := l.endWith(f, list); err != nil {
		err = errors.Join(err, l.w.Truncate(f.end.Load()))
		l.tree.log.Warn("file not sealed", "leaf", l.id, "file", f.number, "err", err)
	}
}

// countTail counts what a full file has on the disk behind its end: its seal, or what a failed commit left.
func (l *leaf) countTail(f *file) {
	if f.data.name == "" {
		return
	}
	data, err := f.data.pin()
	if err != nil {
		return
	}
	defer f.data.unpin()
	if size, err := data.Size(); err == nil {
		l.tree.used.Add(size - f.end.Load())
	}
}

// finish leaves the files as the next Open likes them.
func (l *leaf) finish() error {
	err := errors.Join(l.settle(), l.removeAllDoomed())
	l.releaseActive()
	if e := l.saveIndexes(); !noSpace(e) {
		err = errors.Join(err, e)
	}
	if f := l.active(); err == nil && l.failed == nil && !l.unproven && !f.noIndex.Load() && l.indexed < f.end.Load() {
		if e := l.writeIndexOf(f); !noSpace(e) {
			err = e
		}
	}
	return err
}

// settle ends the active file with a manifest before it is closed. The manifest proves that all before it was synced:
// what is unreadable at the next Open is damage and not a torn commit. On a full disk that is done without, and the
// active file keeps its space. A failed commit that could not be revoked gets its last chance.
func (l *leaf) settle() error {
	if l.failed != nil {
		return l.startNext(urgent)
	}
	if !l.unproven || l.tight {
		return nil
	}
	if err := l.takeActive(); err != nil {
		return err
	}
	defer l.releaseActive()
	files := l.version.Load().files
	f, end := files[len(files)-1], l.held.end.Load()
	size, err := l.endWith(f, l.listing(files[:len(files)-1]))
	if noSpace(err) {
		return nil
	}
	if err != nil {
		return err
	}
	f.manifest.Store(end)
	f.records.Add(1)
	l.extend(f, end+size)
	l.unproven = false
	return nil
}

// endWith writes a manifest behind the end of the active file, which has been synced that far, as the last of its
// bytes, and syncs it.
func (l *leaf) endWith(f *file, list []listed) (size int64, err error) {
	if l.tree.opts.NoSync {
		if err := l.w.Datasync(); err != nil {
			return 0, err
		}
	}
	end := f.end.Load()
	l.commit++
	record := manifestRecord(list, f.seed, end, end, l.commit)
	if _, err := l.w.WriteAt(record, end); err != nil {
		return 0, err
	}
	size = int64(len(record))
	if err := l.w.Truncate(end + size); err != nil { // what was zeroed ahead
		return 0, err
	}
	return size, l.w.Datasync()
}

// manifestRecord encodes a manifest as the record at off.
func manifestRecord(list []listed, seed uint32, off, synced int64, commit uint64) []byte {
	payload := appendManifest(nil, list)
	h := header{kind: kindManifest, length: uint32(len(payload)), synced: synced, commit: commit}
	b := appendHeader(nil, &h, seed, off)
	b = append(b, payload...)
	return appendTrailer(b, &h, payload)
}

// readManifest reads the manifest at off.
func (f *file) readManifest(off int64) ([]listed, error) {
	h, err := f.header(off)
	if err != nil {
		return nil, err
	}
	if h.kind != kindManifest || off+h.size() > f.end.Load() {
		return nil, blobstor.ErrCorrupt
	}
	b := make([]byte, h.size()-headerSize)
	if err := f.readAt(b, off+headerSize); err != nil {
		return nil, err
	}
	payload := b[:h.length]
	if !verifyBlocks(&h, payload, b[h.length:]) {
		return nil, blobstor.ErrCorrupt
	}
	list, ok := parseManifest(payload, f.number)
	if !ok {
		return nil, blobstor.ErrCorrupt
	}
	return list, nil
}

// adopt gives a leaf without an active file a stand-in. The first write replaces it; until Repair every manifest
// lists the lost file, so that misses stay ErrCorrupt.
func (l *leaf) adopt(files []*file) {
	number := uint32(1)
	if len(files) > 0 {
		number = files[len(files)-1].number + 1
	}
	l.missing = append(l.missing, listed{number: number, end: unknownEnd})
	l.lose(number, span{0, unknownEnd}, errNoActive.Error())
	stand := l.newFile(number)
	stand.data.name = "" // there is no such file
	l.setFiles(append(slices.Clone(files), stand))
	l.nextNumber = number + 1
	l.giveUp(errNoActive)
}
