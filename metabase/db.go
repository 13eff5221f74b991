package metabase

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
	"github.com/granary-store/granary/internal/groupcommit"
)

// Options are what [Open] can be told. The zero value opens an existing database for reading and writing.
type Options struct {
	// Create makes the database if the directory is missing or empty. An existing one is opened.
	Create bool

	// ReadOnly changes nothing on disk; the database may be open read-only more than once at the same time.
	ReadOnly bool

	// NoSync leaves syncing to the system: power loss may then take, or damage, what was acknowledged.
	NoSync bool

	// Owner says whose database this is, at most 64 bytes. One made with another owner is refused; empty accepts any.
	Owner []byte

	// Perm is the mode of files; 0 is 0600.
	Perm fs.FileMode

	// Epoch returns the current epoch. It is called before every transaction, which an operation has one of; Collect and
	// Expired may have more. Nil is epoch 0, in which nothing expires.
	Epoch func() uint64

	// Locks are held by the program over the blob and the record of a Put, and taken by [DB.Collect]. Nil takes none.
	Locks *blobstor.Locks

	// ScanLimit is how many objects a Search looks at before it returns what it has, and Collect and Expired before they
	// go on in another transaction; 0 is 10,000.
	ScanLimit int

	// Ballast is how many bytes are set aside for removals on a full disk; 0 is 16 MiB, negative is none. Until it could
	// be set aside, also after Open, whatever is no removal is refused with [ErrPressed]. It must be more than what others
	// write to the same disk before they heed that.
	Ballast int64

	// Logger gets what goes wrong in the background; nil is silent.
	Logger *slog.Logger

	// Hooks are called on events worth counting: here that is Fault only, in a goroutine of its own.
	Hooks blobstor.Hooks

	// For tests.
	boltLog    bolt.Logger
	boltCommit func(commit func() error) error
	watch      func(op string, cursors int) // after the last use of every transaction
	meanwhile  func()                       // before a read transaction begins
	pending    int                          // how many entries the backlog has before the index is written; 0 is many
}

const defaultScanLimit = 10_000

// Validate reports every field that no database could be opened with.
func (o *Options) Validate() error {
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New("metabase: "+text))
		}
	}
	bad(o.Create && o.ReadOnly, "Create has no effect with ReadOnly")
	bad(o.NoSync && o.ReadOnly, "NoSync has no effect with ReadOnly")
	bad(o.ScanLimit < 0, "ScanLimit is negative")
	return errors.Join(errs...)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	opts      Options
	file      *bolt.DB
	committer *groupcommit.Committer[*operation]
	dict      dictionary
	backlog   atomic.Pointer[backlogs]
	lost      error // if it is not known what the index of attributes lacks

	// The committer's.
	scratch  scratch
	logged   uint64 // the last key of what is pending
	indexing indexing

	mu       sync.RWMutex // held for reading by calls inside
	closed   bool
	readOnly bool

	sweeping sync.Mutex // one Collect or Drop at a time
	at       place      // where the next Collect begins
}

// Open opens a database in a directory of its own.
func Open(dir string, opts *Options) (*DB, error) {
	db, err := open(dir, opts)
	return db, blobstor.Wrap("open", blobstor.Address{}, "", err)
}

func open(dir string, opts *Options) (*DB, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	file, err := bolt.Open(dir, &bolt.Options{
		Kind: "metabase", Create: opts.Create, ReadOnly: opts.ReadOnly, NoSync: opts.NoSync, Owner: opts.Owner,
		Perm: opts.Perm, Buckets: []string{bucketName}, Ballast: opts.Ballast, Logger: opts.Logger, BoltLog: opts.boltLog, Commit: opts.boltCommit,
	})
	if err != nil {
		return nil, err
	}
	db := &DB{opts: *opts, file: file, readOnly: opts.ReadOnly}
	db.committer = groupcommit.New(groupcommit.Limits{MaxOps: groupOps, MaxBytes: groupBytes}, db.commit, db.index)
	db.backlog.Store(&backlogs{now: newBacklog()})
	if err := db.start(migrations, version); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return db, nil
}

func (db *DB) scanLimit() int { return cmp.Or(db.opts.ScanLimit, defaultScanLimit) }

func (db *DB) epoch() uint64 {
	if db.opts.Epoch == nil {
		return 0
	}
	return db.opts.Epoch()
}

