package pilorama

import (
	"math"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestLimits: the limits are what they were, what reaches one is taken and found again, and one byte more is refused and
// changes nothing. Other replicas rely on that.
func TestLimits(t *testing.T) {
	for name, is := range map[string][2]uint64{
		"MaxTreeName": {MaxTreeName, 255}, "MaxName": {MaxName, 4096}, "MaxMeta": {MaxMeta, 65536}, "MaxPath": {MaxPath, 1024}, "MaxTime": {MaxTime, math.MaxUint64 - 1},
	} {
		if is[0] != is[1] {
			t.Errorf("%s is %d, was %d", name, is[0], is[1])
		}
	}
	w := quick(t)
	for name, of := range map[string]func(more int) Operation{
		"meta":  func(more int) Operation { return op(1, Root, 1, "k", strings.Repeat("v", MaxMeta-5+more)) },
		"name":  func(more int) Operation { return op(2, Root, 2, FileName, strings.Repeat("n", MaxName+more)) },
		"zeros": func(more int) Operation { return op(3, Root, 3, FileName, strings.Repeat("\x00", MaxName/2+more)) },
		"time":  func(more int) Operation { return op(MaxTime+uint64(more), Root, 4) },
	} {
		good, bad := of(0), of(1)
		must(t, w.Apply(ctx, tree, good))
		n, err := w.GetMeta(ctx, tree, good.Child)
		if err != nil || len(n.Meta) != len(good.Meta) || len(n.Meta) > 0 && n.Meta[0] != good.Meta[0] {
			t.Errorf("%s: %v", name, err)
		}
		bad.Child += 100
		before := w.dump(t)
		err = w.ApplyBatch(ctx, tree, []Operation{op(50, Root, 50), bad})
		if name == "time" {
			refused(t, err, ErrInvalid)
		} else {
			refused(t, err, blobstor.ErrTooLarge)
		}
		if w.dump(t) != before {
			t.Errorf("%s: it changed", name)
		}
	}
	page, err := w.Children(ctx, tree, Root, "", 9)
	if err != nil || len(page) != 4 {
		t.Errorf("%d children, %v", len(page), err)
	}
	w.check(t)
	must(t, w.Apply(ctx, Tree{tree.Container, strings.Repeat("\x00", MaxTreeName)}, op(1, Root, 1)))
	w.check(t)
}

// TestBadInput: each bad argument has a clear error and changes nothing.
func TestBadInput(t *testing.T) {
	w := quick(t)
	a := w.addPath(t, "a")
	before := w.dump(t)
	big := []Attr{{"x", strings.Repeat("x", 1<<20)}}
	add := func(tree Tree, clock Clock, parent NodeID, meta []Attr) error {
		_, err := w.Add(ctx, tree, clock, parent, meta)
		return err
	}
	byPath := func(path []string, meta []Attr) error {
		_, err := w.AddByPath(ctx, tree, alone, path, meta)
		return err
	}
	remove := func(id NodeID) error {
		_, err := w.Remove(ctx, tree, alone, id)
		return err
	}
	get := func(path ...string) error {
		_, err := w.GetByPath(ctx, tree, path, false)
		return err
	}
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"no container", add(Tree{Name: "x"}, alone, Root, nil), ErrInvalid},
		{"no name", add(Tree{Container: blobstor.ID{1}}, alone, Root, nil), ErrInvalid},
		{"a long name", w.Apply(ctx, Tree{blobstor.ID{1}, strings.Repeat("x", 256)}, op(1, Root, 1)), ErrInvalid},
		{"a clock of none", add(tree, Clock{}, Root, nil), ErrInvalid},
		{"a position outside", add(tree, Clock{3, 3}, Root, nil), ErrInvalid},
		{"a huge clock", add(tree, Clock{0, math.MaxUint64}, Root, nil), ErrInvalid},
		{"an unknown parent", add(tree, alone, 999, nil), blobstor.ErrNotFound},
		{"the trash as parent", add(tree, alone, Trash, nil), ErrInvalid},
		{"huge attributes", add(tree, alone, Root, big), blobstor.ErrTooLarge},
		{"huge attributes by path", byPath([]string{"p"}, big), blobstor.ErrTooLarge},
		{"a long path", byPath(make([]string, MaxPath+1), nil), blobstor.ErrTooLarge},
		{"a long element", byPath([]string{strings.Repeat("x", MaxName+1)}, nil), blobstor.ErrTooLarge},
		{"remove the root", remove(Root), ErrInvalid},
		{"remove the trash", remove(Trash), ErrInvalid},
		{"remove an unknown node", remove(999), blobstor.ErrNotFound},
		{"apply the root", w.Apply(ctx, tree, op(9, a, Root)), ErrInvalid},
		{"apply the trash", w.Apply(ctx, tree, op(9, a, Trash)), ErrInvalid},
		{"apply at no time", w.Apply(ctx, tree, op(0, Root, 7)), ErrInvalid},
		{"two at one time", w.ApplyBatch(ctx, tree, []Operation{op(9, Root, 7), op(9, Root, 8)}), ErrConflict},
		{"another at that time", w.ApplyBatch(ctx, tree, []Operation{op(8, Root, 7), op(uint64(a), Root, 8)}), ErrConflict},
		{"an empty path", get(), ErrInvalid},
		{"a long path to look for", get(make([]string, MaxPath+1)...), ErrInvalid},
		{"an unknown path", get("a", "b"), blobstor.ErrNotFound},
		{"truncate beyond time", w.Truncate(ctx, tree, math.MaxUint64), ErrInvalid},
	} {
		if refused(t, test.err, test.want); test.err == nil {
			t.Errorf("%s was taken", test.name)
		}
	}
	if w.dump(t) != before {
		t.Error("something changed")
	}
}

