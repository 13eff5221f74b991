package fstree

import (
	"context"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Reshape changes the depth of the store, 0 to 3 levels of directories, and moves every blob to its new place. All
// other calls go on meanwhile. When it returns nil, only the new depth is in force, durably; an Open whose
// [Options.Depth] is set must name it from then on. After a Reshape that did not end, by an error, by ctx, by
// Close or by a crash, both depths are in force, also for a later Open, until a Reshape goes on to the same depth,
// turns back to the old one, or goes to a third one, for which it first ends what was begun.
//
// It returns blobstor.ErrReadOnly if the store is read-only or becomes so, and blobstor.ErrClosed after Close, which
// does not wait for it. Any error of the disk ends it, as does a missing directory of the first level, for nobody
// knows what was in it. Of several calls one runs at a time; the others wait. The file system must know more than
// one name for a file. A store that is not open is opened for this.
func (t *Tree) Reshape(ctx context.Context, depth int) error {
	return t.reportPlain("reshape", t.reshape(ctx, depth))
}

func (t *Tree) reshape(ctx context.Context, depth int) error {
	if depth < 0 || depth > maxDepth {
		return misuse(fmt.Sprintf("depth %d, want 0 to %d", depth, maxDepth))
	}
	select {
	case t.reshaping <- struct{}{}:
		defer func() { <-t.reshaping }()
	case <-t.closing:
		return blobstor.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	// The sweep looks where blobs lay when it began, so it comes first.
	if err := t.sweep.wait(ctx, t.closing); err != nil {
		return err
	}
	for {
		done, err := t.aim(ctx, depth)
		if done || err != nil {
			return err
		}
		if err := t.empty(ctx); err != nil {
			return err
		}
		if err := t.endReshape(ctx); err != nil {
			return err
		}
	}
}

// aim puts a layout in force in which blobs move towards the depth, and reports whether nothing is left to move. A
// Reshape to another depth that has not ended must end first, unless this turns it back.
func (t *Tree) aim(ctx context.Context, depth int) (done bool, err error) {
	if err := t.enterWrite(ctx); err != nil {
		return false, err
	}
	defer t.leaveWrite()
	l := t.layout.Load()
	switch {
	case l.depth == depth:
		return !l.between(), nil
	case l.between() && l.old != depth:
		return false, nil
	case l.depth == 0 && !l.between():
		// As soon as the layout has a first level, a directory that is missing there is damage.
		if err := t.store.Dir.MakeDirs(firstLevel()...); err != nil {
			return false, err
		}
	}
	t.log.Info("fstree: reshape", "depth", depth, "from", l.depth)
	return false, t.setLayout(&layout{depth: depth, old: l.depth})
}

// empty moves all blobs from the old places to the new ones. No write adds a name to an old directory any more, so
// one that was found empty stays so.
func (t *Tree) empty(ctx context.Context) error {
	l := t.layout.Load()
	for key, err := range leaves(rootKey, l.old, 0, t.listing(ctx)) {
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = t.emptyDir(ctx, l, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyDir moves what it finds in a directory, and reports whether it found anything.
func (t *Tree) emptyDir(ctx context.Context, l *layout, key dirKey) (bool, error) {
	names, err := t.listing(ctx)(key)
	if err != nil {
		return false, err
	}
	found := t.belonging(names, key)
	for group := range moveGroups(found, l.depth) {
		if err := t.move(ctx, l, key, group); err != nil {
			return false, err
		}
	}
	return len(found) > 0, nil
}

// belonging returns the blobs among the names of a directory, in the order of locations. What lies in the wrong
// directory was put there by somebody else, and stays.
func (t *Tree) belonging(names []string, dir dirKey) []place {
	var found []place
	for _, name := range names {
		if addr, ok := parseName(name); ok {
			if p := t.place(addr); p.dir(dir.level()) == dir {
				found = append(found, p)
			}
		}
	}
	sortPlaces(found)
	return found
}

// endReshape records that nothing lies at the old depth any more. What a failed sync left behind may still: then the
// store must be opened again, which makes sure.
func (t *Tree) endReshape(ctx context.Context) error {
	if err := t.enterWrite(ctx); err != nil {
		return err
	}
	defer t.leaveWrite()
	if err := t.dirs.failed(); err != nil {
		return err
	}
	depth := t.layout.Load().depth
	t.log.Info("fstree: reshape has ended", "depth", depth)
	return t.setLayout(&layout{depth: depth, old: noDepth})
}
