package pilorama

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// keys counts the keys of classes, of all if none is named.
func (w *world) keys(tb testing.TB, classes ...byte) (n int) {
	tb.Helper()
	must(tb, w.file.View(func(tx *bolt.Tx) error {
		return tx.Bucket(0).ForEach(func(k, _ []byte) error {
			if len(classes) == 0 || slices.Contains(classes, k[0]) {
				n++
			}
			return nil
		})
	}))
	return n
}

// TestTruncate: the log and what undoes it are gone below a height, the tree is what it was, and who lags is told.
func TestTruncate(t *testing.T) {
	w := quick(t)
	var ops []Operation
	for i := range uint64(5000) {
		ops = append(ops, op(i+1, NodeID(i%7), NodeID(1+i%11), "n", fmt.Sprint(i)))
	}
	must(t, w.ApplyBatch(ctx, tree, ops))
	before, kept := w.state(t, tree), w.keys(t, nodes, children, parents)
	must(t, w.Truncate(ctx, tree, 4000))
	must(t, w.Truncate(ctx, tree, 100)) // less than that is nothing
	w.wantTruncated(t, before, 4000)
	if n := w.keys(t, logs); n != 1001 {
		t.Errorf("%d operations are left", n)
	}
	if n := w.keys(t, redos); n < 300 || n > 700 { // of 11 nodes 6 are parents
		t.Errorf("%d operations on parents are left", n)
	}
	if n := w.keys(t, nodes, children, parents); n != kept {
		t.Errorf("%d keys of the tree, there were %d", n, kept)
	}
	for _, late := range []Operation{op(3999, Root, 5), ops[10]} {
		refused(t, w.ApplyBatch(ctx, tree, []Operation{op(9000, Root, 9), late}), ErrTruncated)
	}
	if w.state(t, tree) != before {
		t.Error("a part of a batch was done")
	}
	must(t, w.ApplyBatch(ctx, tree, ops[3999:])) // is known
	must(t, w.Truncate(ctx, tree, 10_000))
	w.wantTruncated(t, before, 10_000)
	made, err := w.Add(ctx, tree, Clock{1, 3}, Root, nil)
	if err != nil || made.Time < 10_000 {
		t.Errorf("%+v, %v", made, err)
	}
	w.check(t)
}

func (w *world) wantTruncated(tb testing.TB, state string, height uint64) {
	tb.Helper()
	if w.state(tb, tree) != state {
		tb.Error("the tree changed")
	}
	w.reopen(tb)
	w.check(tb)
	_, err := w.OpLog(ctx, tree, height-1, 1)
	refused(tb, err, ErrTruncated)
	_, err = w.OpLog(ctx, tree, height, 1)
	must(tb, err)
	if got, _, err := w.Span(ctx, tree); got != height || err != nil {
		tb.Errorf("height %d, %v", got, err)
	}
}

// TestTruncateInterrupted: what a crash leaves of a truncation is sound, takes operations, and is finished by the next.
func TestTruncateInterrupted(t *testing.T) {
	w := quick(t)
	rng, ops := crashOps()
	must(t, w.ApplyBatch(ctx, tree, ops[:2900]))
	height := ops[2500].Time
	must(t, w.do(ctx, &request{tree: tree, local: func(b *branch) error {
		_, err := b.truncate(height)
		return err
	}}, 0))
	w.check(t)
	w.deliver(t, rng, ops[2900:])
	if w.state(t, tree) != modelText(ops) {
		t.Error("it is not the tree of the model")
	}
	w.check(t)
	must(t, w.Truncate(ctx, tree, 0))
	w.check(t)
	log, err := w.OpLog(ctx, tree, height, 9999)
	if err != nil || len(log) != 500 || w.state(t, tree) != modelText(ops) {
		t.Errorf("%d in the log, %v", len(log), err)
	}
}

// TestCompact: the file gets smaller, and what is in it stays.
func TestCompact(t *testing.T) {
	w := quick(t)
	var ops []Operation
	for i := range uint64(10_000) {
		ops = append(ops, op(i+1, Root, NodeID(i+1), "fat", strings.Repeat("x", 2000)))
	}
	must(t, w.ApplyBatch(ctx, tree, ops))
	must(t, w.Truncate(ctx, tree, 10_000))
	size := func() int64 {
		info, err := os.Stat(filepath.Join(w.dir, "bolt"))
		must(t, err)
		return info.Size()
	}
	before, state := size(), w.state(t, tree)
	must(t, w.Compact(ctx))
	if after := size(); after > before*3/4 {
		t.Errorf("%d bytes, before %d", after, before)
	}
	must(t, w.Apply(ctx, doomed, op(1, Root, 1)))
	w.reopen(t)
	if w.state(t, tree) != state {
		t.Error("the tree changed")
	}
	w.check(t)
}

// TestBaseEnds: a truncation ends a Base that runs, which would be of two heights.
func TestBaseEnds(t *testing.T) {
	w := filledTest(t, 3000)
	must(t, w.Truncate(ctx, tree, 2000))
	n := 0
	for _, err := range w.Base(ctx, tree) {
		if n++; n == 600 {
			must(t, w.Truncate(ctx, tree, 2500))
		}
		if err != nil {
			refused(t, err, ErrTruncated)
			if n < 600 {
				t.Error("too early")
			}
			return
		}
	}
	t.Errorf("it yielded %d", n)
}

func filledTest(tb testing.TB, n int) *world {
	tb.Helper()
	w := quick(tb)
	var ops []Operation
	for i := range uint64(n) {
		ops = append(ops, op(i+1, Root, NodeID(i+1), FileName, fmt.Sprint(i)))
	}
	must(tb, w.ApplyBatch(ctx, tree, ops))
	return w
}

// TestDropped: a tree that was dropped is unknown at once, a late operation makes a new one of it, and what a crash left
// goes with the next Drop.
func TestDropped(t *testing.T) {
	w := filledTest(t, 5000)
	must(t, w.Apply(ctx, doomed, op(1, Root, 1)))
	keep := w.state(t, doomed)
	must(t, w.sweep(ctx, func(t *txn) error { return t.forget(tree) })) // what a crash leaves
	_, err := w.GetMeta(ctx, tree, 1)
	refused(t, err, blobstor.ErrNotFound)
	w.check(t)
	must(t, w.Apply(ctx, tree, op(7, 3, 4)))
	w.wantTree(t, op(7, 3, 4))
	must(t, w.Drop(ctx, tree))
	must(t, w.Apply(ctx, tree, op(8, 3, 4)))
	w.wantTree(t, op(8, 3, 4))
	must(t, w.Drop(ctx, tree))
	if w.state(t, doomed) != keep {
		t.Error("another tree changed")
	}
	must(t, w.Drop(ctx, doomed))
	if n := w.keys(t); n != 2 { // the version, and the next number
		t.Errorf("%d keys are left:\n%s", n, w.dump(t))
	}
	w.check(t)
}
