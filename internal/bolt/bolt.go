package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"sync"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// DB is an open store. Its methods are safe for concurrent use. A transaction must not be begun inside another one of
// the same goroutine: Close, Replace and a growing file wait for readers.
type DB struct {
	opts    Options
	log     *slog.Logger
	store   *durable.Store
	ballast ballast

	closeFirst bool // before a file is replaced: Windows refuses it while the old one is mapped

	writing chan struct{} // held by the one who commits or replaces the file; taken before mu and reopening

	calls     sync.WaitGroup // calls that run; none begins once closed is set
	closing   sync.Once
	reopening sync.Mutex // held by the one who opens what stale says must be; taken before mu

	mu     sync.Mutex
	closed bool
	failed error // why every call is refused; stale is set too
	stale  bool  // cur may show what the disk has not, and nobody gets it
	cur    *handle
}

// Open opens the store in dir. The error matches blobstor.ErrLayout if it is none, or another's, or must be made and
// Create is not set; blobstor.ErrInUse if it is open; and blobstor.ErrCorrupt if the file is damaged as far as Open
// looks: metas, freelist and length always, the pages of the last commit after an unclean stop, all pages of a file
// without a mark or written with NoSync.
func Open(dir string, o *Options) (*DB, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	opts := o.withDefaults()
	store, err := durable.OpenStore(dir, opts.storeOptions())
	if err != nil {
		return nil, err
	}
	db := &DB{
		opts:    opts,
		log:     opts.Logger,
		store:   store,
		writing: make(chan struct{}, 1),

		closeFirst: runtime.GOOS == "windows",
	}
	if err = db.open(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return db, nil
}

func (db *DB) open() error {
	d := db.store.Dir
	mark, trusted, err := findMark(d)
	if err != nil {
		return err
	}
	h, err := db.openFile(trusted)
	if err != nil {
		return err
	}
	if !db.opts.ReadOnly {
		if err = openMark(d, mark, db.opts.NoSync); err != nil {
			return errors.Join(err, h.close())
		}
		if _, err := d.Sweep(); err != nil {
			db.log.Warn("temporary files stay", "err", err)
		}
		db.ballast.open(d, db.opts.Ballast, db.log)
	}
	db.cur = h
	return nil
}

// openFile opens the bbolt file, after looking at it as closely as its past asks for.
func (db *DB) openFile(trusted trust) (*handle, error) {
	f, err := db.openPlain()
	if err != nil {
		return nil, err
	}
	h, err := db.openChecked(f, trusted)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return h, nil
}

func (db *DB) openPlain() (*durable.File, error) {
	open := db.store.Dir.OpenRW
	if db.opts.ReadOnly {
		open = db.store.Dir.Open
	}
	f, err := open(fileName)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) {
		return nil, fmt.Errorf("%w: %w", blobstor.ErrCorrupt, err)
	}
	return f, err
}

func (db *DB) openChecked(f *durable.File, trusted trust) (*handle, error) {
	if trusted != trustClosed && !db.opts.ReadOnly {
		// What a process that died left in the cache is neither lost later nor trusted.
		if err := f.Datasync(); err != nil {
			return nil, err
		}
		f.DropCache()
	}
	if err := verify(f, trusted); err != nil {
		return nil, err
	}
	h, err := openBolt(f, &db.opts)
	if err != nil {
		return nil, err
	}
	err = h.view(func(tx *Tx) error {
		for i := range h.names {
			tx.Bucket(i)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, h.closeBolt())
	}
	return h, nil
}

// View runs fn in a read transaction, which sees the last commit that ended well when it began. It returns fn's error
// as it is; else one that matches blobstor.ErrCorrupt where bbolt met damage, blobstor.ErrFailed after a failed
// commit, or blobstor.ErrClosed. What fn finds is valid until it returns, and read-only.
func (db *DB) View(fn func(*Tx) error) error {
	h, err := db.begin()
	if err != nil {
		return err
	}
	defer db.end(h)
	return h.view(fn)
}

// Ready returns the error with which View would begin, nil if it would run its function.
func (db *DB) Ready() error {
	h, err := db.begin()
	if err == nil {
		db.end(h)
	}
	return err
}

// Update runs fn in a write transaction and commits it; calls come one after the other. It returns nil once the
// transaction is durable, unless the store was opened with NoSync. An error of fn rolls back and is returned as it
// is, and so does a panic of fn go on. Otherwise the error matches blobstor.ErrUncertain if the commit failed and may
// or may not be on disk, and blobstor.ErrNoSpace besides if the disk is full; blobstor.ErrCorrupt if bbolt met
// damage; blobstor.ErrFailed after one of these that was not a full disk; blobstor.ErrReadOnly or blobstor.ErrClosed.
func (db *DB) Update(fn func(*Tx) error) error {
	db.writing <- struct{}{}
	defer func() { <-db.writing }()
	h, err := db.begin()
	if err != nil {
		return err
	}
	defer db.end(h)
	if db.opts.ReadOnly {
		return blobstor.ErrReadOnly
	}
	defer func() { // also when fn panics
		if h.broken != nil {
			db.lose(h.broken)
		}
	}()
	lost, err := h.update(fn)
	switch {
	case lost && h.broken == nil:
		db.lose(err)
	case err == nil:
		db.ballast.retake(db.store.Dir)
	}
	return err
}

func (db *DB) lockWrites(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case db.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pressed reports whether the ballast is gone: the disk was full and has not had the room for it since. Until it is
// back the caller should only write what makes room.
func (db *DB) Pressed() bool { return db.ballast.missing.Load() }

// Close waits for the calls that run, makes durable what NoSync left, and releases the store. Every later call returns
// blobstor.ErrClosed, and so does one that waits for another's commit; Close twice is fine.
func (db *DB) Close() (err error) {
	db.closing.Do(func() { err = db.close() })
	return err
}

func (db *DB) close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	db.calls.Wait()
	var err error
	whole := !db.stale
	if whole {
		if db.opts.NoSync {
			err = db.cur.file.Datasync()
		}
		err = errors.Join(err, db.cur.close())
	}
	// After a failure the mark stays, so that the next Open trusts only the disk.
	if whole && err == nil && !db.opts.ReadOnly {
		err = closeMark(db.store.Dir, db.opts.NoSync)
	}
	return errors.Join(err, db.store.Close())
}
