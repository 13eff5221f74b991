package pilorama

import (
	"cmp"
	"context"
	"slices"
)

// Apply does an operation of another replica, as [DB.ApplyBatch] does.
func (db *DB) Apply(ctx context.Context, tree Tree, op Operation) error {
	return db.ApplyBatch(ctx, tree, []Operation{op})
}

// ApplyBatch does operations of other replicas, in any order. Those that were done before change nothing, and whatever
// the order and the batches in which operations came, the same ones make the same tree. It makes the tree if nobody
// knows it, also after a Drop.
//
// When it returns nil all of them are durable, unless the database was opened with NoSync. An error that matches
// ErrInvalid or [blobstor.ErrTooLarge] means that nothing was done. A batch of more than 1,000 operations or 1 MiB is
// several commits, so after another error some of them may be done; apply all of it again. ErrConflict says that one
// has the time of another operation, and ErrTruncated that one is older than the log; none of that commit is done then.
// It does not keep ops. Times are trusted: behind one near MaxTime there is none left for others.
//
// One that is late and on a node with children takes time and memory for all that are later and on such nodes, once for
// all that share a commit; one on any other node costs the same whenever it comes.
func (db *DB) ApplyBatch(ctx context.Context, tree Tree, ops []Operation) error {
	moves, err := packAll(tree, ops)
	for err == nil && len(moves) > 0 {
		n, bytes := cut(moves)
		if err = db.do(ctx, &request{tree: tree, moves: moves[:n]}, bytes); err == nil {
			moves = moves[n:]
		}
	}
	if err == nil && len(ops) == 0 {
		if err = db.enterWrite(); err == nil {
			db.leave()
		}
	}
	return wrap("apply", tree, err)
}

// packAll checks operations and returns them in order, each once.
func packAll(tree Tree, ops []Operation) ([]move, error) {
	if err := tree.validate(); err != nil {
		return nil, err
	}
	moves := make([]move, len(ops))
	for i := range ops {
		m, err := ops[i].pack()
		if err != nil {
			return nil, err
		}
		moves[i] = m
	}
	slices.SortFunc(moves, func(a, b move) int { return cmp.Compare(a.time, b.time) })
	for i := 1; i < len(moves); i++ {
		if moves[i].time == moves[i-1].time && !moves[i].equal(&moves[i-1]) {
			return nil, ErrConflict
		}
	}
	return slices.CompactFunc(moves, func(a, b move) bool { return a.time == b.time }), nil
}

// cut returns how many operations fit into one request, at least one, and their size.
func cut(moves []move) (n int, bytes int64) {
	for n < len(moves) && n < groupOps && (n == 0 || bytes < groupBytes/4) {
		bytes += moves[n].size()
		n++
	}
	return n, bytes
}
