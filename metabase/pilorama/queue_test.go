package pilorama

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// gate stands around the commits of the file: it can hold one back, and fail it before or after it happens.
type gate struct {
	mu      sync.Mutex
	arrived chan struct{} // closed when a commit waits
	open    chan struct{} // on which it waits
	err     error
	late    bool // fail after the commit
	commits int
}

func (g *gate) commit(commit func() error) error {
	g.mu.Lock()
	arrived, open, err, late := g.arrived, g.open, g.err, g.late
	g.arrived, g.open, g.err = nil, nil, nil
	g.commits++
	g.mu.Unlock()
	if arrived != nil {
		close(arrived)
		<-open
	}
	if err == nil || late {
		if err := commit(); err != nil {
			return err
		}
	}
	return err
}

func (g *gate) hold() (arrived, open chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived, g.open = make(chan struct{}), make(chan struct{})
	return g.arrived, g.open
}

func gated(t *testing.T, queue int) (*world, *gate) {
	g := &gate{}
	return newWorld(t, Options{NoSync: true, Ballast: -1, Queue: queue, boltCommit: g.commit}), g
}

// TestBackPressure: a full queue makes its callers wait, those of other trees not; a context ends the waiting, and then
// it did not happen. Nothing else is given up.
func TestBackPressure(t *testing.T) {
	w, g := gated(t, 3)
	arrived, open := g.hold()
	var wg sync.WaitGroup
	for i := range uint64(20) {
		wg.Go(func() { must(t, w.Apply(ctx, tree, op(i+1, Root, NodeID(i+1)))) })
		if i == 0 {
			<-arrived
		}
	}
	for w.queues.users(tree) < 20 {
		runtime.Gosched()
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	err := w.Apply(short, tree, op(100, Root, 100))
	refused(t, err, context.DeadlineExceeded)
	other := make(chan error, 1)
	go func() { other <- w.Apply(ctx, doomed, op(1, Root, 1)) }()
	for w.queues.users(doomed) < 1 {
		runtime.Gosched()
	}
	close(open)
	wg.Wait()
	must(t, <-other)
	log, err := w.OpLog(ctx, tree, 0, 100)
	if err != nil || len(log) != 20 {
		t.Errorf("%d operations, %v", len(log), err)
	}
	if len(w.queues.of) != 0 {
		t.Errorf("%d queues are left", len(w.queues.of))
	}
}

func (q *queues) users(tree Tree) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if of := q.of[tree]; of != nil {
		return of.users
	}
	return 0
}

// TestQueues: places are limited and come back, and a queue that nobody is in is forgotten.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queues{limit: 2}
		var mu sync.Mutex
		inside, most := 0, 0
		enter := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			inside += n
			most = max(most, inside)
		}
		for range 50 {
			go func() {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				leave, err := q.join(ctx, tree)
				if err != nil {
					wantIs(t, err, context.DeadlineExceeded)
					return
				}
				enter(1)
				time.Sleep(time.Second)
				enter(-1)
				leave()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 2 || inside != 0 || len(q.of) != 0 {
			t.Errorf("most %d, inside %d, %d queues", most, inside, len(q.of))
		}
	})
}

// TestGrouped: what waits while a commit runs shares the next one, with its late operations undone and redone once, and
// what is refused is refused alone.
func TestGrouped(t *testing.T) {
	w, g := gated(t, 0)
	must(t, w.ApplyBatch(ctx, tree, []Operation{op(100, Root, 1), op(200, 1, 2), op(300, 2, 3)}))
	arrived, open := g.hold()
	before := g.commits
	ops := []Operation{op(400, Root, 9), op(150, 3, 1), op(50, 2, 1), op(250, 3, 2), op(60, Root, 3), op(70, Root, 4)}
	var wg sync.WaitGroup
	errs := make([]error, len(ops)+3)
	for i := range ops {
		wg.Go(func() { errs[i] = w.Apply(ctx, tree, ops[i]) })
		if i == 0 {
			<-arrived
		}
	}
	wg.Go(func() { errs[len(ops)] = w.Apply(ctx, tree, op(100, Root, 77)) })
	wg.Go(func() { _, errs[len(ops)+1] = w.Move(ctx, tree, alone, 78, Root, nil) })
	wg.Go(func() { _, errs[len(ops)+2] = w.Add(ctx, tree, alone, Root, nil) })
	for w.queues.users(tree) < len(errs) {
		runtime.Gosched()
	}
	close(open)
	wg.Wait()
	for i, err := range errs {
		want := map[int]error{len(ops): ErrConflict, len(ops) + 1: blobstor.ErrNotFound}[i]
		if !errors.Is(err, want) {
			t.Errorf("operation %d: %v, want %v", i, err, want)
		}
	}
	if n := g.commits - before; n > 3 {
		t.Errorf("%d commits", n)
	}
	log, err := w.OpLog(ctx, tree, 0, 99)
	if err != nil || len(log) != 10 || log[9].Time != 401 {
		t.Errorf("%v, %v", log, err)
	}
	w.wantTree(t, log...)
}

