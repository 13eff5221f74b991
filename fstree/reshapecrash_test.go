package fstree

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// story is a ledger that many may write, and of which a copy may be taken at any moment: a blob of which a call is
// changing something may be there or not.
type story struct {
	mu sync.Mutex
	ledger
}

func (s *story) put(tree *Tree, n int) error {
	if !s.begin(n, present) {
		return nil // It stays: a Put of a stored blob changes nothing.
	}
	_, err := tree.Put(ctx, address(n), content(n, ledgerSize))
	s.end(n, present, err)
	return err
}

func (s *story) delete(tree *Tree, n int) error {
	s.begin(n, absent)
	err := tree.Delete(ctx, address(n), "")
	s.end(n, absent, err)
	return err
}

// begin reports whether the call changes anything.
func (s *story) begin(n int, to fate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger[n] == to {
		return false
	}
	s.ledger[n] = either
	return true
}

func (s *story) end(n int, to fate, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.ledger[n] = to
	}
}

// film is a tap that takes a picture before each chosen step: what a loss of power then would leave, and what was
// acknowledged by then.
type film struct {
	t     *testing.T
	dir   string
	power *crashtest.Recorder
	story *story
	every int
	turn  int // which of every steps it is

	mu       sync.Mutex
	count    int
	pictures []picture
}

type picture struct {
	dir    string
	ledger ledger
	where  string
}

func filming(t *testing.T, root string, l ledger, every int) *film {
	t.Helper()
	power, err := crashtest.NewRecorder(root)
	check(t, err)
	f := &film{t: t, dir: filepath.Join(root, "store"), power: power, story: &story{ledger: l}, every: every}
	f.turn = rand.IntN(every)
	return f
}

func (f *film) Before(op durable.Op, path string, file *durable.File) error {
	// The first level is made by 256 steps that are all alike.
	if op != durable.OpOpen && op != durable.OpRead && (op != durable.OpMkdir || filepath.Dir(path) != f.dir) {
		f.step(op, path)
	}
	return f.power.Before(op, path, file)
}

func (f *film) After(op durable.Op, path string, file *durable.File) { f.power.After(op, path, file) }

func (f *film) step(op durable.Op, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; f.count%f.every != f.turn {
		return
	}
	f.story.mu.Lock() // Nothing is acknowledged between the two halves of the picture.
	defer f.story.mu.Unlock()
	dir := filepath.Join(memory(f.t), "after")
	check(f.t, f.power.PowerLoss(dir))
	where := fmt.Sprintf("step %d, %v of %s", f.count, op, filepath.Base(path))
	f.pictures = append(f.pictures, picture{dir, maps.Clone(f.story.ledger), where})
}

// live opens the store, lets a Reshape to the depth run beside puts and deletes, and closes it.
func (f *film) live(o Options, depth int, from int) {
	o.tap = f
	tree := reopen(f.t, f.dir, o)
	f.story.check(f.t, tree)
	var all sync.WaitGroup
	all.Go(func() {
		if err := tree.Reshape(ctx, depth); err != nil {
			f.t.Error(err)
		}
	})
	for n := from; n < from+8; n++ {
		if err := f.story.put(tree, n); err != nil {
			f.t.Error(err)
		}
		if err := f.story.delete(tree, n-4); err != nil && !errors.Is(err, blobstor.ErrNotFound) {
			f.t.Error(err)
		}
	}
	all.Wait()
	f.story.check(f.t, tree)
	check(f.t, tree.Close())
}

