package pilorama

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// The bugs of the ancestors, one test each.

func op(time uint64, parent, child NodeID, kv ...string) Operation {
	var meta []Attr
	for i := 0; i < len(kv); i += 2 {
		meta = append(meta, Attr{kv[i], kv[i+1]})
	}
	return Operation{time, parent, child, meta}
}

// wantTree wants the tree of the model.
func (w *world) wantTree(tb testing.TB, ops ...Operation) {
	tb.Helper()
	if got, want := w.state(tb, tree), modelText(ops); got != want {
		tb.Errorf("got\n%swant\n%s", got, want)
	}
	w.check(tb)
}

// Issues 1481 and 1493: what creates and removes at a time panicked, and an operation was rejected that another one,
// not yet here, makes valid.
func TestConcurrentCreateAndRemove(t *testing.T) {
	w := quick(t)
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			for range 30 {
				ops, err := w.AddByPath(ctx, tree, Clock{i, 8}, []string{"a", "b"}, named("c"))
				must(t, err)
				_, err = w.Remove(ctx, tree, Clock{i, 8}, ops[len(ops)-1].Child)
				must(t, err)
				found, err := w.GetByPath(ctx, tree, []string{"a"}, true)
				if err == nil {
					_, err = w.Remove(ctx, tree, Clock{i, 8}, found[0].ID)
				}
				if err != nil { // others removed it
					wantIs(t, err, blobstor.ErrNotFound)
				}
				if _, err := w.AddByPath(ctx, tree, Clock{i, 8}, nil, named("a")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	log, err := w.OpLog(ctx, tree, 0, 1<<20)
	must(t, err)
	w.wantTree(t, log...)
}

func TestApplyBecomesValidLater(t *testing.T) {
	w := quick(t)
	ops := []Operation{op(5, 1, 2), op(6, 2, 1), op(3, Root, 1), op(1, 9, 3), op(2, 3, 9), op(4, 3, 2)}
	for i := range ops {
		must(t, w.Apply(ctx, tree, ops[i]))
		w.wantTree(t, ops[:i+1]...)
	}
}

// ad3038d16: a move was wrong in the backend on disk.
func TestMoveOnDisk(t *testing.T) {
	w := quick(t)
	dir, other := w.addPath(t, "dir"), w.addPath(t, "other")
	file := w.addPath(t, "dir/file", "a", "b")
	_, err := w.Move(ctx, tree, alone, file, other, nil)
	must(t, err)
	w.reopen(t)
	if w.children(t, dir) != "" || w.children(t, other) != "file" {
		t.Errorf("dir has %q, other has %q", w.children(t, dir), w.children(t, other))
	}
	n, err := w.GetMeta(ctx, tree, file)
	if err != nil || n.Parent != other || n.Birth != uint64(file) || !slices.Equal(n.Meta, named("file", "a", "b")) {
		t.Errorf("%+v, %v", n, err)
	}
	_, err = w.Move(ctx, tree, alone, file, dir, named("renamed"))
	must(t, err)
	if w.children(t, dir) != "renamed" || w.children(t, other) != "" {
		t.Errorf("dir has %q, other has %q", w.children(t, dir), w.children(t, other))
	}
	w.check(t)
}

// 134f2ba02, TestApplyTricky1: an insertion before the first entry of the log.
func TestBeforeTheFirst(t *testing.T) {
	w := quick(t)
	ops := []Operation{op(100, 10, 11), op(110, 10, 12), op(1, 11, 10), op(2, Root, 11)}
	for i := range ops {
		must(t, w.Apply(ctx, tree, ops[i]))
		w.wantTree(t, ops[:i+1]...)
	}
}

// a3e7365cb, TestApplyTricky2: the parent after an insertion in the middle.
func TestParentAfterTheMiddle(t *testing.T) {
	w := quick(t)
	ops := []Operation{op(1, Root, 10), op(5, Root, 11), op(10, 11, 10), op(3, 10, 11), op(7, 12, 10), op(6, Root, 12), op(8, Root, 10, FileName, "x")}
	for i := range ops {
		must(t, w.Apply(ctx, tree, ops[i]))
		w.wantTree(t, ops[:i+1]...)
	}
}

// 71f0b6690: a cursor was used after a Put in its transaction. Many operations are undone and redone in one here, so
// that pages split meanwhile.
func TestLateBeforeMany(t *testing.T) {
	w := quick(t)
	var ops []Operation
	for i := range uint64(3000) {
		ops = append(ops, op(i+10, NodeID(i%50), NodeID(i%49+1), "n", fmt.Sprint(i)))
	}
	must(t, w.ApplyBatch(ctx, tree, ops))
	late := []Operation{op(1, 7, 3), op(2, 9, 7), op(3, 3, 9), op(4, 48, 60)}
	must(t, w.ApplyBatch(ctx, tree, late))
	w.wantTree(t, append(ops, late...)...)
}

// a9fcbfbfa: a local move took the way of a late operation. Here it is the last by its time.
func TestMoveIsLast(t *testing.T) {
	w := quick(t)
	a, b := w.addPath(t, "a"), w.addPath(t, "b")
	must(t, w.Apply(ctx, tree, op(1000, Root, 999, FileName, "far")))
	move, err := w.Move(ctx, tree, Clock{3, 7}, a, b, nil)
	if err != nil || move.Time <= 1000 || move.Time%7 != 3 {
		t.Errorf("%+v, %v", move, err)
	}
	log, err := w.OpLog(ctx, tree, 0, 99)
	must(t, err)
	if last := log[len(log)-1]; last.Time != move.Time || last.Child != a {
		t.Errorf("last in the log: %+v", last)
	}
	w.wantTree(t, log...)
}

// 9a20498f3: dropping all trees of a container did not drop all, and deleted under a cursor.
func TestDropAllTrees(t *testing.T) {
	w := quick(t)
	for c := byte(1); c <= 3; c++ {
		for i := range 20 {
			must(t, w.Apply(ctx, Tree{blobstor.ID{c}, fmt.Sprint("tree", i)}, op(1, Root, 1)))
		}
	}
	must(t, w.Drop(ctx, Tree{Container: blobstor.ID{2}}))
	for c, want := range map[byte]int{1: 20, 2: 0, 3: 20} {
		if names, err := w.List(ctx, blobstor.ID{c}); err != nil || len(names) != want {
			t.Errorf("container %d has %d trees, %v", c, len(names), err)
		}
	}
	w.check(t)
}

// d8d3588e1: after an I/O error the tree was made a second time, elsewhere. A write that failed leaves no tree and is
// told as what it is.
func TestFailedWriteMakesNoTree(t *testing.T) {
	fail := error(nil)
	w := newWorld(t, Options{Ballast: -1, boltCommit: func(commit func() error) error {
		if fail != nil {
			return fail
		}
		return commit()
	}})
	fail = syscall.EIO
	_, err := w.Add(ctx, tree, alone, Root, named("a"))
	wantIs(t, err, blobstor.ErrUncertain)
	if !blobstor.IsFault(err) {
		t.Errorf("%v is no fault", err)
	}
	_, err = w.Add(ctx, tree, alone, Root, named("a"))
	wantIs(t, err, blobstor.ErrFailed)
	fail = nil
	w.reopen(t)
	if names, err := w.List(ctx, tree.Container); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
}

// Issue 2140: an error of a move was swallowed, and its result used.
func TestMoveTellsItsError(t *testing.T) {
	w := quick(t)
	_, err := w.Move(ctx, tree, alone, 1, 2, nil)
	refused(t, err, blobstor.ErrNotFound)
	a := w.addPath(t, "a")
	for _, test := range []struct {
		node, parent NodeID
		want         error
	}{
		{a, 99, blobstor.ErrNotFound}, {99, a, blobstor.ErrNotFound}, {a, a, ErrCycle}, {Root, a, ErrInvalid}, {Trash, a, ErrInvalid}, {a, Trash, ErrInvalid},
	} {
		op, err := w.Move(ctx, tree, alone, test.node, test.parent, nil)
		refused(t, err, test.want)
		if op.Time != 0 || op.Child != 0 {
			t.Errorf("it returned %+v", op)
		}
	}
	if log, err := w.OpLog(ctx, tree, 0, 9); err != nil || len(log) != 1 {
		t.Errorf("the log has %v, %v", log, err)
	}
}

// c327305bf and 8ffc2fdf5: a database that takes no writes was left open, and counted its refusals as faults.
func TestReadOnlyIsNoFault(t *testing.T) {
	faults := make(chan error, 100)
	w := newWorld(t, Options{NoSync: true, Ballast: -1, Hooks: blobstor.Hooks{Fault: func(_ string, err error) { faults <- err }}})
	a := w.addPath(t, "a")
	must(t, w.SetReadOnly(ctx, true))
	for name, err := range w.writes(a) {
		if !errors.Is(err, blobstor.ErrReadOnly) || blobstor.IsFault(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.children(t, Root) != "a" {
		t.Error("it cannot be read")
	}
	must(t, w.SetReadOnly(ctx, false))
	w.addPath(t, "b")
	must(t, w.Close())
	for name, err := range w.writes(a) {
		if !errors.Is(err, blobstor.ErrClosed) || blobstor.IsFault(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	db, err := Open(w.dir, &Options{ReadOnly: true}) // Close let go of it
	must(t, err)
	must(t, db.Close())
	if len(faults) > 0 {
		t.Error(<-faults)
	}
}

// writes are all calls that change something, and what they return.
func (w *world) writes(id NodeID) map[string]error {
	err := map[string]error{}
	_, err["add"] = w.Add(ctx, tree, alone, Root, nil)
	_, err["add by path"] = w.AddByPath(ctx, tree, alone, nil, nil)
	_, err["move"] = w.Move(ctx, tree, alone, id, Root, nil)
	_, err["remove"] = w.Remove(ctx, tree, alone, id)
	err["apply"] = w.Apply(ctx, tree, op(1<<30, Root, 77))
	err["apply nothing"] = w.ApplyBatch(ctx, tree, nil)
	err["drop"] = w.Drop(ctx, tree)
	err["drop nothing"] = w.Drop(ctx, Tree{blobstor.ID{9}, "x"})
	err["truncate"] = w.Truncate(ctx, tree, 1)
	err["compact"] = w.Compact(ctx)
	return err
}

// Issues 2127, 2146 and 2165: after a split network, a replica synchronised only from one fixed peer, and only new
// containers. Here it is from any, and from any height, again and again.
func TestSplitNetwork(t *testing.T) {
	n := newNetwork(t, 99, 4)
	for i := range n.replicas {
		must(t, n.replicas[i].Apply(ctx, tree, op(1<<20, Root, 1<<20)))
	}
	n.all = append(n.all, op(1<<20, Root, 1<<20))
	for round := range 3 {
		for range 40 {
			i := n.rng.IntN(4)
			must(t, n.act(i))
			pair := i ^ 1
			must(t, n.replicas[pair].ApplyBatch(ctx, tree, n.inbox[pair])) // the other half hears nothing
			n.inbox = make([][]Operation, 4)
		}
		for _, link := range [][2]int{{0, 2}, {2, 3}, {3, 0}, {0, 1}, {1, 2}} { // each gets what it lacks from one that has it
			log, err := n.replicas[link[0]].OpLog(ctx, tree, 0, 1<<20)
			must(t, err)
			must(t, n.replicas[link[1]].ApplyBatch(ctx, tree, log))
		}
		for _, w := range n.replicas[1:] {
			log, err := w.OpLog(ctx, tree, 0, 1<<20)
			must(t, err)
			must(t, n.replicas[0].ApplyBatch(ctx, tree, log))
		}
		n.wantOneOf(t, uint64(round))
	}
}

func (n *network) wantOneOf(tb testing.TB, round uint64) {
	tb.Helper()
	n.inbox = make([][]Operation, len(n.replicas))
	log, err := n.replicas[0].OpLog(ctx, tree, 0, 1<<20)
	must(tb, err)
	for _, w := range n.replicas {
		must(tb, w.ApplyBatch(ctx, tree, log))
	}
	if len(log) != len(n.all) {
		tb.Fatalf("round %d: %d operations in the log, %d were made", round, len(log), len(n.all))
	}
	n.wantOne(tb, round)
}

// bc67f77d8: what was applied to catch up was rejected, for lack of a position. Apply needs no clock: an operation has
// the time that its maker gave it, whatever class that is.
func TestAppliedTimesOfAnyClass(t *testing.T) {
	w := quick(t)
	var ops []Operation
	for _, clock := range []Clock{{0, 1}, {2, 3}, {4, 5}, {1 << 31, 1 << 32}} {
		for range 3 {
			op, err := w.Add(ctx, tree, clock, Root, named("x"))
			must(t, err)
			if op.Time%clock.Size != clock.Position {
				t.Errorf("time %d of %+v", op.Time, clock)
			}
			ops = append(ops, op)
		}
	}
	other := quick(t)
	must(t, other.ApplyBatch(ctx, tree, ops))
	other.wantTree(t, ops...)
	w.wantTree(t, ops...)
}

// b30f14978: a subtree had wrong IDs.
func TestSubtreeIDs(t *testing.T) {
	w := quick(t)
	want := map[string]NodeID{}
	for _, path := range []string{"a", "a/b", "a/b/c", "a/z", "b"} {
		want[path] = w.addPath(t, path)
	}
	path := []string{}
	for e, err := range w.Subtree(ctx, tree, Root, 0, "") {
		must(t, err)
		path = append(path[:e.Depth-1], e.Name())
		id := want[joined(path)]
		n, err := w.GetMeta(ctx, tree, e.ID)
		if e.ID != id || err != nil || n.Parent != e.Parent || n.Name() != e.Name() {
			t.Errorf("%q is %d, want %d: %+v, %v", path, e.ID, id, n, err)
		}
		delete(want, joined(path))
	}
	if len(want) > 0 {
		t.Errorf("it lacks %v", want)
	}
}

func joined(path []string) string { return strings.Join(path, "/") }