// TestParallelApply: many callers with the same operations in different orders come to the tree of the model.
func TestParallelApply(t *testing.T) {
	w := quick(t)
	_, ops := crashOps()
	ops = ops[:1000]
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(i, 4))
			w.deliver(t, rng, shuffled(rng, ops, 100))
		})
	}
	wg.Wait()
	w.wantTree(t, ops...)
}

// TestFullDisk: after a commit that met a full disk the database goes on with what is there, and the same operations
// may be applied again.
func TestFullDisk(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			w, g := gated(t, 0)
			must(t, w.Apply(ctx, tree, op(1, Root, 1)))
			g.err, g.late = fmt.Errorf("file resize error: %s", syscall.ENOSPC), late
			more := []Operation{op(2, Root, 2), op(3, 2, 1)}
			err := w.ApplyBatch(ctx, tree, more)
			wantIs(t, err, blobstor.ErrUncertain, blobstor.ErrNoSpace)
			if blobstor.IsFault(err) {
				t.Errorf("%v is a fault", err)
			}
			want := []Operation{op(1, Root, 1)}
			if late {
				want = append(want, more...)
			}
			w.wantTree(t, want...)
			must(t, w.ApplyBatch(ctx, tree, more))
			w.wantTree(t, append(more, op(1, Root, 1))...)
		})
	}
}

// TestPressed: while the ballast is missing only what makes room is taken.
func TestPressed(t *testing.T) {
	w := quick(t)
	a := w.addPath(t, "a")
	w.opts.Ballast = 1 << 60 // no disk has the room
	w.reopen(t)
	for name, err := range w.writes(a) {
		switch name {
		case "apply nothing", "drop", "drop nothing", "compact":
			must(t, err)
		case "truncate":
			refused(t, err, blobstor.ErrNotFound) // it was dropped
		default:
			if refused(t, err, ErrPressed, blobstor.ErrNoSpace); err == nil {
				t.Errorf("%s was taken", name)
			}
		}
	}
	if names, err := w.List(ctx, tree.Container); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
	w.check(t)
}

// TestLateCost: what is late costs what it changes. Of 5,000 operations behind it on files, and of those that make new
// directories, none is undone; of those on directories that there are, each is.
func TestLateCost(t *testing.T) {
	w := quick(t)
	ops := []Operation{op(1000, Root, 1, FileName, "dir"), op(1001, Root, 2, FileName, "other")}
	for i := range uint64(5000) {
		ops = append(ops, op(2000+i, NodeID(1+i%2), NodeID(2000+i), FileName, "f"))
	}
	must(t, w.ApplyBatch(ctx, tree, ops))
	for _, test := range []struct {
		name string
		late []Operation
		most int // entries written
	}{
		{"a new file", []Operation{op(10, 1, 10)}, 3},
		{"a file moves", []Operation{op(11, 2, 2100)}, 5},
		{"a file in a new directory", []Operation{op(12, Root, 12), op(13, 12, 13), op(14, 12, 14)}, 3*3 + 1 + 1},
		{"a directory moves", []Operation{op(15, 2, 1)}, 10},
	} {
		var writes int
		must(t, w.do(ctx, &request{tree: tree, local: func(b *branch) error {
			var moves []move
			for i := range test.late {
				m, err := test.late[i].pack()
				must(t, err)
				moves = append(moves, m)
			}
			err := b.merge(moves)
			writes = b.t.writes
			return err
		}}, 0))
		if ops = append(ops, test.late...); writes > test.most {
			t.Errorf("%s: %d entries were written, at most %d", test.name, writes, test.most)
		}
	}
	w.wantTree(t, ops...)
}

// TestFaultHook: a commit that failed is told once, however many wait for it.
func TestFaultHook(t *testing.T) {
	g, faults := &gate{}, make(chan error, 100)
	w := newWorld(t, Options{NoSync: true, Ballast: -1, boltCommit: g.commit, Hooks: blobstor.Hooks{Fault: func(_ string, err error) { faults <- err }}})
	arrived, open := g.hold()
	var wg sync.WaitGroup
	for i := range uint64(10) {
		wg.Go(func() { _ = w.Apply(ctx, tree, op(i+1, Root, NodeID(i+1))) })
		if i == 0 {
			<-arrived
			g.mu.Lock()
			g.err = syscall.EIO
			g.mu.Unlock()
		}
	}
	for w.queues.users(tree) < 10 {
		runtime.Gosched()
	}
	close(open)
	wg.Wait()
	wantIs(t, <-faults, blobstor.ErrUncertain)
	_, err := w.GetMeta(ctx, tree, 1)
	wantIs(t, err, blobstor.ErrFailed)
	wantIs(t, <-faults, blobstor.ErrFailed)
	if len(faults) > 0 {
		t.Errorf("%d more", len(faults))
	}
}
