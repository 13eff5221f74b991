package blobovnicza

import (
	"context"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// Compact gives the space of deleted blobs back: file by file, the sparsest first, it moves what is live behind the
// end of the active file and removes the rest, until no file's part of dead bytes reaches
// [CompactOptions.DeadRatio]; an active file with so many is ended first. It runs at full speed beside other calls,
// also on a full disk, where it begins with what frees space without a copy. Each file that it finishes stays
// finished: it may be cancelled by ctx or Close at any time, and a crash costs nothing but the copies of one file.
// When it returns nil, the copies and the removals are durable. A file with damaged blobs stays, and is an error that
// matches ErrCorrupt after all others were done; ErrNoSpace says that what is live in a file has nowhere to go,
// ErrReadOnly and ErrClosed what they always do. Concurrent calls wait for each other.
func (t *Tree) Compact(ctx context.Context) error {
	if err := t.compact(ctx); err != nil {
		return t.fail("compact", blobstor.Address{}, "", err)
	}
	return nil
}

func (t *Tree) compact(ctx context.Context) error {
	ctx, end, err := t.job(ctx)
	if err != nil {
		return err
	}
	defer end()
	t.turns.call(1)
	defer func() { t.turns.call(-1); t.wakeKeeper() }()
	err = t.compactAll(ctx)
	for done := int64(-1); noSpace(err) && done < t.compacted.Load(); err = t.compactAll(ctx) {
		done = t.compacted.Load() // what came back meanwhile may be enough for those that had no room
	}
	if err != nil && t.keeper.ctx.Err() != nil {
		return blobstor.ErrClosed
	}
	return err
}

func (t *Tree) compactAll(ctx context.Context) (errs error) {
	for _, l := range t.leaves {
		err := t.compactLeaf(ctx, l)
		errs = errors.Join(errs, err)
		if err != nil && !errors.Is(err, blobstor.ErrCorrupt) && !noSpace(err) {
			break
		}
	}
	return errs
}

// job begins a call that may take long. Close ends its context and waits for end.
func (t *Tree) job(ctx context.Context) (_ context.Context, end func(), err error) {
	call, err := t.calls.enter(ctx, &blobstor.Address{})
	if err != nil {
		return nil, nil, err
	}
	defer call.RUnlock()
	t.jobs.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.keeper.ctx, cancel)
	return ctx, func() { stop(); cancel(); t.jobs.Done() }, nil
}

func (t *Tree) compactLeaf(ctx context.Context, l *leaf) error {
	if err := l.use(); err != nil {
		return err
	}
	err := t.unlessReadOnly(func() error { return l.endActive(ctx) })
	if noSpace(err) { // what is full already may give it some
		err = errors.Join(t.compactFull(ctx, l), t.unlessReadOnly(func() error { return l.endActive(ctx) }))
	}
	if err != nil {
		return err
	}
	return t.compactFull(ctx, l)
}

func (t *Tree) compactFull(ctx context.Context, l *leaf) error {
	if err := t.unlessReadOnly(l.saveIndexes); err != nil && !noSpace(err) {
		return err
	}
	for {
		if err := t.turns.take(ctx); err != nil {
			return err
		}
		c, roomless := l.sparsest()
		enough := c == nil || c.ratio() < t.opts.Compact.DeadRatio
		var err error
		if !enough {
			err = c.run(ctx)
		} else if roomless >= t.opts.Compact.DeadRatio {
			err = errTight
		}
		t.turns.end()
		if enough || err != nil {
			return errors.Join(err, l.flaws())
		}
	}
}

// endActive makes the active file a full one if so much of it is dead that it should be compacted.
func (l *leaf) endActive(ctx context.Context) error {
	f := l.active()
	if float64(f.dead.Load()) < l.tree.opts.Compact.DeadRatio*float64(f.end.Load()) || f.dead.Load() == 0 {
		return nil
	}
	l.victim.Store(f)
	return l.retire(ctx, f, copying)
}

// retire makes a file a full one if it is active.
func (l *leaf) retire(ctx context.Context, f *file, how need) error {
	return l.do(ctx, &request{task: func() error {
		if l.active() != f {
			return nil
		}
		return l.startNext(how)
	}}, 0)
}

