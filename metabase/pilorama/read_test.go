package pilorama

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestByPath: paths go through directories, which are made where they are missing; all and the latest of a name.
func TestByPath(t *testing.T) {
	w := quick(t)
	ops, err := w.AddByPath(ctx, tree, alone, []string{"a", "b"}, named("f", "v", "1"))
	if err != nil || len(ops) != 3 {
		t.Fatal(ops, err)
	}
	second := w.addPath(t, "a/b/f", "v", "2")
	third := w.addPath(t, "a/b/f", "v", "3")
	if second == third || third == ops[2].Child {
		t.Error("versions are one node")
	}
	all, err := w.GetByPath(ctx, tree, []string{"a", "b", "f"}, false)
	if err != nil || len(all) != 3 || all[0].Meta[1].Value != "1" || all[2].ID != third {
		t.Errorf("%+v, %v", all, err)
	}
	latest, err := w.GetByPath(ctx, tree, []string{"a", "b", "f"}, true)
	if err != nil || len(latest) != 1 || latest[0].ID != third {
		t.Errorf("%+v, %v", latest, err)
	}
	// A version that is changed stays as old as it is.
	_, err = w.Move(ctx, tree, alone, second, ops[1].Child, named("f", "v", "changed"))
	must(t, err)
	if latest, err = w.GetByPath(ctx, tree, []string{"a", "b", "f"}, true); err != nil || latest[0].ID != third {
		t.Errorf("%+v, %v", latest, err)
	}
	// A file is no directory; one of its name is made beside it.
	w.addPath(t, "a/b/f/g", "v", "4")
	if got := w.children(t, ops[1].Child); got != "f f f f" {
		t.Errorf("children %q", got)
	}
	if latest, err = w.GetByPath(ctx, tree, []string{"a", "b", "f"}, true); err != nil || len(latest[0].Meta) != 1 {
		t.Errorf("%+v, %v", latest, err)
	}
	w.check(t)
}

// TestTwoDirectoriesOfOneName: replicas that made the same directory at a time made two. Files of both are found, and
// new ones go to the older, on every replica.
func TestTwoDirectoriesOfOneName(t *testing.T) {
	a, b := quick(t), quick(t)
	ofA, err := a.AddByPath(ctx, tree, Clock{0, 2}, []string{"d"}, named("x", "by", "a"))
	must(t, err)
	ofB, err := b.AddByPath(ctx, tree, Clock{1, 2}, []string{"d"}, named("x", "by", "b"))
	must(t, err)
	must(t, a.ApplyBatch(ctx, tree, ofB))
	must(t, b.ApplyBatch(ctx, tree, ofA))
	for i, w := range []*world{a, b} {
		found, err := w.GetByPath(ctx, tree, []string{"d", "x"}, false)
		if err != nil || len(found) != 2 {
			t.Errorf("%+v, %v", found, err)
		}
		latest, err := w.GetByPath(ctx, tree, []string{"d", "x"}, true)
		if err != nil || len(latest) != 1 || latest[0].ID != max(ofA[1].Child, ofB[1].Child) {
			t.Errorf("%+v, %v", latest, err)
		}
		ops, err := w.AddByPath(ctx, tree, Clock{uint64(i), 2}, []string{"d"}, named("y", "k", "v"))
		if err != nil || len(ops) != 1 || ops[0].Parent != min(ofA[0].Child, ofB[0].Child) {
			t.Errorf("%+v, %v", ops, err)
		}
	}
}

// TestRemove: what is removed is in the trash with all that is below it, and may be moved back.
func TestRemove(t *testing.T) {
	w := quick(t)
	dir := w.addPath(t, "dir")
	file := w.addPath(t, "dir/file", "k", "v")
	_, err := w.Remove(ctx, tree, alone, dir)
	must(t, err)
	_, err = w.GetByPath(ctx, tree, []string{"dir", "file"}, false)
	refused(t, err, blobstor.ErrNotFound)
	if n, err := w.GetMeta(ctx, tree, dir); err != nil || n.Parent != Trash || len(n.Meta) != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := w.GetMeta(ctx, tree, file); err != nil || n.Parent != dir {
		t.Errorf("%+v, %v", n, err)
	}
	_, err = w.Remove(ctx, tree, alone, dir)
	refused(t, err, blobstor.ErrNotFound)
	_, err = w.Add(ctx, tree, alone, dir, named("late"))
	refused(t, err, blobstor.ErrNotFound)
	_, err = w.Move(ctx, tree, alone, file, dir, nil)
	refused(t, err, blobstor.ErrNotFound)
	if n := w.children(t, Trash); n != "" {
		t.Errorf("in the trash: %q", n)
	}
	_, err = w.Move(ctx, tree, alone, dir, Root, named("again"))
	must(t, err)
	if _, err = w.GetByPath(ctx, tree, []string{"again", "file"}, false); err != nil {
		t.Error(err)
	}
	w.check(t)
}

