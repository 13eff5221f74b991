package bolt

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

const (
	fileName = "bolt"
	pageSize = 4096 // whatever the system's is, so that a file can move to another machine
)

// mapSize is how much address space bbolt maps at first, for a file of size bytes. Beyond it a growing file must be
// mapped anew, for which a commit waits until no reader is left. On Windows the file itself would become that long.
func mapSize(size int64) int {
	if runtime.GOOS == "windows" || ^uint(0)>>32 == 0 {
		return 0
	}
	return int(max(16<<30, 2*size))
}

// handle is one open bbolt file. It is closed when nobody uses it any more.
type handle struct {
	db   *bbolt.DB
	os   *os.File      // what db works on, the same open file as the next
	file *durable.File // for syncs, and for reads behind bbolt's back

	names  [][]byte // of the static buckets
	commit func(commit func() error) error

	uses   int           // guarded by DB.mu; the DB's own is one
	gone   chan struct{} // closed when the handle is
	broken error         // of a crash: bbolt may hold its locks for ever; set by the writer before its use ends
}

// openBolt lets bbolt open f, which is the handle's from then on, but still the caller's after an error.
func openBolt(f *durable.File, o *Options) (*handle, error) {
	h := &handle{file: f, names: bucketNames(o), commit: o.Commit, uses: 1, gone: make(chan struct{})}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if h.os, err = f.Dup(); err != nil {
		return nil, err
	}
	bo := &bbolt.Options{
		Timeout:         time.Nanosecond, // The store's lock guards; who holds bbolt's own is a stranger.
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize(size),
		Logger:          o.BoltLog,
		NoStatistics:    true, // It has a lock that all readers take.
		NoSync:          o.NoSync,
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return h.os, nil },
		PageSize:        pageSize,
		ReadOnly:        o.ReadOnly,
	}
	_, err = contain(func() (err error) {
		h.db, err = bbolt.Open(fileName, 0, bo)
		return err
	})
	if err == nil {
		return h, nil
	}
	if errors.Is(err, berrors.ErrTimeout) {
		err = fmt.Errorf("%w: bbolt's lock is held", blobstor.ErrInUse)
	}
	return nil, errors.Join(err, h.abandon())
}

// close closes the file after its last use.
func (h *handle) close() error {
	defer close(h.gone)
	return errors.Join(h.closeBolt(), h.file.Close())
}

// closeBolt takes the file from bbolt, and leaves it open.
func (h *handle) closeBolt() error {
	if h.broken != nil {
		return h.abandon()
	}
	_, err := contain(h.db.Close)
	return err
}

// abandon takes the file from bbolt without its help, for its locks may be held. The map stays.
func (h *handle) abandon() error {
	err := h.os.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil // bbolt did it.
	}
	return errors.Join(err, h.file.Unlock())
}

// view runs fn in a read transaction.
func (h *handle) view(fn func(*Tx) error) error {
	_, err := contain(func() error {
		b, err := h.db.Begin(false)
		if err != nil {
			return blobstor.Failed(err)
		}
		defer func() { _ = b.Rollback() }() // It only gives back what Begin took.
		return fn(&Tx{b: b, names: h.names})
	})
	return err
}

// update runs fn in a write transaction and commits it. It reports besides whether the handle is of no use any more
// because the commit did not end well; after a crash broken says so.
func (h *handle) update(fn func(*Tx) error) (lost bool, err error) {
	var b *bbolt.Tx
	defer func() { // also when fn panics or exits
		if b != nil && h.broken == nil {
			_ = h.guard(b.Rollback) // It does nothing after a commit.
		}
	}()
	err = h.guard(func() (err error) {
		if b, err = h.db.Begin(true); err != nil {
			return blobstor.Failed(err)
		}
		return fn(&Tx{b: b, names: h.names})
	})
	if err != nil {
		return false, err
	}
	if err = h.guard(func() error { return h.commit(b.Commit) }); err != nil {
		return true, &commitError{err}
	}
	return false, nil
}

// guard contains a call that may change things.
func (h *handle) guard(fn func() error) error {
	crashed, err := contain(fn)
	if crashed {
		h.broken = err
	}
	return err
}
