package pilorama

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// modelNode is a node of the model.
type modelNode struct {
	parent      NodeID
	time, birth uint64
	meta        []Attr
}

// model makes a tree of operations by the definition: one after the other in the order of their times. It shares no
// code with the package.
func model(ops []Operation) map[NodeID]modelNode {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b Operation) int { return cmp.Compare(a.Time, b.Time) })
	tree := make(map[NodeID]modelNode)
	for _, op := range ops {
		cycle := op.Child == op.Parent
		for at, ok := tree[op.Parent]; ok && !cycle; at, ok = tree[at.parent] {
			cycle = at.parent == op.Child
		}
		if cycle {
			continue
		}
		n, ok := tree[op.Child]
		if !ok {
			n.birth = op.Time
		}
		n.parent, n.time, n.meta = op.Parent, op.Time, op.Meta
		tree[op.Child] = n
	}
	return tree
}

func modelText(ops []Operation) string {
	var text strings.Builder
	all := model(ops)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		n := all[id]
		fmt.Fprintf(&text, "%d: %d at %d, born %d, %q\n", id, n.parent, n.time, n.birth, appendMeta(nil, n.meta))
	}
	return text.String()
}

// randomOps returns operations on few nodes, so that there are many cycles, moves back and parents that come late.
func randomOps(rng *rand.Rand, n, nodes int) []Operation {
	ops := make([]Operation, n)
	time := uint64(0)
	for i := range ops {
		time += 1 + rng.Uint64N(3)
		parent := NodeID(rng.IntN(nodes + 1))
		if rng.IntN(10) == 0 {
			parent = Trash
		}
		ops[i] = Operation{time, parent, NodeID(1 + rng.IntN(nodes)), []Attr{{FileName, fmt.Sprint(rng.IntN(4))}, {"n", fmt.Sprint(i)}}[:rng.IntN(3)]}
	}
	return ops
}

// shuffled returns operations in another order, some of them twice.
func shuffled(rng *rand.Rand, ops []Operation, far int) []Operation {
	ops = slices.Clone(ops)
	for range len(ops) / 4 {
		ops = slices.Insert(ops, rng.IntN(len(ops)+1), ops[rng.IntN(len(ops))])
	}
	for i := range ops {
		j := min(len(ops)-1, i+rng.IntN(far))
		ops[i], ops[j] = ops[j], ops[i]
	}
	return ops
}

// deliver applies operations in batches of random sizes.
func (w *world) deliver(tb testing.TB, rng *rand.Rand, ops []Operation) {
	tb.Helper()
	for len(ops) > 0 {
		n := 1 + rng.IntN(min(len(ops), 1+rng.IntN(40)))
		must(tb, w.ApplyBatch(ctx, tree, ops[:n]))
		ops = ops[n:]
	}
}

// TestModel: whatever the order, the batches and the duplicates in which operations come, the tree is that of the
// model, and Check agrees.
func TestModel(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 25
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ops := randomOps(rng, 1+rng.IntN(120), 1+rng.IntN(30))
		want := modelText(ops)
		w := quick(t)
		for range 3 {
			w.deliver(t, rng, shuffled(rng, ops, 1+rng.IntN(len(ops))))
			if got := w.state(t, tree); got != want {
				t.Fatalf("seed %d:\ngot\n%swant\n%s", seed, got, want)
			}
			if err := w.Check(ctx); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			must(t, w.Drop(ctx, tree))
		}
		must(t, w.Close())
	}
}
