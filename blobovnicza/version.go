package blobovnicza

import (
	"errors"
	"io/fs"
	"math/bits"
	"slices"

	"github.com/granary-store/granary/internal/durable"
)

// version is what a leaf consists of at one time: its files by number. It never changes; a leaf moves on to
// another one.
type version struct {
	files  []*file
	probes []probe // of each file
	sieves []sieve // of each file
}

// probe is the filter of a file's table, and what of it a look-up in many files needs, side by side. Without a table
// any key may be in the file.
type probe struct {
	fingerprints             []uint8
	seed                     uint64
	length, mask, countTimes uint32
}

func probeOf(t *table) probe {
	x := &t.filter
	return probe{x.Fingerprints, x.Seed, x.SegmentLength, x.SegmentLengthMask, x.SegmentCountLength}
}

// noFilter is the seed of a file without a table: it is always asked.
const noFilter = 1<<64 - 1

// mayHold reports whether the i-th file may have a record of the key.
func (v *version) mayHold(i int, key uint64) bool { return v.below(i, key) == i }

// below returns the newest file from the i-th down that may have a record of the key, -1 if none may. It is the
// filters' Contains, for many of them in turn: a file costs a few nanoseconds, so a call each would tell.
func (v *version) below(i int, key uint64) int {
	seed, hash := uint64(noFilter), uint64(0)
	for ; i >= 0; i-- {
		p := &v.probes[i]
		if p.seed != seed { // most filters are built with the first seed
			seed, hash = p.seed, mix(key+p.seed)
		}
		if seed == noFilter {
			return i
		}
		high, _ := bits.Mul64(hash, uint64(p.countTimes))
		a := uint32(high)
		b := a + p.length
		c := b + p.length
		b ^= uint32(hash>>18) & p.mask
		c ^= uint32(hash) & p.mask
		if fp := p.fingerprints; fp[a]^fp[b]^fp[c] == uint8(hash^hash>>32) && v.sieves[i].has(hash) {
			return i
		}
	}
	return -1
}

// mix is the finalizer of MurmurHash3, as the filters use it.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

func (v *version) active() *file { return v.files[len(v.files)-1] }

// byNumber returns a file of the leaf, or nil. Numbers have few gaps, so the first guess is mostly right.
func byNumber(files []*file, number uint32) *file {
	if len(files) == 0 || number < files[0].number {
		return nil
	}
	i := min(int(number-files[0].number), len(files)-1)
	if files[i].number == number {
		return files[i]
	}
	for i--; i >= 0 && files[i].number >= number; i-- {
		if files[i].number == number {
			return files[i]
		}
	}
	return nil
}

// setFiles moves the leaf on to a version with these files.
func (l *leaf) setFiles(files []*file) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setFilesLocked(files)
}

func (l *leaf) setFilesLocked(files []*file) {
	v := &version{files: files, probes: make([]probe, len(files)), sieves: make([]sieve, len(files))}
	for i, f := range files {
		v.probes[i].seed = noFilter
		if t := f.index.Load().table; t != nil {
			v.probes[i], v.sieves[i] = probeOf(t), t.sieve
		}
	}
	l.version.Store(v)
}

// setIndex gives a file another index of the same records.
func (l *leaf) setIndex(f *file, x *index) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.index.Store(x)
	if v := l.version.Load(); v != nil {
		l.setFilesLocked(v.files)
	}
}

// pin returns the current version and keeps its files from being removed until unpin.
func (l *leaf) pin() *version {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.version.Load()
	if l.pinned == nil {
		l.pinned = map[*version]int{}
	}
	l.pinned[v]++
	return v
}

// unpin ends a pin, and removes the files that only it kept.
func (l *leaf) unpin(v *version) error {
	l.mu.Lock()
	if l.pinned[v]--; l.pinned[v] == 0 {
		delete(l.pinned, v)
	}
	l.mu.Unlock()
	return l.removeDoomed()
}

// doom removes files that the leaf no longer lists, once no pinned version has them.
func (l *leaf) doom(files []*file) error {
	l.mu.Lock()
	l.doomed = append(l.doomed, files...)
	l.mu.Unlock()
	return l.removeDoomed()
}

func (l *leaf) removeDoomed() error {
	l.mu.Lock()
	var now []*file
	l.doomed = slices.DeleteFunc(l.doomed, func(f *file) bool {
		for v := range l.pinned {
			if slices.Contains(v.files, f) {
				return false
			}
		}
		now = append(now, f)
		return true
	})
	l.mu.Unlock()
	if len(now) == 0 {
		return nil
	}
	err := l.removeFiles(now)
	if err != nil { // the next time, perhaps
		l.mu.Lock()
		l.doomed = append(l.doomed, now...)
		l.mu.Unlock()
	}
	return err
}

// removeAllDoomed is for Close: from then on nobody reads what only a walk has kept, and what a later damage to the
// manifest could bring back.
func (l *leaf) removeAllDoomed() error {
	l.mu.Lock()
	l.pinned = nil
	l.mu.Unlock()
	return l.removeDoomed()
}

// removeFiles removes the pairs of files that no version has any more. That reaches the disk: a manifest that cannot
// be read later must not bring them back.
func (l *leaf) removeFiles(files []*file) error {
	var errs error
	for _, f := range files {
		errs = errors.Join(errs, f.data.drop(), f.idx.drop())
	}
	err := l.inDir(func(dir *durable.Dir) error {
		for _, f := range files {
			if err := l.removeFile(dir, f.idx.name); err != nil {
				return err
			}
			if l.recycle(dir, f.data.name) {
				continue
			}
			if err := l.removeFile(dir, f.data.name); err != nil {
				return err
			}
		}
		return dir.Sync()
	})
	return errors.Join(errs, err)
}

func (l *leaf) removeFile(dir *durable.Dir, name string) error {
	size, err := dir.Stat(name)
	if err == nil {
		err = dir.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		l.tree.used.Add(-size)
	}
	return err
}

// removeStale removes the index files of data files that are not there.
func (l *leaf) removeStale(dir *durable.Dir, indexes []string) error {
	files := l.version.Load().files
	for _, name := range indexes {
		number, _ := parseName(name, indexSuffix)
		if byNumber(files, number) == nil {
			if err := l.removeFile(dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}
