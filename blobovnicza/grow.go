package blobovnicza

import (
	"cmp"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// Why a leaf needs a new active file before it takes writes.
var (
	errNoActive   = errors.New("the active file is missing")
	errNoManifest = errors.New("the active file has no manifest")
)

// giveUp lets no more writes into the active file: the next one must be made first.
func (l *leaf) giveUp(cause error) {
	l.failed = cause
	l.broken.Store(true)
}

// startNext makes the next file the active one. Its manifest lists all others with their ends, so what a failed
// commit left behind the end of the last one does not exist from then on.
func (l *leaf) startNext() error {
	files := slices.Clone(*l.files.Load())
	last := files[len(files)-1]
	if last.f == nil {
		files = files[:len(files)-1]
	}
	list := l.listing(files)
	f, err := l.create(list)
	if err != nil {
		return err
	}
	whole := l.failed == nil
	files = append(files, f)
	l.files.Store(&files)
	l.failed, l.unproven, l.synced, l.limit = nil, false, f.end.Load(), l.fileLimit(files)
	l.broken.Store(false)
	l.zeroed.Store(0)
	l.noRoom = false
	if whole {
		l.seal(last, list)
	}
	return nil
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
func (l *leaf) create(list []listed) (*file, error) {
	number := l.next
	l.next++
	l.commit++
	f := &file{number: number, seed: fileSeed(l.tree.storeID, l.id, number)}
	record := manifestRecord(list, f.seed, 0, 0, l.commit)
	temp, err := l.dir.Temp()
	if err != nil {
		return nil, err
	}
	_, err = temp.WriteAt(record, 0)
	if err == nil && !l.tree.opts.NoSync {
		err = temp.Datasync()
	}
	if err == nil {
		err = temp.Link(dataName(number))
	}
	if err != nil {
		return nil, errors.Join(err, temp.Discard())
	}
	if !l.tree.opts.NoSync {
		if err := l.dir.Sync(); err != nil {
			return nil, errors.Join(err, temp.Close())
		}
	}
	f.f = temp.File
	f.records.Store(1)
	f.end.Store(int64(len(record)))
	return f, nil
}

// seal ends a full file with a manifest that lists the file itself: whoever finds it last in a leaf knows that
// its successor was lost. The successor's manifest does not count it, and nothing depends on its success.
func (l *leaf) seal(f *file, list []listed) {
	if err := l.endWith(f, list); err != nil {
		l.tree.log.Warn("file not sealed", "leaf", l.id, "file", f.number, "err", err)
	}
}

// settle ends the active file with a manifest before it is closed. It proves that all before it was synced: what
// is unreadable at the next Open is damage and not a torn commit. On a full disk that proof is done without. A failed
// commit that could not be revoked gets its last chance.
func (l *leaf) settle() error {
	if l.tree.opts.ReadOnly {
		return nil
	}
	if l.failed != nil {
		return l.startNext()
	}
	if !l.unproven {
		return nil
	}
	files := *l.files.Load()
	last := len(files) - 1
	err := l.endWith(files[last], l.listing(files[:last]))
	if noSpace(err) {
		return nil
	}
	return err
}

// endWith writes a manifest behind the end of a file that has been synced that far, as the last of its bytes, and
// syncs it.
func (l *leaf) endWith(f *file, list []listed) error {
	if l.tree.opts.NoSync {
		if err := f.f.Datasync(); err != nil {
			return err
		}
	}
	end := f.end.Load()
	l.commit++
	record := manifestRecord(list, f.seed, end, end, l.commit)
	if _, err := f.f.WriteAt(record, end); err != nil {
		return err
	}
	if err := f.f.Truncate(end + int64(len(record))); err != nil { // what was zeroed ahead
		return err
	}
	return f.f.Datasync()
}

// manifestRecord encodes a manifest as the record at off.
func manifestRecord(list []listed, seed uint32, off, synced int64, commit uint64) []byte {
	payload := appendManifest(nil, list)
	h := header{kind: kindManifest, length: uint32(len(payload)), synced: synced, commit: commit}
	b := appendHeader(nil, &h, seed, off)
	b = append(b, payload...)
	return appendTrailer(b, &h, payload)
}

// readManifest reads the manifest that a scan found.
func (f *file) readManifest(rec *scanned) ([]listed, error) {
	b := make([]byte, rec.size()-headerSize)
	if err := f.readAt(b, rec.off+headerSize); err != nil {
		return nil, err
	}
	payload := b[:rec.length]
	if !verifyBlocks(&rec.header, payload, b[rec.length:]) {
		return nil, blobstor.ErrCorrupt
	}
	list, ok := parseManifest(payload, f.number)
	if !ok {
		return nil, blobstor.ErrCorrupt
	}
	return list, nil
}

// orphaned reports whether the newest file is sealed: there was a next one.
func orphaned(files []*file, list []listed) bool {
	if len(files) == 0 {
		return true
	}
	_, sealed := find(list, files[len(files)-1].number)
	return sealed
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
	files = append(slices.Clone(files), &file{number: number})
	l.files.Store(&files)
	l.next = number + 1
	l.giveUp(errNoActive)
}

// fileLimit is the size at which the active file is full: a 64th of the leaf, so that compaction moves small
// parts of it, within bounds that keep both the number of files and the time to replay one small.
func (l *leaf) fileLimit(files []*file) int64 {
	if size := l.tree.opts.FileSize; size > 0 {
		return size
	}
	var sum int64
	for _, f := range files {
		sum += f.end.Load()
	}
	return min(max(sum/64, minFileSize), maxFileSize)
}
