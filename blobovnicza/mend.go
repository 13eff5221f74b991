package blobovnicza

import (
	"context"

	"github.com/granary-store/granary/internal/durable"
)

// foreignSuffix is put behind the name of a file that is not what its name says.
const foreignSuffix = ".foreign"

// gone reports whether nothing of the file is left that could be mended.
func (a *audit) gone() bool {
	return a.file.data.name == "" || a.missing || len(a.scan.records) == 0
}

// cover writes voids over what is damaged in a full file, so that from then on all of it is records. What is damaged
// behind the last whole record of a short file needs none: the file ends there.
func (a *audit) cover() error {
	if a.gone() {
		return nil
	}
	voids := a.voids()
	if len(voids) == 0 {
		return nil
	}
	if err := a.file.data.close(); err != nil { // what bears the name now is to be mended
		return err
	}
	data, err := a.file.data.pin()
	if err != nil {
		return err
	}
	defer a.file.data.unpin()
	for _, v := range voids {
		if _, err := data.WriteAt(appendHeader(nil, &v.header, a.file.seed, v.off), v.off); err != nil {
			return err
		}
	}
	return data.Datasync()
}

// voids returns a void for each hole and for each record with a damaged payload.
func (a *audit) voids() (voids []scanned) {
	for _, rec := range a.hurt {
		void := header{kind: kindVoid, length: uint32(rec.size() - headerSize), commit: rec.commit}
		voids = append(voids, scanned{void, rec.off})
	}
	for _, hole := range a.scan.holes {
		if hole.from < a.trueEnd() {
			voids = append(voids, scanned{a.scan.void(hole, 0), hole.from})
		}
	}
	return voids
}

// trueEnd is where the file ends: where it should, or with its last whole record if it is short.
func (a *audit) trueEnd() int64 {
	if a.size < a.end || a.end-a.scan.end < headerSize {
		return a.scan.end
	}
	return a.end
}

// acceptLoss makes the leaf forget what is lost, by a manifest that says where files end and does not list those that
// are not there.
func (a *leafAudit) acceptLoss(ctx context.Context) error {
	l := a.leaf
	var gone []*file
	for _, f := range a.files {
		if f.file.data.name == "" || !f.gone() {
			continue
		}
		gone = append(gone, f.file)
		if err := f.disown(); err != nil {
			return err
		}
	}
	task := func() error {
		for _, f := range a.files {
			if !f.gone() {
				f.file.shorten(f)
			}
		}
		return l.forgetLost(gone)
	}
	if err := l.do(ctx, &request{task: task}, 0); err != nil {
		return err
	}
	return l.doom(gone)
}

// shorten moves the end of a short file to its last whole record.
func (f *file) shorten(a *audit) {
	if end := a.trueEnd(); end < a.end {
		f.end.Store(end)
	}
}

// forgetLost writes a manifest without the given files and without those that Open did not find. It is a leader's task.
func (l *leaf) forgetLost(gone []*file) error {
	before := l.setMissing(nil)
	if err := l.forget(gone); err != nil {
		l.setMissing(before)
		return err
	}
	l.mu.Lock()
	l.lost = nil
	l.mu.Unlock()
	l.losses.Store(0)
	return nil
}

func (l *leaf) setMissing(list []listed) (before []listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.missing = l.missing, list
	return before
}

// disown gives a file that is none of the leaf's another name: it may be missed elsewhere.
func (a *audit) disown() error {
	if a.missing || a.size == 0 {
		return nil
	}
	name := a.file.data.name
	return a.file.leaf.inDir(func(dir *durable.Dir) error {
		if err := dir.Rename(name, name+foreignSuffix); err != nil {
			return err
		}
		return dir.Sync()
	})
}

// reindex makes the index of a mended file again, from what it says.
func (a *audit) reindex() error {
	f := a.file
	f.healing.Lock() // what heals now has seen the damage
	defer f.healing.Unlock()
	if err := f.data.close(); err != nil {
		return err
	}
	s, err := scanFile(f, 0, f.end.Load(), 0)
	if err != nil {
		return err
	}
	manifest := int64(0)
	for i := range s.records {
		if s.records[i].kind == kindManifest {
			manifest = s.records[i].off
		}
	}
	f.manifest.Store(manifest)
	f.commit.Store(s.commit)
	f.flawedAt.Store(0)
	f.setRecalled(f.recall(s), false)
	if err := f.leaf.saveIndex(f); err != nil && !noSpace(err) {
		return err
	}
	return nil
}

// absolve lets files be compacted again that have nothing wrong: what was damaged in them is gone.
func (a *leafAudit) absolve() {
	for _, f := range a.files {
		f.file.flawedAt.Store(0)
		f.file.noIndex.Store(false)
	}
	a.leaf.tree.wakeKeeper()
}

// correct adds to the counters what they differed by, and writes a manifest with them.
func (a *leafAudit) correct(ctx context.Context) error {
	task := func() error {
		for _, f := range a.files {
			r := a.reportOf(f.file.number)
			f.file.correct(&r.Counted, &r.Counters)
		}
		return a.leaf.forget(nil)
	}
	return a.leaf.do(ctx, &request{task: task}, 0)
}

func (f *file) correct(is, was *Counts) {
	f.records.Add(is.Records - was.Records)
	f.objects.Add(is.Objects - was.Objects)
	f.tombstones.Add(is.Tombstones - was.Tombstones)
	f.live.Add(is.Live - was.Live)
	f.dead.Add(is.Dead - was.Dead)
}