// recover opens what a picture shows and goes on to a depth. It returns the pictures of that, none if every is 0: then
// nobody needs to follow what is durable, which is most of the work.
func (p *picture) recover(t *testing.T, depth, every int) []picture {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(p.where)
		}
	}()
	f := &film{dir: filepath.Join(p.dir, "store"), story: &story{ledger: p.ledger}}
	var o Options
	if every > 0 {
		f = filming(t, p.dir, p.ledger, every)
		o.tap = f
	}
	tree := reopen(t, f.dir, o)
	p.ledger.check(t, tree)
	settleFates(t, tree, f.story.ledger)
	check(t, tree.Reshape(ctx, depth))
	f.story.check(t, tree)
	check(t, tree.Close())
	tree = reopen(t, f.dir, Options{Depth: option(depth)})
	f.story.check(t, tree)
	model := map[int]int{}
	for n, fate := range f.story.ledger {
		if fate == present {
			model[n] = ledgerSize
		}
	}
	checkAll(t, tree, model)
	checkPlaces(t, tree, model, depth)
	check(t, tree.Close())
	check(t, os.RemoveAll(p.dir))
	return f.pictures
}

// settleFates decides about the blobs that calls were changing: what can be found after a loss of power is durable.
func settleFates(t *testing.T, tree *Tree, l ledger) {
	t.Helper()
	for n, fate := range l {
		if fate != either {
			continue
		}
		l[n] = present
		if _, err := tree.Stat(ctx, address(n), ""); err != nil {
			checkIs(t, err, blobstor.ErrNotFound)
			l[n] = absent
		}
	}
}

// TestReshapePowerLoss cuts the power at the steps of a Reshape beside puts and deletes, and again at the steps of a
// Reshape that goes on from there, to the same depth, back, or elsewhere. What was acknowledged holds.
func TestReshapePowerLoss(t *testing.T) {
	outer, inner, nested := 4, 7, 5
	switch {
	case testing.Short():
		outer, inner, nested = 11, 11, 4
	case thorough:
		outer, inner, nested = 2, 7, 11
	}
	eachPair(t, func(t *testing.T, old, depth int) {
		for _, rename := range []bool{false, true} {
			if rename && (testing.Short() || old+depth != 3) {
				continue
			}
			root := memory(t)
			tree := reopen(t, filepath.Join(root, "store"), Options{Depth: option(old)})
			l := ledger{}
			for n := range 16 {
				_, err := tree.Put(ctx, address(n), content(n, ledgerSize))
				l.put(n, err)
			}
			check(t, tree.Close())
			f := filming(t, root, l, outer)
			f.live(Options{rename: rename}, depth, 12)
			again := 0
			for i, p := range f.pictures {
				every := 0
				if i%nested == nested-1 {
					every = inner
				}
				for k, q := range p.recover(t, goal(i, old, depth), every) {
					q.where = p.where + "; " + q.where
					q.recover(t, goal(k, old, depth), 0)
					again++
				}
			}
			t.Logf("%d steps, %d losses of power, %d nested", f.count, len(f.pictures), again)
		}
	})
}

// goal is where the i-th recovery goes: on, back, or to some other depth.
func goal(i, old, depth int) int {
	switch i % 4 {
	case 0:
		return old
	case 1:
		return i / 4 % (maxDepth + 1)
	}
	return depth
}

// TestReshapeFails fails each operation of a Reshape beside puts and deletes, once and for good: what was acknowledged
// stays, now, after a loss of power, and when a later Reshape has ended.
func TestReshapeFails(t *testing.T) {
	pairs, errnos := [][2]int{{0, 2}, {1, 2}, {2, 1}, {1, 0}}, []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EMFILE}
	if testing.Short() {
		pairs, errnos = pairs[1:2], errnos[1:2]
	}
	ops := append([]durable.Op{durable.OpSyncAll}, faultOps...)
	for _, pair := range pairs {
		for _, op := range ops {
			for _, no := range errnos {
				t.Run(fmt.Sprintf("%d to %d/%v/%v", pair[0], pair[1], op, no), func(t *testing.T) {
					t.Parallel()
					for _, forever := range []bool{false, true} {
						fault := crashtest.Fault{Op: op, Forever: forever, Err: no}
						for failReshape(t, fault, pair[0], pair[1]) {
							fault.N = later(fault.N)
						}
					}
				})
			}
		}
	}
}

