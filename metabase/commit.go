package metabase

import (
	"context"
	"errors"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
	"github.com/granary-store/granary/internal/groupcommit"
)

// Limits of a commit group.
const (
	groupOps   = 1000
	groupBytes = 4 << 20
)

// step is a part of an operation that succeeds or fails alone.
type step struct {
	// plan reads in the transaction, which has what earlier steps wrote, checks all that can fail, and plans the
	// changes. It may run more than once, and its results count only after the commit.
	plan  func(t *txn) error
	frees bool // it is taken even if there is hardly any room
	err   error
}

// operation is what a caller waits for.
type operation struct {
	epoch uint64
	steps []step
}

// errUnchanged rolls back a transaction that wrote nothing.
var errUnchanged = errors.New("nothing to commit")

// do commits steps, together with those of other callers. It returns an error that concerns all of them; each step has
// its own.
func (db *DB) do(ctx context.Context, bytes int64, steps ...step) error {
	epoch := db.epoch()
	if err := db.enterWrite(); err != nil {
		return err
	}
	defer db.leave()
	err := db.committer.Do(ctx, &operation{epoch, steps}, bytes)
	if errors.Is(err, groupcommit.ErrClosed) {
		return blobstor.ErrClosed
	}
	for i := range steps {
		db.tellFault("commit", steps[i].err)
	}
	return err
}

// doAll commits any number of steps, with as many commits as that takes, and returns how many of them, from the first
// on, were committed before an error that concerns the rest. Each takes so many bytes.
func (db *DB) doAll(ctx context.Context, each int64, steps []step) (done int, err error) {
	for done < len(steps) {
		part := steps[done:min(len(steps), done+groupOps)]
		if err := db.do(ctx, each*int64(len(part)), part...); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// doOne commits one step, which is taken even if there is hardly any room.
func (db *DB) doOne(ctx context.Context, bytes int64, plan func(t *txn) error) error {
	steps := []step{{frees: true, plan: plan}}
	if err := db.do(ctx, bytes, steps...); err != nil {
		return err
	}
	return steps[0].err
}

// commit is the committer's: one transaction for the group. If it fails before its commit, each operation gets one of
// its own, so that one that the file's library cannot take spoils no other.
func (db *DB) commit(group []*groupcommit.Op[*operation]) error {
	err := db.commitOnce(group)
	if err == nil || len(group) == 1 || errors.Is(err, blobstor.ErrUncertain) || errors.Is(err, blobstor.ErrFailed) {
		db.tellFault("commit", err) // once for all who wait
		return err
	}
	for i := range group {
		group[i].Err = db.commitOnce(group[i : i+1])
		db.tellFault("commit", group[i].Err)
	}
	return nil
}

func (db *DB) commitOnce(group []*groupcommit.Op[*operation]) error {
	pressed := db.file.Pressed()
	return db.update("commit", func(t *txn) error {
		for _, op := range group {
			t.epoch = op.Value.epoch
			for i := range op.Value.steps {
				t.run(&op.Value.steps[i], pressed)
			}
		}
		return nil
	})
}

// update runs fn in a write transaction and publishes what it changed. It is the committer's.
func (db *DB) update(name string, fn func(t *txn) error) error {
	t := txn{db: db, known: &db.dict, many: true, scratch: db.scratch}
	t.pending.log = t.log
	t.sure.log = t.log
	defer func() { db.scratch = t.left() }()
	at := 0
	err := db.file.Update(func(tx *bolt.Tx) error {
		t.tx = tx
		if db.dict.doubtful.Load() {
			if err := db.dict.load(&t); err != nil {
				return err
			}
		}
		err := fn(&t)
		if err == nil {
			err = t.flush()
		}
		db.watched(name, tx)
		if at = t.seenCommit(); t.wrote || db.file.Pressed() { // any commit may bring the ballast back
			at++
		} else if err == nil {
			err = errUnchanged
		}
		if err == nil { // before anybody sees the objects
			db.backlog.Load().add(t.sure.entries, t.sure.unsure)
		}
		return err
	})
	switch {
	case errors.Is(err, blobstor.ErrUncertain):
		db.dict.doubtful.Store(true)
		return err
	case err != nil && err != errUnchanged: //nolint:errorlint // it comes back as it is
		return err
	}
	db.dict.publish(&t, at)
	return nil
}

// run plans a step and carries it out, unless it is refused.
func (t *txn) run(s *step, pressed bool) {
	s.err = nil
	if pressed && !s.frees {
		s.err = ErrPressed
		return
	}
	if s.err = s.plan(t); s.err != nil {
		t.discard()
		return
	}
	t.apply()
}