// TestUnknownTree: reads say that it is not known, writes of what is in it too, and nothing makes it but an operation.
func TestUnknownTree(t *testing.T) {
	w := quick(t)
	other := Tree{blobstor.ID{7}, "unknown"}
	_, meta := w.GetMeta(ctx, other, 1)
	_, path := w.GetByPath(ctx, other, []string{"a"}, true)
	_, children := w.Children(ctx, other, Root, "", 1)
	_, log := w.OpLog(ctx, other, 0, 1)
	_, _, span := w.Span(ctx, other)
	_, move := w.Move(ctx, other, alone, 1, Root, nil)
	_, remove := w.Remove(ctx, other, alone, 1)
	var subtree, base error
	for _, subtree = range w.Subtree(ctx, other, Root, 0, "") {
		break
	}
	for _, base = range w.Base(ctx, other) {
		break
	}
	for _, err := range []error{meta, path, children, log, span, move, remove, subtree, base, w.Truncate(ctx, other, 1)} {
		refused(t, err, blobstor.ErrNotFound)
	}
	must(t, w.Drop(ctx, other))
	must(t, w.ApplyBatch(ctx, other, nil))
	if names, err := w.List(ctx, other.Container); err != nil || len(names) > 0 {
		t.Errorf("%q, %v", names, err)
	}
	w.check(t)
}

// TestStrangeNames: empty ones, zero bytes and all that sorts in odd ways are names like others.
func TestStrangeNames(t *testing.T) {
	w := quick(t)
	all := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x01", "a\x00b", "a\x01", "ab", "\xff", "\xff\xff"}
	for i := range all {
		name := all[i*7%len(all)] // each once
		dir := w.addPath(t, name)
		ops, err := w.AddByPath(ctx, tree, alone, []string{name, name}, named(name, "k", "v"))
		if err != nil || len(ops) != 2 || ops[0].Parent != dir {
			t.Fatalf("%q: %v, %v", name, ops, err)
		}
	}
	page, err := w.Children(ctx, tree, Root, "", 99)
	must(t, err)
	for i, n := range page {
		if n.Name() != all[i] {
			t.Errorf("child %d is %q, want %q", i, n.Name(), all[i])
		}
		found, err := w.GetByPath(ctx, tree, []string{all[i], all[i], all[i]}, false)
		if err != nil || len(found) != 1 || len(found[0].Meta) != 2 {
			t.Errorf("%q: %v, %v", all[i], found, err)
		}
	}
	w.check(t)
}

// TestClock: each replica has its times, and when none is left it says so.
func TestClock(t *testing.T) {
	for _, test := range []struct {
		clock      Clock
		last, want uint64
	}{
		{Clock{0, 1}, 0, 1}, {Clock{0, 4}, 0, 4}, {Clock{3, 4}, 0, 3}, {Clock{3, 4}, 3, 7}, {Clock{2, 4}, 3, 6}, {Clock{0, 4}, 7, 8},
		{Clock{0, 1}, MaxTime - 1, MaxTime}, {Clock{0, 1}, MaxTime, 0}, {Clock{1, 3}, MaxTime - 1, 0},
	} {
		if got, ok := test.clock.next(test.last); got != test.want && ok || ok != (test.want != 0) {
			t.Errorf("%+v behind %d: %d, %v", test.clock, test.last, got, ok)
		}
	}
	w := quick(t)
	must(t, w.Apply(ctx, tree, op(MaxTime-1, Root, 5)))
	_, err := w.AddByPath(ctx, tree, alone, []string{"x"}, nil)
	refused(t, err, ErrClock)
	_, err = w.Move(ctx, tree, alone, 5, Root, named("last"))
	must(t, err)
	_, err = w.Remove(ctx, tree, alone, 5)
	refused(t, err, ErrClock)
	_, err = w.Add(ctx, tree, alone, Root, nil)
	refused(t, err, ErrClock)
	w.check(t)
}

// TestForeignNodes: a node that is made here is new, whatever nodes others have, also those that are only spoken of.
func TestForeignNodes(t *testing.T) {
	w := quick(t)
	must(t, w.ApplyBatch(ctx, tree, []Operation{op(1, Root, 4), op(2, 5, 9), op(3, 8, 6)}))
	made, err := w.Add(ctx, tree, alone, Root, nil)
	if err != nil || made.Child != 7 || made.Time != 7 {
		t.Errorf("%+v, %v", made, err)
	}
	if made, err = w.Add(ctx, tree, alone, Root, nil); err != nil || made.Child != 10 {
		t.Errorf("%+v, %v", made, err)
	}
	w.check(t)
}
