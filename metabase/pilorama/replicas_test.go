package pilorama

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// network is a number of replicas, and what is on its way between them.
type network struct {
	rng      *rand.Rand
	replicas []*world
	inbox    [][]Operation // of each replica
	all      []Operation
}

func newNetwork(tb testing.TB, seed uint64, size int) *network {
	n := &network{rng: rand.New(rand.NewPCG(seed, 2)), inbox: make([][]Operation, size)}
	for range size {
		n.replicas = append(n.replicas, quick(tb))
	}
	return n
}

// send puts operations of one replica on their way to all others.
func (n *network) send(from int, ops ...Operation) {
	n.all = append(n.all, ops...)
	for i := range n.inbox {
		if i != from {
			n.inbox[i] = append(n.inbox[i], ops...)
		}
	}
}

// act does something on a replica. What is refused, because the replica's tree is not so, changes nothing.
func (n *network) act(i int) error {
	w, clock := n.replicas[i], Clock{uint64(i), uint64(len(n.replicas))}
	name := fmt.Sprint(n.rng.IntN(4))
	var ops []Operation
	var op Operation
	var err error
	switch n.rng.IntN(6) {
	case 0, 1:
		path := []string{fmt.Sprint(n.rng.IntN(2)), fmt.Sprint(n.rng.IntN(2))}[:n.rng.IntN(3)]
		ops, err = w.AddByPath(ctx, tree, clock, path, named(name, "by", fmt.Sprint(i)))
	case 2:
		op, err = w.Add(ctx, tree, clock, n.anyNode(), named(name))
	case 3, 4:
		op, err = w.Move(ctx, tree, clock, n.anyNode(), n.anyNode(), [][]Attr{nil, {}, named(name)}[n.rng.IntN(3)])
	case 5:
		op, err = w.Remove(ctx, tree, clock, n.anyNode())
	}
	if err == nil && ops == nil {
		ops = append(ops, op)
	}
	n.send(i, ops...)
	for _, refusal := range []error{ErrCycle, ErrInvalid, blobstor.ErrNotFound} {
		if errors.Is(err, refusal) {
			return nil
		}
	}
	return err
}

func (n *network) anyNode() NodeID {
	if len(n.all) == 0 || n.rng.IntN(5) == 0 {
		return Root
	}
	return n.all[n.rng.IntN(len(n.all))].Child
}

// deliver hands a replica some of what is on its way to it, not in order, and maybe again later.
func (n *network) deliver(i, most int) error {
	var batch []Operation
	for range min(most, len(n.inbox[i])) {
		at := n.rng.IntN(len(n.inbox[i]))
		batch = append(batch, n.inbox[i][at])
		if n.rng.IntN(4) > 0 {
			n.inbox[i][at] = n.inbox[i][len(n.inbox[i])-1]
			n.inbox[i] = n.inbox[i][:len(n.inbox[i])-1]
		}
	}
	return n.replicas[i].ApplyBatch(ctx, tree, batch)
}

func (n *network) settle(tb testing.TB) {
	tb.Helper()
	for i := range n.replicas {
		for len(n.inbox[i]) > 0 {
			must(tb, n.deliver(i, 1+n.rng.IntN(20)))
		}
	}
}

// wantOne wants one tree in all replicas, that of the model.
func (n *network) wantOne(tb testing.TB, seed uint64) {
	tb.Helper()
	want := modelText(n.all)
	for i, w := range n.replicas {
		if got := w.state(tb, tree); got != want {
			tb.Fatalf("seed %d, replica %d:\ngot\n%swant\n%s", seed, i, got, want)
		}
		if err := w.Check(ctx); err != nil {
			tb.Fatalf("seed %d, replica %d: %v", seed, i, err)
		}
	}
}

// TestReplicas: up to eight replicas that act and hear of each other in any order come to one tree, and no two
// operations have one time.
func TestReplicas(t *testing.T) {
	rounds := 16
	if testing.Short() {
		rounds = 8
	}
	for seed := range uint64(rounds) {
		n := newNetwork(t, seed, 1+int(seed%8))
		must(t, n.replicas[0].ApplyBatch(ctx, tree, []Operation{{1 << 20, Root, 1 << 20, nil}})) // so that the tree is known
		n.send(0, Operation{1 << 20, Root, 1 << 20, nil})
		for range 150 {
			i := n.rng.IntN(len(n.replicas))
			if n.rng.IntN(3) > 0 {
				must(t, n.act(i))
			} else {
				must(t, n.deliver(i, 1+n.rng.IntN(20)))
			}
			if n.rng.IntN(50) == 0 {
				n.replicas[i].reopen(t)
			}
		}
		n.settle(t)
		times := map[uint64]bool{}
		for _, op := range n.all {
			if times[op.Time] {
				t.Fatalf("seed %d: two operations at %d", seed, op.Time)
			}
			times[op.Time] = true
		}
		n.wantOne(t, seed)
		for _, w := range n.replicas {
			w.Close()
		}
	}
}

// TestTruncatedReplicas: after the log was truncated, at a height that all have reached, replicas go on to one tree; and
// one that lost all begins anew from the base.
func TestTruncatedReplicas(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 6
	}
	for seed := range uint64(rounds) {
		n := newNetwork(t, seed, 3)
		for range 60 {
			must(t, n.act(n.rng.IntN(3)))
		}
		n.settle(t)
		n.wantOne(t, seed)
		height := n.all[n.rng.IntN(len(n.all))].Time
		must(t, n.replicas[0].Truncate(ctx, tree, height))
		must(t, n.replicas[2].Truncate(ctx, tree, height+5))
		// Late operations, and new ones.
		for range 40 {
			must(t, n.act(n.rng.IntN(3)))
		}
		lost := quick(t)
		n.settle(t)
		n.wantOne(t, seed)
		n.restore(t, lost, n.replicas[0])
		n.replicas = append(n.replicas, lost)
		n.inbox = append(n.inbox, nil)
		n.wantOne(t, seed)
		for range 40 {
			must(t, n.act(n.rng.IntN(3)))
		}
		n.settle(t)
		n.wantOne(t, seed)
		for _, w := range n.replicas {
			w.Close()
		}
	}
}

// restore does what TruncatedError tells a replica to do.
func (n *network) restore(tb testing.TB, lost, from *world) {
	tb.Helper()
	height, _, err := from.Span(ctx, tree)
	must(tb, err)
	if height == 0 {
		tb.Fatal("nothing was truncated")
	}
	_, err = from.OpLog(ctx, tree, height-1, 1)
	refused(tb, err, ErrTruncated)
	if e, ok := errors.AsType[*TruncatedError](err); !ok || e.Height != height {
		tb.Fatal(err)
	}
	must(tb, lost.Apply(ctx, tree, n.all[0])) // what it had
	must(tb, lost.Drop(ctx, tree))
	var base []Operation
	for op, err := range from.Base(ctx, tree) {
		must(tb, err)
		base = append(base, op)
	}
	n.rng.Shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
	must(tb, lost.ApplyBatch(ctx, tree, base))
	if len(base) > 0 {
		must(tb, lost.Truncate(ctx, tree, height))
	}
	ops, err := from.OpLog(ctx, tree, height, 1<<20)
	must(tb, err)
	lost.deliver(tb, n.rng, shuffled(n.rng, ops, len(ops)))
}