// TestMoveKeepsAttributes: nil keeps them, an empty list removes them.
func TestMoveKeepsAttributes(t *testing.T) {
	w := quick(t)
	dir, file := w.addPath(t, "dir"), w.addPath(t, "file", "k", "v")
	moved, err := w.Move(ctx, tree, alone, file, dir, nil)
	if err != nil || !slices.Equal(moved.Meta, named("file", "k", "v")) {
		t.Errorf("%+v, %v", moved, err)
	}
	if moved, err = w.Move(ctx, tree, alone, file, dir, []Attr{}); err != nil || len(moved.Meta) != 0 {
		t.Errorf("%+v, %v", moved, err)
	}
	w.check(t)
}

// grown has a tree of random shape, and what a walk through it must yield, by definition.
func grown(t *testing.T, n int) (w *world, want []string) {
	w = quick(t)
	rng := rand.New(rand.NewPCG(3, 3))
	var ops []Operation
	for i := range uint64(n) {
		ops = append(ops, op(i+1, NodeID(rng.Uint64N(i/3+1)), NodeID(i+1), FileName, fmt.Sprintf("%c\x00%d", 'a'+rng.IntN(5), rng.IntN(9))))
	}
	must(t, w.ApplyBatch(ctx, tree, ops))
	all := model(ops)
	below := map[NodeID][]NodeID{}
	for id, n := range all {
		below[n.parent] = append(below[n.parent], id)
	}
	var walk func(id NodeID, depth int)
	walk = func(id NodeID, depth int) {
		slices.SortFunc(below[id], func(a, b NodeID) int {
			if by := strings.Compare(all[a].meta[0].Value, all[b].meta[0].Value); by != 0 {
				return by
			}
			return int(a) - int(b)
		})
		for _, id := range below[id] {
			want = append(want, fmt.Sprint(depth, " ", id))
			walk(id, depth+1)
		}
	}
	walk(Root, 1)
	return w, want
}

// TestSubtree: a walk yields everything once and in order, from any cursor on, to any depth.
func TestSubtree(t *testing.T) {
	w, want := grown(t, 2000)
	var got []string
	var cursors []Cursor
	for e, err := range w.Subtree(ctx, tree, Root, 0, "") {
		must(t, err)
		got = append(got, fmt.Sprint(e.Depth, " ", e.ID))
		cursors = append(cursors, e.Cursor())
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %d, want %d", len(got), len(want))
	}
	for at := 0; at < len(cursors); at += 97 {
		next := at + 1
		for e, err := range w.Subtree(ctx, tree, Root, 0, cursors[at]) {
			must(t, err)
			if next == len(want) || want[next] != fmt.Sprint(e.Depth, " ", e.ID) {
				t.Fatalf("behind %d: got %d at %d", at, e.ID, next)
			}
			next++
		}
		if next != len(want) {
			t.Errorf("behind %d it ends at %d of %d", at, next, len(want))
		}
	}
	for depth := 1; depth <= 3; depth++ {
		n := 0
		for e, err := range w.Subtree(ctx, tree, Root, depth, "") {
			must(t, err)
			if n++; e.Depth > depth {
				t.Fatalf("depth %d in a walk of %d", e.Depth, depth)
			}
		}
		shallow := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[0] > byte('0'+depth) || s[1] != ' ' })
		if n != len(shallow) {
			t.Errorf("depth %d: %d, want %d", depth, n, len(shallow))
		}
	}
}

