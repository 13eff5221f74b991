package bolt

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// begin begins a call, and its use of the open file, which it opens again where a full disk left it stale. Both end
// with end.
func (db *DB) begin() (*handle, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, blobstor.ErrClosed
	}
	db.calls.Add(1)
	var err error
	for db.failed == nil && db.stale && err == nil {
		db.mu.Unlock()
		err = db.reopen()
		db.mu.Lock()
	}
	if err == nil {
		err = db.failed
	}
	if err != nil {
		db.calls.Done()
		return nil, err
	}
	db.cur.uses++
	return db.cur, nil
}

func (db *DB) end(h *handle) {
	db.release(h)
	db.calls.Done()
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
	h, given := db.cur, db.stale
	db.stale = true
	db.mu.Unlock()
	if !given {
		db.release(h)
	}
}

// fail refuses every later call with err, and gives up the open file.
func (db *DB) fail(err error) {
	db.mu.Lock()
	db.failed = blobstor.Failed(err)
	db.mu.Unlock()
	db.giveUp()
}

// reopen opens a stale file again, with what is on disk. It waits until nobody reads the old map, for mapped pages
// stay cached. After a refusal, as where too many files are open, the next call tries again; after a failed sync, or
// damage, none does.
func (db *DB) reopen() error {
	db.reopening.Lock()
	defer db.reopening.Unlock()
	db.mu.Lock()
	wanted, old := db.stale && db.failed == nil, db.cur
	db.mu.Unlock()
	if !wanted {
		return nil // Another call did it, or failed.
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