// enter begins a call; leave ends it.
func (db *DB) enter() error {
	db.mu.RLock()
	if db.closed {
		db.mu.RUnlock()
		return blobstor.ErrClosed
	}
	return nil
}

func (db *DB) leave() { db.mu.RUnlock() }

func (db *DB) enterWrite() error {
	if err := db.enter(); err != nil {
		return err
	}
	if db.readOnly {
		db.leave()
		return blobstor.ErrReadOnly
	}
	return nil
}

// writable returns why a write would be refused now, nil if it would be taken.
func (db *DB) writable() error {
	err := db.enterWrite()
	if err == nil {
		db.leave()
	}
	return err
}

// view runs fn in a read transaction, and wraps its error.
func (db *DB) view(ctx context.Context, op string, addr blobstor.Address, fn func(t *txn) error) error {
	epoch, err := db.epoch(), ctx.Err()
	if err == nil {
		err = db.enter()
	}
	if err == nil {
		defer db.leave()
		if !addr.Container.IsZero() && db.lacks(addr.Container) {
			err = db.viewNothing(fn)
		} else {
			err = db.viewLast(op, epoch, fn)
		}
	}
	err = blobstor.Wrap(op, addr, "", err)
	db.tellFault(op, err)
	return err
}

// viewLast runs fn in a read transaction that has the backlog of its time: if the index was written while it began, it
// begins again.
func (db *DB) viewLast(op string, epoch uint64, fn func(t *txn) error) (err error) {
	for again := true; again; {
		again = false
		behind := db.backlog.Load()
		if db.opts.meanwhile != nil {
			db.opts.meanwhile()
		}
		err = db.file.View(func(tx *bolt.Tx) error {
			if again = db.backlog.Load() != behind; again {
				return nil
			}
			t, err := db.begin(tx)
			if err != nil {
				return err
			}
			t.behind, t.epoch = behind, epoch
			err = fn(t)
			db.watched(op, tx)
			return err
		})
	}
	return err
}

// lacks reports whether no object of a container was recorded, as the last commit left it.
func (db *DB) lacks(container blobstor.ID) bool {
	_, ok, _ := db.dict.get(container)
	return !ok && !db.dict.doubtful.Load()
}

// nothing is a dictionary without containers.
var nothing dictionary

// viewNothing runs fn as if it saw an empty database, which needs no transaction.
func (db *DB) viewNothing(fn func(t *txn) error) error {
	if err := db.file.Ready(); err != nil {
		return err
	}
	return fn(&txn{db: db, known: &nothing})
}

// begin returns a read transaction. Where the dictionary in memory may be wrong it has one of its own.
func (db *DB) begin(tx *bolt.Tx) (*txn, error) {
	t := &txn{db: db, tx: tx, known: &db.dict}
	if !db.dict.doubtful.Load() {
		return t, nil
	}
	t.known = new(dictionary)
	return t, t.known.load(t)
}

// tellFault tells the Fault hook of an error. It does not wait for the hook, which may want what is held here.
func (db *DB) tellFault(op string, err error) {
	if hook := db.opts.Hooks.Fault; hook != nil && blobstor.IsFault(err) {
		go hook(op, err)
	}
}

func (db *DB) watched(op string, tx *bolt.Tx) {
	if db.opts.watch != nil {
		db.opts.watch(op, tx.Cursors())
	}
}

// SetReadOnly refuses writes with ErrReadOnly from the moment it returns, or takes them again. It waits for the calls
// inside. A database that was opened read-only stays so.
func (db *DB) SetReadOnly(ctx context.Context, on bool) error {
	if err := ctx.Err(); err != nil {
		return blobstor.Wrap("set read-only", blobstor.Address{}, "", err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.closed:
		return blobstor.Wrap("set read-only", blobstor.Address{}, "", blobstor.ErrClosed)
	case !on && db.opts.ReadOnly:
		return blobstor.Wrap("set read-only", blobstor.Address{}, "", blobstor.ErrReadOnly)
	}
	db.readOnly = on
	return nil
}

// Close waits for the calls inside and closes the database. Every later call returns ErrClosed; Close itself returns
// nil again.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	db.committer.Close()
	return blobstor.Wrap("close", blobstor.Address{}, "", db.file.Close())
}

// isAbsent reports whether an error says that the object was never stored, and nothing else.
func isAbsent(err error) bool {
	e, ok := errors.AsType[*blobstor.Error](err)
	return ok && e.Err == blobstor.ErrNotFound //nolint:errorlint // those that say more match it
}
