package blobovnicza

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// A disk that is full once, or from then on, at every operation that may find it full: what was acknowledged stays,
// what was refused is not there, and no delete is refused but by a directory whose sync fails.
func TestNoSpaceAnywhere(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for _, op := range []durable.Op{
		durable.OpWrite, durable.OpCreate, durable.OpLink, durable.OpRename, durable.OpSyncDir, durable.OpTruncate,
	} {
		for _, forever := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/forever=%v", op, forever), func(t *testing.T) {
				for n := 0; noSpaceAt(t, op, n, forever) && !t.Failed(); n += stride {
				}
			})
		}
	}
}

// noSpaceAt runs the scenario with no space at the n-th operation of a kind, and reports whether there were so many.
func noSpaceAt(t *testing.T, op durable.Op, n int, forever bool) (met bool) {
	sc := &scarce{t: t, op: op, n: n, opts: Options{Create: true, FileSize: 8 << 10, KeepSpare: true, Compact: CompactOptions{Off: true}},
		stored: map[int]bool{}}
	ss := &sites{all: map[blobstor.Storage]*site{}}
	sc.s = ss.open(t, memoryDir(t), sc.opts)
	defer func() { check(t, sc.s.Close()) }()
	check(t, sc.s.upkeep(ctx))
	st := ss.of(sc.s)
	st.faults.Add(crashtest.Fault{N: n, Forever: forever, Err: syscall.ENOSPC, Match: func(o durable.Op, path string) bool {
		return o == op && !(op == durable.OpWrite && st.aside.has(path))
	}})
	sc.run()
	st.faults.Clear()
	sc.verify("before a reopen")
	check(t, sc.s.Close())
	sc.s = ss.open(t, st.dir, sc.opts)
	sc.verify("after")
	_, err := sc.s.Put(ctx, addrOf(1000), dataOf(1000, 1000))
	check(t, err)
	return st.faults.Hits() > 0
}

// scarce is a scenario in which space may end.
type scarce struct {
	t      *testing.T
	op     durable.Op
	n      int
	opts   Options
	s      *Tree
	stored map[int]bool // by the number of a blob that was put once
}

func (sc *scarce) run() {
	for n := range 30 {
		_, err := sc.s.Put(ctx, addrOf(n), dataOf(n, 1500))
		sc.refused("put", n, err)
		sc.stored[n] = err == nil
		if n%3 > 0 {
			sc.remove(n / 2)
		}
		if n%12 == 11 {
			sc.refused("compact", n, sc.s.Compact(ctx))
		}
	}
}

func (sc *scarce) remove(n int) {
	if !sc.stored[n] {
		return
	}
	err := sc.s.Delete(ctx, addrOf(n), "")
	sc.refused("delete", n, err)
	if err != nil && sc.op != durable.OpSyncDir {
		sc.t.Errorf("no space at %v %d: delete of %d: %v", sc.op, sc.n, n, err)
	}
	sc.stored[n] = err != nil
}

// refused accepts no other error than that there is no space.
func (sc *scarce) refused(what string, n int, err error) {
	if err != nil && (!errors.Is(err, blobstor.ErrNoSpace) || blobstor.IsFault(err)) {
		sc.t.Errorf("no space at %v %d: %s %d: %v", sc.op, sc.n, what, n, err)
	}
}

func (sc *scarce) verify(when string) {
	for n, stored := range sc.stored {
		var want []byte
		if stored {
			want = dataOf(n, 1500)
		}
		expect(sc.t, sc.s, n, want)
	}
	if st := sc.s.Stats(); st.Lost > 0 || st.Flawed > 0 || st.Corrupt > 0 || sc.t.Failed() {
		sc.t.Errorf("no space at %v %d, %s: stats %+v", sc.op, sc.n, when, st)
	}
}

// Once a successor may have got its name, its manifest ends the active file: what is acknowledged later must not be in
// that.
func TestUnsyncedSuccessor(t *testing.T) {
	s, st := faulty(t, Options{FileSize: 4 << 10, KeepSpare: true, Compact: CompactOptions{Off: true}})
	_, err := s.Put(ctx, addrOf(1), dataOf(1, 3500))
	check(t, err)
	check(t, s.upkeep(ctx))
	st.faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Err: syscall.ENOSPC})
	if _, err = s.Put(ctx, addrOf(2), dataOf(2, 3500)); !errors.Is(err, blobstor.ErrFailed) {
		t.Fatal(err)
	}
	check(t, s.Delete(ctx, addrOf(1), ""))
	s = mustOpen(t, copyStore(t, st.dir), Options{})
	expect(t, s, 1, nil)
	expect(t, s, 2, nil)
}

// What was set aside for a full disk is for deletes: it takes no put, although there is room for some in it.
func TestReserveTakesNoPuts(t *testing.T) {
	s, st := faulty(t, byHand())
	s.stopKeeper()
	putSmall(t, s, 0, 10)
	check(t, s.upkeep(ctx))
	release := st.fill()
	remove(t, s, 0) // into the reserve
	before := s.leaves[0].active().end.Load()
	for n := range 5 {
		if _, err := s.Put(ctx, addrOf(100+n), smallData(n)); !errors.Is(err, blobstor.ErrNoSpace) || blobstor.IsFault(err) {
			t.Errorf("put: %v", err)
		}
	}
	if after := s.leaves[0].active().end.Load(); after != before {
		t.Errorf("puts took %d bytes", after-before)
	}
	remove(t, s, 1, 2, 3)
	release()
	putSmall(t, s, 100, 105)
}

// The spare takes no space while the disk has plenty, unless it is asked for.
func TestKeepSpare(t *testing.T) {
	for _, keep := range []bool{false, true} {
		dir := t.TempDir()
		s := mustOpen(t, dir, Options{KeepSpare: keep})
		check(t, s.upkeep(ctx))
		if _, err := os.Stat(filepath.Join(dir, spareName)); (err == nil) != keep {
			t.Errorf("KeepSpare %v: %v", keep, err)
		}
		if _, err := os.Stat(filepath.Join(dir, treeDir, reserveName)); err != nil {
			t.Errorf("no reserve: %v", err)
		}
	}
}

// What the disk refuses to the compaction in the background is no reason to wake it again: it would try for ever. What it
// refuses to a put is.
func TestRefusedCompactionRests(t *testing.T) {
	opts := byHand()
	opts.Compact.Off = false
	s, st := faulty(t, opts)
	s.stopKeeper()
	putSmall(t, s, 0, 100)
	remove(t, s, 0, 1, 2, 3, 4, 5)
	check(t, s.upkeep(ctx)) // there is nothing else to do
	remove(t, s, 41, 42, 43, 44)
	st.faults.Add(crashtest.Fault{Op: durable.OpWrite, Forever: true, Err: syscall.ENOSPC})
	woken := func() bool {
		select {
		case <-s.keeper.wake:
			return true
		default:
			return false
		}
	}
	woken()
	check(t, s.upkeep(ctx))
	if st.faults.Hits() == 0 {
		t.Error("nothing was refused")
	}
	if woken() {
		t.Error("a refused compaction wakes the keeper")
	}
	if _, err := s.Put(ctx, addrOf(1000), smallData(0)); !errors.Is(err, blobstor.ErrNoSpace) || !woken() {
		t.Errorf("put: %v, or the keeper is not woken", err)
	}
}
