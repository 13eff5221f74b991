package bolt

import (
	"context"
	"errors"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// Replace writes a fresh file beside the old one and puts it in its place. fill gets a read transaction of the old
// file and a function that runs one write transaction of the fresh one, which has the static buckets, all empty. Those
// transactions are held in memory until they end, so fill bounds them; they are synced once, at the end.
//
// When Replace returns nil the fresh file is durable under its name. After an error of fill, which is returned as it
// is, or a full disk the old one stays. Readers of the old file go on until they end. Update waits meanwhile; other
// calls do not.
func (db *DB) Replace(ctx context.Context, fill func(ctx context.Context, from *Tx, to func(write func(*Tx) error) error) error) error {
	if err := db.lockWrites(ctx); err != nil {
		return err
	}
	defer func() { <-db.writing }()
	h, err := db.begin()
	if err != nil {
		return err
	}
	defer db.calls.Done()
	release := sync.OnceFunc(func() { db.release(h) })
	defer release()
	if db.opts.ReadOnly {
		return blobstor.ErrReadOnly
	}
	f, err := newFresh(db.store.Dir, &db.opts)
	if err != nil {
		return noSpace(err)
	}
	filled := false
	defer func() { // also when fill panics
		if !filled {
			if err := f.discard(); err != nil {
				db.log.Warn("temporary file stays", "err", err)
			}
		}
	}()
	if err = h.view(func(tx *Tx) error { return fill(ctx, tx, f.write) }); err != nil {
		return err
	}
	filled = true
	next, err := db.openFresh(f)
	if err != nil {
		return errors.Join(noSpace(err), f.temp.Discard())
	}
	if db.closeFirst {
		db.reopening.Lock()
		defer db.reopening.Unlock()
		db.giveUp()
		release()
		<-h.gone
	}
	return noSpace(db.install(f, next))
}

// install gives the fresh file, open as h, its name and to the calls that begin from now on.
func (db *DB) install(f *fresh, h *handle) error {
	if err := f.temp.Replace(fileName); err != nil {
		return errors.Join(err, h.closeBolt(), f.temp.Discard())
	}
	if err := db.store.Dir.Sync(); err != nil {
		db.fail(err) // Which file the name leads to is not known.
		return errors.Join(err, h.close())
	}
	db.mu.Lock()
	old, given := db.cur, db.stale
	db.cur, db.stale = h, false
	db.mu.Unlock()
	if !given {
		db.release(old)
	}
	return nil
}

// openFresh makes the file durable and opens it as Open would.
func (db *DB) openFresh(f *fresh) (*handle, error) {
	if err := f.finish(); err != nil {
		return nil, err
	}
	return db.openChecked(f.temp.File, trustClosed)
}
