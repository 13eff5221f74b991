package blobovnicza

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// Repair puts right what [Tree.Check] finds wrong, as far as nothing readable is lost by it, and accepts the loss of
// the rest: damaged or missing index files are written again, wrong counters corrected; a damaged blob of which there
// is an older copy is stored again, others are deleted; what is lost without a trace in ranges of files, or with
// missing files, counts as gone. A file of another origin that bears a data file's name is set aside under that name
// with ".foreign" behind it.
//
// When it returns nil, Check finds nothing wrong, a miss is ErrNotFound everywhere, and Compact can give all dead space
// back. The report is what was wrong before: of its Damage, what is Current and not Rescued is lost, and so may be
// what is not Known. Other calls go on meanwhile, but for compaction, which waits; of what is repaired, an iteration
// that began before may yield some twice or not at all. It reads a damaged leaf several times, and may be cancelled or
// interrupted by a crash at any moment: what is done stays done, and the next Repair does the rest.
//
// The error is ErrReadOnly, ErrClosed, ctx's, or why something could not be read or written; a leaf with a file that
// cannot be read is left as it is, after all others were repaired, and the report comes with the error.
func (t *Tree) Repair(ctx context.Context) (*Report, error) {
	r, err := t.repair(ctx)
	if err != nil {
		err = t.fail("repair", blobstor.Address{}, "", err)
	}
	return r, err
}

func (t *Tree) repair(ctx context.Context) (*Report, error) {
	ctx, end, err := t.job(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	t.turns.call(1)
	defer t.turns.call(-1)
	if err := t.turns.take(ctx); err != nil {
		return nil, t.ended(ctx)
	}
	defer t.turns.end()
	r := &Report{Leaf: map[int]error{}}
	var errs error
	for _, l := range t.leaves {
		if t.readOnly.Load() {
			return r, blobstor.ErrReadOnly
		}
		err := l.repair(ctx, r)
		if ended := t.ended(ctx); ended != nil {
			return r, ended
		}
		errs = errors.Join(errs, err)
	}
	return r, errs
}

// maxPasses bounds how often a leaf is looked at again. Three do: what is damaged, then the counters, then nothing. An
// active file that must become a full one before it can be mended takes one more.
const maxPasses = 6

// repair mends the leaf until nothing is wrong, and adds to r what was.
func (l *leaf) repair(ctx context.Context, r *Report) error {
	first := len(r.Files)
	for pass := range maxPasses {
		a, err := l.audit(ctx)
		if pass == 0 {
			r.add(l, a, err)
		}
		if err != nil {
			return err
		}
		done, err := a.mend(ctx)
		noteRescued(r.Files[first:], a.rescued)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: leaf %d is still damaged", blobstor.ErrCorrupt, l.id)
}

// noteRescued marks the damage that cost nothing.
func noteRescued(files []FileReport, rescued []blobstor.Address) {
	for i := range files {
		for k := range files[i].Damage {
			if d := &files[i].Damage[k]; d.Current && slices.Contains(rescued, d.Address) {
				d.Rescued = true
			}
		}
	}
}

// mend does the next part of what is to be done, and reports whether there was nothing.
func (a *leafAudit) mend(ctx context.Context) (done bool, err error) {
	l := a.leaf
	for i := range a.reports {
		if err := a.reports[i].Err; err != nil {
			return false, fmt.Errorf("leaf %d, file %d: %w", l.id, a.reports[i].Number, err)
		}
	}
	if a.needsNewActive() {
		return false, l.tree.unlessReadOnly(func() error { return l.retire(ctx, a.version.active(), urgent) })
	}
	if a.broken() {
		return false, a.mendData(ctx)
	}
	a.absolve()
	if a.miscounted() {
		return false, l.tree.unlessReadOnly(func() error { return a.correct(ctx) })
	}
	return true, nil
}

// needsNewActive reports whether the active file is damaged: only full ones are mended, for they do not change.
func (a *leafAudit) needsNewActive() bool {
	active := a.version.active()
	r := a.reportOf(active.number)
	return active.data.name == "" || a.leaf.broken.Load() || r.broken()
}

// broken reports whether something is wrong beside the counters.
func (f *FileReport) broken() bool {
	return f.Missing || f.Short || f.Foreign || len(f.Damage) > 0 || len(f.Index) > 0
}

func (a *leafAudit) broken() bool {
	for i := range a.reports {
		if a.reports[i].broken() {
			return true
		}
	}
	return len(a.lost) > 0
}

func (a *leafAudit) miscounted() bool {
	for i := range a.reports {
		if a.reports[i].Counted != a.reports[i].Counters {
			return true
		}
	}
	return false
}

// mendData mends files and their indexes. The order is what makes it safe to stop anywhere: a blob is stored again or
// deleted before the last trace of its address goes, and what is lost is forgotten only when no trace would bring it
// up again.
func (a *leafAudit) mendData(ctx context.Context) error {
	if err := a.restoreIndexes(); err != nil {
		return err
	}
	if err := a.restoreBlobs(ctx); err != nil {
		return err
	}
	return a.leaf.tree.unlessReadOnly(func() error {
		for _, f := range a.files {
			if err := f.cover(); err != nil {
				return err
			}
		}
		if err := a.acceptLoss(ctx); err != nil {
			return err
		}
		for _, f := range a.files {
			if f.gone() || !a.reportOf(f.file.number).broken() {
				continue
			}
			if err := f.reindex(); err != nil {
				return err
			}
		}
		return a.leaf.collectTombs()
	})
}

// restoreIndexes lets look-ups use what was found instead of indexes that are wrong: they decide what is deleted.
func (a *leafAudit) restoreIndexes() error {
	for _, f := range a.files {
		if f.index.n > 0 {
			r := &recent{}
			r.load(f.rows)
			f.file.setRecalled(r, true) // until what is lost is accepted
		}
	}
	return a.leaf.collectTombs()
}

// restoreBlobs stores again, or deletes, what damaged records were the newest of.
func (a *leafAudit) restoreBlobs(ctx context.Context) error {
	for i := range a.reports {
		r := &a.reports[i]
		for k := range r.Damage {
			d := &r.Damage[k]
			if !d.Known {
				continue
			}
			rescued, err := a.leaf.restoreBlob(ctx, r.Number, d)
			if err != nil {
				return err
			}
			if rescued {
				a.rescued = append(a.rescued, d.Address)
			}
		}
	}
	return nil
}

// restoreBlob stores a blob again, if its newest record is the damaged one and a copy can still be read, or writes a
// tombstone.
func (l *leaf) restoreBlob(ctx context.Context, number uint32, d *Damage) (rescued bool, err error) {
	e := d.row()
	for {
		read := reading{addr: d.Address, mode: modeWhole}
		req := &request{}
		req.ops = req.one[:]
		o := &req.one[0]
		o.move, o.key = true, d.key
		o.hdr = header{kind: kindTombstone, address: d.Address}
		o.found, err = l.lookup(d.key, &read)
		switch {
		case err != nil && !errors.Is(err, blobstor.ErrNotFound) && !errors.Is(err, blobstor.ErrCorrupt):
			return false, err
		case o.found.newest != e.entry.in(number):
			return false, nil
		case err == nil:
			o.hdr.kind, o.hdr.length, o.data = kindPut, uint32(len(read.dst)), read.dst
		}
		err = l.tree.unlessReadOnly(func() error { return l.do(ctx, req, o.hdr.size()) })
		if err = firstOf(err, o.err); err != nil || !o.stale {
			return err == nil && o.hdr.kind == kindPut, err
		}
	}
}