// flaws is an error for files that must stay because blobs in them are damaged.
func (l *leaf) flaws() (err error) {
	for _, f := range l.version.Load().files {
		if f.flawed() {
			err = errors.Join(err, corruptFile(l, f))
		}
	}
	return err
}

// compactInBackground compacts the sparsest files of all leaves as long as too much of the whole is dead, or space is
// short.
func (t *Tree) compactInBackground(ctx context.Context) error {
	ctx, end := t.turns.background(ctx)
	defer end()
	for !t.readOnly.Load() {
		if t.turns.take(ctx) != nil {
			return nil
		}
		c := t.choose()
		var err error
		if c != nil {
			c.pace = pace{rate: t.opts.Compact.Rate}
			c.polite = true
			err = c.run(ctx)
		}
		t.turns.end()
		if t.opts.MaxSize > 0 || c == nil || err != nil {
			t.pressed.Store(false) // whoever is refused next sets it again
		}
		if ctx.Err() != nil {
			return nil
		}
		if c == nil || err != nil {
			return err
		}
	}
	return nil
}

// compaction is the removal of one file.
type compaction struct {
	leaf   *leaf
	file   *file
	gain   int64 // bytes that it frees, at least
	pace   pace
	polite bool // it leaves half of the time to others

	damaged bool // a live record cannot be read
}

func (c *compaction) ratio() float64 { return float64(c.gain) / float64(c.file.end.Load()) }

// run moves what is live in the file and removes it. It leaves the file alone if a live record is damaged.
func (c *compaction) run(ctx context.Context) error {
	l := c.leaf
	l.victim.Store(c.file)
	v, dead := l.pin(), c.file.dead.Load()
	err := c.move(ctx)
	err = errors.Join(err, l.unpin(v))
	if errors.Is(err, blobstor.ErrCorrupt) {
		c.file.flawedAt.Store(dead + 1)
		l.tree.log.Error("file stays", "leaf", l.id, "file", c.file.number, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.tree.unlessReadOnly(func() error { return l.drop(ctx, c.file) }); err != nil {
		return err
	}
	l.tree.compacted.Add(1)
	// Before anybody else takes the space that came back.
	return errors.Join(l.tree.unlessReadOnly(l.tree.replaceAside), l.collectTombs())
}

// drop makes the leaf forget files from which all that is live was moved, and removes them.
func (l *leaf) drop(ctx context.Context, files ...*file) error {
	req := &request{task: func() error { return l.forget(files) }}
	if err := l.do(ctx, req, 0); err != nil {
		return err
	}
	return l.doom(files)
}

// forget writes a manifest that does not list the files. It is a leader's task.
func (l *leaf) forget(files []*file) error {
	v := l.version.Load()
	keep := slices.DeleteFunc(slices.Clone(v.files), func(f *file) bool { return slices.Contains(files, f) })
	if l.tree.opts.NoSync { // what replaces the files must be on disk all the same
		if err := l.syncActive(); err != nil {
			return err
		}
	}
	payload := appendManifest(nil, l.listing(keep[:len(keep)-1]))
	o := &op{hdr: header{kind: kindManifest, length: uint32(len(payload))}, data: payload}
	if l.held.end.Load()+o.hdr.size() > l.limit {
		return l.startWithout(files)
	}
	_, err := l.store([]*op{o})
	if noSpace(err) {
		return l.startWithout(files)
	}
	if err != nil {
		return err
	}
	l.publish([]*op{o})
	l.setFiles(keep)
	return nil
}

// startWithout makes a new active file whose manifest does not list the files. What is set aside for deletes is used
// only if all else fails: the files give it back.
func (l *leaf) startWithout(files []*file) error {
	err := l.startNext(copying, files...)
	if noSpace(err) {
		err = l.startNext(urgent, files...)
	}
	return err
}

// syncActive makes durable what was not synced: full files were, when they were sealed.
func (l *leaf) syncActive() error {
	if err := l.w.Datasync(); err != nil {
		return l.revoke(err)
	}
	return l.inDir((*durable.Dir).Sync)
}
