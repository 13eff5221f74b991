package fstree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// ledger is what callers were told: the numbers that must be there, those that must not, and those for which
// either is right.
type ledger map[int]fate

type fate uint8

const (
	either fate = iota
	present
	absent
)

const ledgerSize = 1000

func (l ledger) put(n int, err error) {
	switch {
	case err == nil:
		l[n] = present
	case errors.Is(err, blobstor.ErrNoSpace), errors.Is(err, blobstor.ErrFailed):
		if _, ok := l[n]; !ok {
			l[n] = absent
		} // Otherwise it stays what it was.
	case l[n] == absent:
		l[n] = either
	}
}

func (l ledger) delete(n int, err error) {
	switch {
	case err == nil:
		l[n] = absent
	case !errors.Is(err, blobstor.ErrNotFound):
		l[n] = either
	}
}

// check compares the ledger with the tree.
func (l ledger) check(t *testing.T, tree *Tree) {
	t.Helper()
	for n, fate := range l {
		got, err := tree.Get(ctx, address(n), "", nil)
		switch {
		case err == nil && fate == absent:
			t.Fatalf("blob %d is there", n)
		case err == nil && string(got) != string(content(n, ledgerSize)):
			t.Fatalf("blob %d is wrong", n)
		case err != nil && (fate == present || !errors.Is(err, blobstor.ErrNotFound)):
			t.Fatalf("blob %d: %v", n, err)
		}
	}
}

// everything is a run through all calls that change something. It goes on after errors.
func everything(tree *Tree, l ledger) {
	put := func(n int) {
		_, err := tree.Put(ctx, address(n), content(n, ledgerSize))
		l.put(n, err)
	}
	put(1)
	put(2)
	put(1)
	l.delete(2, tree.Delete(ctx, address(2), ""))
	l.put(3, streamed(tree, 3))
	l.put(1, streamed(tree, 1))
	put(2)
	put(4)
}

func streamed(tree *Tree, n int) error {
	w, err := tree.NewWriter(ctx, ledgerSize)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := w.Write(content(n, ledgerSize)); err != nil {
		return err
	}
	_, err = w.Commit(address(n))
	return err
}

var faultOps = []durable.Op{
	durable.OpCreate, durable.OpOpen, durable.OpRead, durable.OpWrite, durable.OpSync, durable.OpMkdir, durable.OpLink,
	durable.OpRename, durable.OpRemove, durable.OpSyncDir,
}

// TestEveryOperationFails fails each operation of a run in turn, once and for good, with several errors: what was
// acknowledged stays, what was refused is not there, now, after a reopen, and after a loss of power.
func TestEveryOperationFails(t *testing.T) {
	errnos := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EMFILE}
	if testing.Short() {
		errnos = errnos[:1]
	}
	for _, rename := range []bool{false, true} {
		for _, op := range faultOps {
			for _, no := range errnos {
				t.Run(fmt.Sprintf("rename=%v/%v/%v", rename, op, no), func(t *testing.T) {
					t.Parallel()
					for _, forever := range []bool{false, true} {
						fault := crashtest.Fault{Op: op, Forever: forever, Err: no}
						for sweepFault(t, fault, Options{Depth: 2 - 3*int(no%2), rename: rename}) {
							fault.N++
						}
					}
				})
			}
		}
	}
}

// sweepFault makes one run with one fault, and reports whether the fault was met.
func sweepFault(t *testing.T, fault crashtest.Fault, o Options) bool {
	t.Helper()
	root := memory(t)
	r := watched(t, root)
	o.tap = r.faults
	tree := reopen(t, r.dir, o)
	r.faults.Add(fault)
	l := ledger{}
	everything(tree, l)
	defer func() {
		if t.Failed() {
			t.Logf("fault %+v: %v", fault, l)
		}
	}()
	met := r.faults.Hits() > 0
	r.faults.Clear()
	l.check(t, tree)

	o.tap = nil
	l.check(t, reopen(t, filepath.Join(lose(t, r.power), "store"), o))

	_ = tree.Close() // It may report the fault.
	o.tap = r.faults
	tree = reopen(t, r.dir, o)
	l.check(t, tree)
	put(t, tree, 5, 10)
	check(t, tree.Close())
	return met
}

// lose returns a directory with what a loss of power leaves.
func lose(t *testing.T, power *crashtest.Recorder) string {
	t.Helper()
	root := filepath.Join(memory(t), "after")
	check(t, power.PowerLoss(root))
	return root
}

// TestOpenFails fails each operation of making and opening a store: a later open goes on.
func TestOpenFails(t *testing.T) {
	for _, op := range append(faultOps, durable.OpSyncAll) {
		t.Run(op.String(), func(t *testing.T) {
			for n := 0; ; n++ {
				r := watched(t, memory(t))
				r.faults.Add(crashtest.Fault{Op: op, N: n, Err: syscall.EIO})
				o := Options{Create: true, tap: r.faults}
				tree, err := Open(r.dir, &o)
				if err == nil {
					_, _ = tree.Put(ctx, address(1), nil)
					_ = tree.Close()
				}
				if r.faults.Hits() == 0 {
					break
				}
				r.faults.Clear()
				reopen(t, r.dir, Options{Create: true}).Close()
				after := lose(t, r.power)
				reopen(t, filepath.Join(after, "store"), Options{Create: true}).Close()
			}
		})
	}
}