// TestSubtreeBesideWrites: a walk may be left at any time, its body may write, and what stays where it is comes once.
func TestSubtreeBesideWrites(t *testing.T) {
	w, want := grown(t, 1500)
	seen := map[NodeID]int{}
	for e, err := range w.Subtree(ctx, tree, Root, 0, "") {
		must(t, err)
		if seen[e.ID]++; len(seen)%50 == 0 {
			_, err := w.Add(ctx, tree, alone, e.ID, named("new"))
			must(t, err)
			_, err = w.AddByPath(ctx, tree, alone, nil, named(fmt.Sprint(len(seen))))
			must(t, err)
		}
	}
	for id := NodeID(1); int(id) <= len(want); id++ {
		if seen[id] != 1 {
			t.Errorf("node %d came %d times", id, seen[id])
		}
	}
	for range w.Subtree(ctx, tree, Root, 0, "") {
		break
	}
	must(t, w.Close())
	for _, err := range w.Subtree(ctx, tree, Root, 0, "") {
		wantIs(t, err, blobstor.ErrClosed)
	}
	w.DB = nil
}

// TestBadCursors: whatever a cursor is, it is a place or refused.
func TestBadCursors(t *testing.T) {
	w, _ := grown(t, 50)
	rng := rand.New(rand.NewPCG(5, 5))
	var last Entry
	for e, err := range w.Subtree(ctx, tree, Root, 0, "") {
		must(t, err)
		last = e
	}
	for range 2000 {
		b := []byte(last.Cursor())
		for range rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		b = b[:rng.IntN(len(b)+1)]
		for _, err := range w.Subtree(ctx, tree, Root, 0, Cursor(b)) {
			if err != nil && !errors.Is(err, ErrInvalid) {
				t.Fatalf("%x: %v", b, err)
			}
		}
		if _, err := w.Children(ctx, tree, Root, Position(b), 3); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
	}
	for _, err := range w.Subtree(ctx, tree, 1, 0, last.Cursor()) {
		refused(t, err, ErrInvalid)
	}
}

// TestChildren: pages of any size, from any node on, are the children by name.
func TestChildren(t *testing.T) {
	w, _ := grown(t, 300)
	all, err := w.Children(ctx, tree, Root, "", 1000)
	must(t, err)
	if len(all) < 10 || !slices.IsSortedFunc(all, func(a, b Node) int { return strings.Compare(a.Name(), b.Name()) }) {
		t.Fatalf("%d children", len(all))
	}
	for size := 1; size < 9; size++ {
		var got []Node
		for after := Position(""); ; {
			page, err := w.Children(ctx, tree, Root, after, size)
			must(t, err)
			if got = append(got, page...); len(page) < size {
				break
			}
			after = page[size-1].Position()
		}
		if fmt.Sprint(got) != fmt.Sprint(all) {
			t.Errorf("pages of %d: %d of %d", size, len(got), len(all))
		}
	}
	if page, err := w.Children(ctx, tree, Root, "", 0); err != nil || len(page) != 0 {
		t.Errorf("%v, %v", page, err)
	}
	_, err = w.Children(ctx, tree, 12345, "", 1)
	refused(t, err, blobstor.ErrNotFound)
	if page, err := w.Children(ctx, tree, 300, "", 1); err != nil || len(page) != 0 {
		t.Errorf("%v, %v", page, err)
	}
}

// TestOpLog: pages of the log, in order.
func TestOpLog(t *testing.T) {
	w := quick(t)
	ops := []Operation{op(2, Root, 1), op(5, 1, 1), op(9, Root, 2, "k", "v")}
	must(t, w.ApplyBatch(ctx, tree, ops))
	for from, want := range map[uint64]int{0: 3, 1: 3, 2: 3, 3: 2, 9: 1, 10: 0, MaxTime + 1: 0} {
		log, err := w.OpLog(ctx, tree, from, 10)
		if err != nil || len(log) != want {
			t.Errorf("from %d: %v, %v", from, log, err)
		}
	}
	for limit := range 4 {
		log, err := w.OpLog(ctx, tree, 0, limit)
		if err != nil || fmt.Sprint(log) != fmt.Sprint(ops[:limit]) {
			t.Errorf("%d: %v, %v", limit, log, err)
		}
	}
	if height, last, err := w.Span(ctx, tree); height != 0 || last != 9 || err != nil {
		t.Error(height, last, err)
	}
}
