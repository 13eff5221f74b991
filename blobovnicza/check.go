package blobovnicza

import (
	"context"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/groupcommit"
)

// Check reads every byte of the store and reports what it finds: it verifies each header and each checksum of a
// payload, compares indexes with the data and counters with a recount. It runs beside all other calls, compaction
// included, which it never takes for damage; it writes nothing. It does not stop at damage, nor at a file or a leaf that
// cannot be read: that is in the report. The error is ctx's or ErrClosed, and there is no report then. Damaged blobs
// whose addresses are known are also told to Hooks.Corrupt.
//
// In memory it holds the index of one file, or of all that have none on disk, and a bit for each record.
func (t *Tree) Check(ctx context.Context) (*Report, error) {
	r, err := t.check(ctx)
	if err != nil {
		return nil, t.fail("check", blobstor.Address{}, "", err)
	}
	for i := range r.Files {
		t.tellCorrupt(&r.Files[i])
	}
	return r, nil
}

func (t *Tree) check(ctx context.Context) (*Report, error) {
	ctx, end, err := t.job(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	r := &Report{Leaf: map[int]error{}}
	for _, l := range t.leaves {
		a, err := l.audit(ctx)
		if err := t.ended(ctx); err != nil {
			return nil, err
		}
		r.add(l, a, err)
	}
	return r, nil
}

// ended returns the error of a long call whose context has ended: by its caller or by Close.
func (t *Tree) ended(ctx context.Context) error {
	if t.keeper.ctx.Err() != nil {
		return blobstor.ErrClosed
	}
	return ctx.Err()
}

// add adds what an audit found, or why there is none.
func (r *Report) add(l *leaf, a *leafAudit, err error) {
	if err != nil {
		r.Leaf[int(l.id)] = err
	}
	if a == nil {
		return
	}
	for i := range a.reports {
		r.Total.add(a.reports[i].Counted)
	}
	r.Files = append(r.Files, a.reports...)
}

// tellCorrupt reports the blobs that are damaged. No call may be running.
func (t *Tree) tellCorrupt(f *FileReport) {
	for i := range f.Damage {
		if d := &f.Damage[i]; d.Known && d.Current && !d.Tombstone {
			_ = t.fail("check", d.Address, makeLocation(uint16(f.Leaf), d.row().entry.in(f.Number)), blobstor.ErrCorrupt)
		}
	}
}

// leafAudit is what a leaf is compared with itself by.
type leafAudit struct {
	leaf    *leaf
	version *version // pinned
	files   []*audit // of the version
	lost    []lostSpan
	missing []listed
	reports []FileReport
	rescued []blobstor.Address // by Repair
}

// audit checks a leaf as it is at one moment between two commits. With an error there is none, or one without a
// recount.
func (l *leaf) audit(ctx context.Context) (*leafAudit, error) {
	if err := l.use(); err != nil {
		return nil, err
	}
	a, err := l.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := l.unpin(a.version); err != nil {
			l.tree.log.Warn("files not removed", "leaf", l.id, "err", err)
		}
	}()
	for _, f := range a.files {
		f.run(ctx)
	}
	a.addMissing()
	a.addForgotten()
	return a, a.recount()
}

// snapshot pins the leaf's version and notes the counters that belong to it.
func (l *leaf) snapshot(ctx context.Context) (*leafAudit, error) {
	a := &leafAudit{leaf: l}
	look := func() {
		a.version = l.pin()
		for i, f := range a.version.files {
			a.files = append(a.files, newAudit(f, i == len(a.version.files)-1))
		}
		l.mu.Lock()
		a.lost, a.missing = slices.Clone(l.lost), slices.Clone(l.missing)
		l.mu.Unlock()
	}
	if err := l.do(ctx, &request{look: look}, 0); a.version == nil {
		return nil, err
	}
	return a, nil // an error of the commit that others made in the same turn is theirs
}

// lookAround serves the requests that only look, and returns the others.
func lookAround(group []*groupcommit.Op[*request]) []*groupcommit.Op[*request] {
	looks := func(g *groupcommit.Op[*request]) bool { return g.Value.look != nil }
	if !slices.ContainsFunc(group, looks) {
		return group
	}
	rest := group[:0:0] // the group is the committer's
	for _, g := range group {
		if !looks(g) {
			rest = append(rest, g)
			continue
		}
		g.Value.look()
	}
	return rest
}

// addMissing adds the files that are listed and were not there when the leaf was opened.
func (a *leafAudit) addMissing() {
	for _, f := range a.files {
		if f.file.data.name != "" { // else it stands in for a file that is missing
			a.reports = append(a.reports, *f.report())
		}
	}
	for _, e := range a.missing {
		if e.end == unknownEnd {
			e.end = -1
		}
		a.reports = append(a.reports, FileReport{Leaf: int(a.leaf.id), Number: e.number, Size: e.end, Missing: true})
	}
	slices.SortFunc(a.reports, func(x, y FileReport) int { return int(int64(x.Number) - int64(y.Number)) })
}

// addForgotten adds ranges that Open found lost and that look whole now, because what proved the loss is gone.
func (a *leafAudit) addForgotten() {
	for _, lost := range a.lost {
		r := a.reportOf(lost.file)
		if r == nil {
			a.reports = append(a.reports, FileReport{Leaf: int(a.leaf.id), Number: lost.file})
			r = &a.reports[len(a.reports)-1]
		}
		if !r.Missing && !r.Short && r.Err == nil && len(r.Damage) == 0 {
			r.Damage = append(r.Damage, Damage{Offset: lost.from, Length: lost.to - lost.from})
		}
	}
}

func (a *leafAudit) reportOf(number uint32) *FileReport {
	for i := range a.reports {
		if a.reports[i].Number == number {
			return &a.reports[i]
		}
	}
	return nil
}

// recount counts what of each file is the newest of its address.
func (a *leafAudit) recount() error {
	views, err := a.liveViews()
	if err != nil {
		return err
	}
	certain := true
	for i, f := range a.files {
		certain = certain && f.certain
		if r := a.reportOf(f.file.number); r != nil && f.err == nil {
			if err := f.count(views[i], &r.Counted); err != nil {
				return err
			}
		}
	}
	certain = certain && len(a.missing) == 0 && len(a.lost) == 0
	for i := range a.reports {
		r := &a.reports[i]
		r.Uncertain = !certain
		for k := range r.Damage {
			a.judge(r.Number, &r.Damage[k])
		}
	}
	return nil
}

// liveViews is liveViews of what the audit found: an index that is not right is not asked.
func (a *leafAudit) liveViews() ([]*view, error) {
	for {
		views := make([]*view, len(a.files))
		for i, f := range a.files {
			views[i] = &view{file: f.file, inMemory: !f.trusted, kept: f.rows, live: make(bitset, f.distinct/64+1)}
		}
		if err := markLive(views); !errors.Is(err, errHealed) {
			return views, err
		}
	}
}

// judge finds out whether a damaged record is still the newest of its address.
func (a *leafAudit) judge(number uint32, d *Damage) {
	v := a.leaf.version.Load()
	f := byNumber(v.files, number)
	if !d.Known || f == nil {
		return
	}
	e := d.row()
	own, err := f.get(d.key, &d.Address)
	if err == nil && own != e.entry {
		return
	}
	newest, err := a.leaf.isNewest(v, f, &e, new(hit))
	d.Current = newest || err != nil // who cannot tell says so
}
