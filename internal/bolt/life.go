package bolt

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// enter begins a call, which ends with calls.Done.
func (db *DB) enter() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return blobstor.ErrClosed
	}
	db.calls.Add(1)
	return nil
}

// use returns the open file, after opening it again where a full disk left it stale. The use ends with release.
func (db *DB) use() (*handle, error) {
	for {
		h, err := db.tryUse()
		if h != nil || err != nil {
			return h, err
		}
		if err := db.reopen(); err != nil {
			return nil, err
		}
	}
}

// tryUse returns nothing if the file is stale.
func (db *DB) tryUse() (*handle, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.failed != nil {
		return nil, db.failed
	}
	if db.stale {
		return nil, nil
	}
	db.cur.uses++
	return db.cur, nil
}

// release ends a use, and closes the file after the last one.
func (db *DB) release(h *handle) {
	db.mu.Lock()
	h.uses--
	last := h.uses == 0
	db.mu.Unlock()
	if !last {
		return
	}
	if err := h.close(); err != nil {
		db.log.Error("bolt file closed", "err", err)
	}
}

// lose gives up the open file after a commit that failed: its map may show what the disk has not. After a full disk
// the next call opens it again, after anything else none does.
func (db *DB) lose(err error) {
	if !isNoSpace(err) {
		db.fail(err)
		return
	}
	db.ballast.drop(db.store.Dir)
	db.giveUp()
}

// giveUp ends the DB's own use of the open file, which the calls that run keep. Those that begin wait for another.
func (db *DB) giveUp() {
	db.mu.Lock()
	h := db.cur
	db.stale = true
	db.mu.Unlock()
	db.release(h)
}

// fail refuses every later call with err, and gives up the open file.
func (db *DB) fail(err error) {
	db.mu.Lock()
	h, stale := db.cur, db.stale
	db.failed, db.cur, db.stale = blobstor.Failed(err), nil, false
	db.mu.Unlock()
	if !stale { // else it was given up before
		db.release(h)
	}
}

// reopen opens a stale file again, with what is on disk. It waits until nobody reads the old map, for mapped pages
// stay cached. After a refusal, as where too many files are open, the next call tries again; after a failed sync, or
// damage, none does.
func (db *DB) reopen() error {
	db.reopening.Lock()
	defer db.reopening.Unlock()
	db.mu.Lock()
	stale, old := db.stale, db.cur
	db.mu.Unlock()
	if !stale {
		return nil // Another call did it.
	}
	<-old.gone
	h, err := db.openFile(trustCommits)
	if err != nil {
		if blobstor.IsFault(err) || errors.Is(err, blobstor.ErrFailed) {
			db.fail(err)
		}
		return err
	}
	db.mu.Lock()
	db.cur, db.stale = h, false
	db.mu.Unlock()
	return nil
}