// TestFailedSync is law 13 for a tree with levels: the directory whose sync failed takes no more writes until a
// reopen, all others do.
func TestFailedSync(t *testing.T) {
	r := watched(t, memory(t))
	var faults int
	o := Options{tap: r.faults}
	o.Hooks.Fault = func(string, error) { faults++ }
	tree := reopen(t, r.dir, o)
	neighbour := -1
	dir := tree.place(address(1)).dir(1)
	for n := 2; neighbour < 0; n++ {
		if tree.place(address(n)).dir(1) == dir {
			neighbour = n
		}
	}
	put(t, tree, neighbour, 10)
	r.faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Path: dir.name(), Err: syscall.EIO})
	_, err := tree.Put(ctx, address(1), content(1, 10))
	checkIs(t, err, blobstor.ErrFailed, syscall.EIO)
	lacks(t, tree, 1)
	for range 2 {
		_, err = tree.Put(ctx, address(1), content(1, 10))
		checkIs(t, err, blobstor.ErrFailed)
		_, err = tree.Put(ctx, address(neighbour), content(neighbour, 10))
		checkIs(t, err, blobstor.ErrFailed)
		checkIs(t, streamed(tree, 1), blobstor.ErrFailed)
		checkIs(t, tree.Delete(ctx, address(neighbour), ""), blobstor.ErrFailed)
	}
	if faults == 0 {
		t.Fatal("the hook was not called")
	}
	has(t, tree, neighbour, 10)
	put(t, tree, 2, 10)
	check(t, tree.Close())
	tree = reopen(t, r.dir, o)
	lacks(t, tree, 1)
	has(t, tree, neighbour, 10)
	put(t, tree, 1, 10)
	tree = reopen(t, filepath.Join(lose(t, r.power), "store"), Options{})
	has(t, tree, 1, 10)
	has(t, tree, neighbour, 10)
}

// TestPowerLoss runs random calls and cuts the power after each acknowledgement.
func TestPowerLoss(t *testing.T) {
	for _, o := range []Options{{Depth: -1}, {Depth: 3}, {Depth: 1, rename: true}} {
		t.Run(fmt.Sprintf("depth=%d/rename=%v", o.Depth, o.rename), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			r, l := watched(t, memory(t)), ledger{}
			o.tap = r.faults
			tree := reopen(t, r.dir, o)
			for range 60 {
				n := rng.IntN(12)
				switch rng.IntN(4) {
				case 0:
					l.delete(n, tree.Delete(ctx, address(n), ""))
				case 1:
					l.put(n, streamed(tree, n))
				default:
					_, err := tree.Put(ctx, address(n), content(n, ledgerSize))
					l.put(n, err)
				}
				o.tap = nil
				after := reopen(t, filepath.Join(lose(t, r.power), "store"), o)
				l.check(t, after)
				check(t, after.Close())
			}
		})
	}
}

// TestModelSeesMissingSyncs proves that the tests of power loss can fail: without syncs blobs are lost.
func TestModelSeesMissingSyncs(t *testing.T) {
	r := watched(t, memory(t))
	tree := reopen(t, r.dir, Options{NoSync: true, tap: r.faults})
	put(t, tree, 1, 100)
	after := reopen(t, filepath.Join(lose(t, r.power), "store"), Options{})
	lacks(t, after, 1)
	check(t, tree.Close())
	after = reopen(t, filepath.Join(lose(t, r.power), "store"), Options{})
	has(t, after, 1, 100)
}

// TestUncleanStop opens a store whose process died: what it left in the system's cache is synced, and its
// temporaries are swept.
func TestUncleanStop(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		r := watched(t, memory(t))
		tree := reopen(t, r.dir, Options{NoSync: noSync, rename: true, tap: r.faults})
		put(t, tree, 1, 100)
		_, err := tree.store.Dir.Temp()
		check(t, err)
		check(t, tree.store.Close()) // As a death would: the mark stays.

		tree = reopen(t, r.dir, Options{tap: r.faults})
		has(t, tree, 1, 100)
		has(t, reopen(t, filepath.Join(lose(t, r.power), "store"), Options{}), 1, 100)
		check(t, tree.SetReadOnly(ctx, true)) // Waits for the sweep, or interrupts it.
		check(t, tree.SetReadOnly(ctx, false))
		<-tree.sweep.done
		if n := files(t, tree); n != 1 {
			t.Fatalf("%d files are left", n)
		}

		check(t, tree.SetReadOnly(ctx, true))
		done := tree.sweep.done
		check(t, tree.SetReadOnly(ctx, false))
		if tree.sweep.done != done {
			t.Fatal("all is swept again")
		}
	}
}
