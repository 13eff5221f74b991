package pilorama

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

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

	// Queue is how many calls that write to one tree may wait for their commit; 0 is 4096. More of them wait for a place
	// in the queue, each until its context ends.
	Queue int

	// Ballast is how many bytes are set aside for Drop and Truncate on a full disk; 0 is 16 MiB, negative is none. Until
	// it could be set aside, also after Open, all other writes are refused with [ErrPressed].
	Ballast int64

	// Logger gets what goes wrong in the background; nil is silent.
	Logger *slog.Logger

	// Hooks are called on events worth counting: here that is Fault only, in a goroutine of its own.
	Hooks blobstor.Hooks

	// For tests.
	boltCommit func(commit func() error) error
}

const defaultQueue = 4096

// Validate reports every field that no database could be opened with.
func (o *Options) Validate() error {
	var errs []error
	bad := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New("pilorama: "+text))
		}
	}
	bad(o.Create && o.ReadOnly, "Create has no effect with ReadOnly")
	bad(o.NoSync && o.ReadOnly, "NoSync has no effect with ReadOnly")
	bad(o.Queue < 0, "Queue is negative")
	return errors.Join(errs...)
}

// DB is an open database of trees. It is safe for concurrent use.
type DB struct {
	opts      Options
	file      *bolt.DB
	committer *groupcommit.Committer[*request]
	queues    queues
	arena     []byte // the committer's, for values of one transaction

	mu       sync.RWMutex // held for reading by calls inside
	closed   bool
	readOnly bool

	sweeping sync.Mutex // one Drop or Truncate at a time
}

// Open opens a database in a directory of its own. The error matches [blobstor.ErrLayout] if the directory has none, or
// another's, or one of a later version; [blobstor.ErrInUse] if it is open; [blobstor.ErrCorrupt] if it is damaged as
// far as Open looks.
func Open(dir string, opts *Options) (*DB, error) {
	db, err := open(dir, opts)
	return db, wrap("open", Tree{}, err)
}

func open(dir string, opts *Options) (*DB, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	file, err := bolt.Open(dir, &bolt.Options{
		Kind: "pilorama", Create: opts.Create, ReadOnly: opts.ReadOnly, NoSync: opts.NoSync, Owner: opts.Owner, Perm: opts.Perm,
		Buckets: []string{bucketName}, Ballast: opts.Ballast, Logger: opts.Logger, Commit: opts.boltCommit,
	})
	if err != nil {
		return nil, err
	}
	db := &DB{opts: *opts, file: file, readOnly: opts.ReadOnly}
	db.queues.limit = opts.Queue
	if opts.Queue == 0 {
		db.queues.limit = defaultQueue
	}
	db.committer = groupcommit.New(groupcommit.Limits{MaxOps: groupOps, MaxBytes: groupBytes}, db.commit, nil)
	if err := db.start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return db, nil
}

// version is that of the layout of keys and values.
const version = 1

// start writes the version of a new file, or compares it.
func (db *DB) start() error {
	fresh, key := false, append([]byte{settings}, keyVersion...)
	err := db.file.View(func(tx *bolt.Tx) error {
		t := txn{tx: tx}
		v, err := t.get(key)
		if err != nil {
			return err
		}
		if first, _ := t.cursor().First(); first == nil {
			fresh = true
			return nil
		}
		switch {
		case v == nil:
			return corrupt("the version is missing")
		case len(v) != 1 || v[0] != version:
			return fmt.Errorf("%w: pilorama of version %x, this is %d", blobstor.ErrLayout, v, version)
		}
		return nil
	})
	if err != nil || !fresh || db.opts.ReadOnly {
		return err
	}
	return db.file.Update(func(tx *bolt.Tx) error {
		t := txn{tx: tx}
		return t.put(key, []byte{version})
	})
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

// view runs fn with a tree that must be known, in a read transaction.
func (db *DB) view(ctx context.Context, op string, tree Tree, fn func(v *branch) error) error {
	err := tree.validate()
	if err == nil {
		err = db.read(ctx, func(t *txn) error {
			b, err := t.branch(tree)
			if err != nil {
				return err
			}
			if b.n == 0 {
				return missing("tree " + tree.String())
			}
			return fn(b)
		})
	}
	return db.told(op, tree, err)
}

// read runs fn in a read transaction.
func (db *DB) read(ctx context.Context, fn func(t *txn) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return db.file.View(func(tx *bolt.Tx) error { return fn(&txn{tx: tx}) })
}

// told wraps an error of a read and tells the Fault hook of it.
func (db *DB) told(op string, tree Tree, err error) error {
	db.tellFault(op, err)
	return wrap(op, tree, err)
}

// tellFault tells the Fault hook of an error. It does not wait for the hook, which may want what is held here.
func (db *DB) tellFault(op string, err error) {
	if hook := db.opts.Hooks.Fault; hook != nil && blobstor.IsFault(err) {
		go hook(op, err)
	}
}

// SetReadOnly refuses writes with ErrReadOnly from the moment it returns, or takes them again. It waits for the calls
// inside. A database that was opened read-only stays so.
func (db *DB) SetReadOnly(ctx context.Context, on bool) error {
	if err := ctx.Err(); err != nil {
		return wrap("set read-only", Tree{}, err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.closed:
		return wrap("set read-only", Tree{}, blobstor.ErrClosed)
	case !on && db.opts.ReadOnly:
		return wrap("set read-only", Tree{}, blobstor.ErrReadOnly)
	}
	db.readOnly = on
	return nil
}

// Compact copies the database to a fresh file without free pages, such as Drop and Truncate leave, which takes the place
// of the old one when it is durable. Reads go on; writes wait. The disk needs room for both.
func (db *DB) Compact(ctx context.Context) error {
	err := db.enterWrite()
	if err == nil {
		err = db.file.Compact(ctx)
		db.leave()
	}
	return db.told("compact", Tree{}, err)
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
	return wrap("close", Tree{}, db.file.Close())
}
