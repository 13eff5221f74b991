package pilorama

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
	"github.com/granary-store/granary/internal/groupcommit"
)

// Limits of a commit group, and of one request.
const (
	groupOps   = 1000
	groupBytes = 4 << 20
)

// request is what one caller waits for: operations of other replicas, or a change that is decided in the transaction.
type request struct {
	tree  Tree
	moves []move // in the order of their times

	// local reads first and then changes the tree. It may run more than once. An error before it wrote is its caller's
	// alone.
	local func(b *branch) error
	frees bool // it is taken even if there is hardly any room
}

// do commits a request, together with those of other callers.
func (db *DB) do(ctx context.Context, r *request, bytes int64) error {
	if err := db.enterWrite(); err != nil {
		return err
	}
	defer db.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	leave, err := db.queues.join(ctx, r.tree)
	if err != nil {
		return err
	}
	defer leave()
	err = db.committer.Do(ctx, r, bytes)
	if errors.Is(err, groupcommit.ErrClosed) {
		return blobstor.ErrClosed
	}
	return err
}

// commit is the committer's: one transaction for the group. If it fails before its commit, each request gets one of its
// own, so that one that meets damage spoils no other.
func (db *DB) commit(group []*groupcommit.Op[*request]) error {
	err := db.commitOnce(group)
	if err == nil || len(group) == 1 || errors.Is(err, blobstor.ErrUncertain) || errors.Is(err, blobstor.ErrFailed) {
		db.tellFault("commit", err) // once for all who wait
		return err
	}
	for i := range group {
		if err := db.commitOnce(group[i : i+1]); err != nil {
			group[i].Err = err
		}
		db.tellFault("commit", group[i].Err)
	}
	return nil
}

func (db *DB) commitOnce(group []*groupcommit.Op[*request]) error {
	pressed := db.file.Pressed()
	err := db.file.Update(func(tx *bolt.Tx) error {
		t := txn{tx: tx, arena: db.arena}
		defer func() { db.arena = t.arena[:0] }()
		for part := range byTree(group) {
			if err := t.run(part, pressed); err != nil {
				return err
			}
		}
		if t.writes == 0 && !pressed { // the ballast comes back with a commit
			return errUnchanged
		}
		return nil
	})
	if err == errUnchanged { //nolint:errorlint // it comes back as it is
		return nil
	}
	return err
}

// byTree yields the requests of each tree, in their order.
func byTree(group []*groupcommit.Op[*request]) func(yield func([]*groupcommit.Op[*request]) bool) {
	return func(yield func([]*groupcommit.Op[*request]) bool) {
		var order []Tree
		parts := make(map[Tree][]*groupcommit.Op[*request])
		for _, op := range group {
			tree := op.Value.tree
			if parts[tree] == nil {
				order = append(order, tree)
			}
			parts[tree] = append(parts[tree], op)
		}
		for _, tree := range order {
			if !yield(parts[tree]) {
				return
			}
		}
	}
}

// run does the requests of one tree: first what other replicas did, all of it together, then what is decided here,
// which is later. An error spoils the transaction; what is refused has its own.
func (t *txn) run(part []*groupcommit.Op[*request], pressed bool) error {
	b, err := t.branch(part[0].Value.tree)
	if err != nil {
		return err
	}
	b.known, b.parents = make(map[NodeID]*node), make(map[NodeID]bool)
	if err := b.apply(part, pressed); err != nil {
		return err
	}
	for _, op := range part {
		r, writes := op.Value, t.writes
		switch {
		case r.local == nil:
		case pressed && !r.frees:
			op.Err = ErrPressed
		default:
			if op.Err = r.local(b); op.Err != nil && t.writes != writes {
				return op.Err
			}
		}
	}
	return nil
}

// apply inserts the operations of other replicas.
func (b *branch) apply(part []*groupcommit.Op[*request], pressed bool) error {
	var all []move
	admitted := make(map[uint64]*move)
	for _, op := range part {
		if r := op.Value; len(r.moves) > 0 {
			var fresh []move
			if fresh, op.Err = b.admit(r.moves, admitted); len(fresh) > 0 && pressed {
				fresh, op.Err = nil, ErrPressed
			}
			for i := range fresh {
				admitted[fresh[i].time] = &fresh[i]
			}
			all = append(all, fresh...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b move) int { return cmp.Compare(a.time, b.time) })
	if err := b.open(); err != nil {
		return err
	}
	return b.merge(all)
}

// admit returns the operations that are in neither the log nor the group, or why none of the request is accepted.
func (b *branch) admit(moves []move, admitted map[uint64]*move) (fresh []move, err error) {
	for i := range moves {
		m := &moves[i]
		if m.time < b.height {
			return nil, &TruncatedError{b.height}
		}
		same, ok := admitted[m.time], true
		if same == nil && b.n != 0 && m.time <= b.last {
			var e entry
			e, ok, err = b.entry(m.time)
			same = &e.move
		}
		switch {
		case err != nil:
			return nil, err
		case same == nil || !ok:
			fresh = append(fresh, *m)
		case !same.equal(m):
			return nil, ErrConflict
		}
	}
	return fresh, nil
}
