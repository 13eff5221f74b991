package fstree

import (
	"context"
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// SetReadOnly refuses writes with blobstor.ErrReadOnly, or takes them again. Before it returns nil the writes that
// run have ended and background work has stopped; if ctx ends first, writes go on. Reads, Readers, All and Scrub are
// not concerned; a Reshape ends with blobstor.ErrReadOnly at its next step.
func (t *Tree) SetReadOnly(ctx context.Context, on bool) error {
	return t.reportPlain("set read-only", t.setReadOnly(ctx, on))
}

func (t *Tree) setReadOnly(ctx context.Context, on bool) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.calls.leave()
	if t.opts.ReadOnly {
		if on {
			return nil
		}
		return blobstor.ErrReadOnly
	}
	select {
	case t.switching <- struct{}{}:
		defer func() { <-t.switching }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !on {
		t.writes.open()
		t.sweep.start(t)
		return nil
	}
	select {
	case <-t.writes.shut(blobstor.ErrReadOnly):
		t.sweep.stop()
		return nil
	case <-ctx.Done():
		t.writes.open()
		return ctx.Err()
	}
}

// Close waits for the calls that run and releases the store. Writers that were not committed discard what they
// have; Readers, loops over All, Scrub and Reshape get blobstor.ErrClosed at their next step.
func (t *Tree) Close() (err error) {
	t.closeOnce.Do(func() { err = t.close() })
	return t.reportPlain("close", err)
}

func (t *Tree) close() (err error) {
	left := t.calls.shut(blobstor.ErrClosed)
	close(t.closing)
	<-left
	t.sweep.stop()
	for w := range t.writers {
		err = errors.Join(err, w.discard())
	}
	// After a failed sync the mark stays, so that the next Open syncs what this one could not.
	if !t.opts.ReadOnly && t.dirs.failed() == nil {
		err = errors.Join(err, closeMark(t.store.Dir, t.opts.NoSync))
	}
	return errors.Join(err, t.dirs.close(), t.store.Close())
}