// later is the operation to fail next.
func later(n int) int {
	if thorough {
		return n*3/2 + 1
	}
	return n*2 + 1 + rand.IntN(n+1)
}

// failReshape makes one run with one fault, and reports whether the fault was met.
func failReshape(t *testing.T, fault crashtest.Fault, old, depth int) bool {
	t.Helper()
	r, l := watched(t, memory(t)), ledger{}
	o := Options{Depth: option(old), tap: r.faults}
	tree := reopen(t, r.dir, o)
	for n := range 12 {
		_, err := tree.Put(ctx, address(n), content(n, ledgerSize))
		l.put(n, err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("fault %+v: %v", fault, l)
		}
	}()
	r.faults.Add(fault)
	var all sync.WaitGroup
	all.Go(func() {
		if err := tree.Reshape(ctx, depth); err != nil && !errors.Is(err, fault.Err) {
			t.Error(err)
		}
	})
	var failed []int // A sync of the Reshape may have made the name durable before that of the Put failed.
	for n := range 4 {
		l.delete(n, tree.Delete(ctx, address(n), ""))
		_, err := tree.Put(ctx, address(20+n), content(20+n, ledgerSize))
		l.put(20+n, err)
		if errors.Is(err, blobstor.ErrFailed) {
			failed = append(failed, 20+n)
		}
	}
	all.Wait()
	met := r.faults.Hits() > 0
	r.faults.Clear()
	l.check(t, tree)

	resumed, lost := reopen(t, filepath.Join(lose(t, r.power), "store"), Options{}), maps.Clone(l)
	for _, n := range failed {
		lost[n] = either
	}
	lost.check(t, resumed)
	check(t, resumed.Reshape(ctx, old))
	lost.check(t, resumed)
	check(t, resumed.Close())

	_ = tree.Reshape(ctx, depth) // It may meet a directory whose sync has failed.
	l.check(t, tree)
	_ = tree.Close()
	tree = reopen(t, r.dir, Options{tap: r.faults})
	l.check(t, tree)
	check(t, tree.Reshape(ctx, depth))
	l.check(t, tree)
	check(t, tree.Close())
	l.check(t, reopen(t, filepath.Join(lose(t, r.power), "store"), Options{Depth: option(depth)}))
	return met
}

// TestReshapeFailedSync: an old directory from which names were removed, but nobody knows whether for good, keeps a
// Reshape from its end until the store is opened again.
func TestReshapeFailedSync(t *testing.T) {
	r := watched(t, memory(t))
	tree := reopen(t, r.dir, Options{tap: r.faults})
	put(t, tree, 1, 10)
	old := filepath.Dir(pathOf(tree, address(1)))
	r.faults.Add(crashtest.Fault{N: 1, Err: syscall.EIO, Match: func(op durable.Op, path string) bool {
		return op == durable.OpSyncDir && path == old // The first one is for the new directory's name.
	}})
	for range 2 {
		checkIs(t, tree.Reshape(ctx, 2), blobstor.ErrFailed, syscall.EIO)
		has(t, tree, 1, 10)
		if tree.Stats().Moved != 1 || exists(pathAt(tree, address(1), 1)) {
			t.Fatal("the blob was not moved")
		}
	}
	checkIs(t, tree.Delete(ctx, address(1), ""), blobstor.ErrFailed)
	check(t, tree.Close())
	tree = reopen(t, r.dir, Options{tap: r.faults})
	check(t, tree.Reshape(ctx, 2))
	after := reopen(t, filepath.Join(lose(t, r.power), "store"), Options{Depth: 2})
	checkAll(t, after, map[int]int{1: 10})
	checkPlaces(t, after, map[int]int{1: 10}, 2)
}

// TestKillReshape is TestCrash for a process that reshapes its store all the time.
func TestKillReshape(t *testing.T) {
	t.Setenv(crashReshape, "true")
	killCycles(t)
}
