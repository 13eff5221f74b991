package metabase

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

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

func (g *gate) fail(err error, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err, g.late = err, late
}

func gated(t *testing.T) (*world, *gate) {
	g := &gate{}
	return newWorld(t, Options{NoSync: true, Ballast: -1, boltCommit: g.commit}), g
}

// grouped runs operations so that all but the first share a commit, and returns their errors.
func (g *gate) grouped(ops ...func() error) []error {
	arrived, open := g.hold()
	errs := make([]error, len(ops))
	var wg sync.WaitGroup
	for i, op := range ops {
		wg.Go(func() { errs[i] = op() })
		if i == 0 {
			<-arrived
		}
	}
	for range 1000 { // The others queue meanwhile; if one is late it is another group, and no matter.
		runtime.Gosched()
	}
	close(open)
	wg.Wait()
	return errs
}

func putting(w *world, recs ...Record) func() error {
	return func() error { return w.Put(ctx, recs...) }
}

// TestRefusedAlone: of a group only what is refused fails, and it leaves nothing.
func TestRefusedAlone(t *testing.T) {
	w, g := gated(t)
	w.record(t, lock(1, 2, 1, 0))
	before := g.commits
	var ops []func() error
	for n := range 20 {
		ops = append(ops,
			putting(w, Record{Address: object(1, 100+n), Size: 1}),
			putting(w, tombstone(1, 200+n, 1)),                       // its target is held
			putting(w, Record{Address: object(50+n, 1), Expires: 1}), // has expired, and would be the first of its container
		)
	}
	for i, err := range g.grouped(ops...) {
		want := []error{nil, ErrHeld, ErrExpired}[i%3]
		if !errors.Is(err, want) {
			t.Errorf("operation %d: %v, want %v", i, err, want)
		}
	}
	if n := g.commits - before; n > 20 {
		t.Errorf("%d commits", n)
	}
	for range 2 {
		w.wantCounters(t, 1, Counters{Objects: 21, Roots: 20, Locks: 1, Payload: 20})
		if ids, err := w.Containers(ctx); err != nil || len(ids) != 1 {
			t.Errorf("containers %v, %v", ids, err)
		}
		w.check(t)
		w.reopen(t)
	}
}

// TestRefusedFirst: a container whose first record is refused is none; the second one makes it.
func TestRefusedFirst(t *testing.T) {
	w, _ := gated(t)
	es := []Entry{
		{Records: []Record{{Address: object(1, 1), Expires: 1}}},
		{Records: []Record{{Address: object(2, 2), Size: 20}}},
		{},
		{Records: []Record{{Address: object(1, 2), Size: 10}}},
	}
	wantIs(t, w.PutBatch(ctx, es), ErrExpired)
	wantIs(t, es[0].Err, ErrExpired)
	wantIs(t, es[2].Err, ErrRecord)
	for range 2 {
		w.wantCounters(t, 1, Counters{Objects: 1, Roots: 1, Payload: 10})
		w.wantCounters(t, 2, Counters{Objects: 1, Roots: 1, Payload: 20})
		w.check(t)
		w.reopen(t)
	}
}

// TestRunAgain: entry 04 of the collection. What the file's library refuses spoils no other operation of its group, and
// what is run again is counted once.
func TestRunAgain(t *testing.T) {
	w, g := gated(t)
	tooLong := func() error {
		return w.do(ctx, 0, step{plan: func(t *txn) error {
			t.put(attrs, make([]byte, 40_000), nil)
			return nil
		}})
	}
	var ops []func() error
	for n := range 10 {
		ops = append(ops, putting(w, Record{Address: object(1, n), Size: 1}, virtual(1, 100+n)))
	}
	ops = append(ops, tooLong)
	for n := range 10 {
		ops = append(ops, putting(w, Record{Address: object(2, n), Size: 1}))
	}
	for i, err := range g.grouped(ops...) {
		if (err != nil) != (i == 10) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	w.wantCounters(t, 1, Counters{Objects: 10, Roots: 20, Payload: 10})
	w.wantCounters(t, 2, Counters{Objects: 10, Roots: 10, Payload: 10})
	w.check(t)
}

// TestWithdrawn: a context that ends in the queue means that nothing happened.
func TestWithdrawn(t *testing.T) {
	w, g := gated(t)
	canceled, cancel := context.WithCancel(ctx)
	errs := g.grouped(putting(w, Record{Address: object(1, 1)}), func() error {
		cancel()
		return w.Put(canceled, Record{Address: object(1, 2)})
	})
	must(t, errs[0])
	wantIs(t, errs[1], context.Canceled)
	w.wantState(t, object(1, 2), Missing)
}

// TestUncertain: after a commit that failed nobody is told what is not on disk.
func TestUncertain(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			w, g := gated(t)
			w.put(t, object(1, 1))
			g.fail(syscall.EIO, late)
			wantIs(t, w.Put(ctx, Record{Address: object(1, 2)}), blobstor.ErrUncertain)
			_, err := w.Get(ctx, object(1, 1))
			wantIs(t, err, blobstor.ErrFailed)
			wantIs(t, w.Put(ctx, Record{Address: object(1, 3)}), blobstor.ErrFailed)
			w.reopen(t)
			w.wantState(t, object(1, 1), Available)
			if s := w.state(t, object(1, 2)); (s.State == Available) != late {
				t.Errorf("%+v", s)
			}
			w.check(t)
		})
	}
}

// TestFullDisk: after a commit that met a full disk the database goes on with what is there. Its dictionary must not be
// that of before: names that the commit made, marked or took away may be on disk.
func TestFullDisk(t *testing.T) {
	full := fmt.Errorf("file resize error: %s", syscall.ENOSPC)
	for _, late := range []bool{false, true} {
		for name, op := range map[string]func(w *world) error{
			"put":  func(w *world) error { return w.Put(ctx, Record{Address: object(2, 1), Size: 5}) },
			"drop": func(w *world) error { return w.Drop(ctx, id(1)) },
			"mark": func(w *world) error { return w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}) },
		} {
			t.Run(fmt.Sprintf("%s/late=%v", name, late), func(t *testing.T) {
				w, g := gated(t)
				w.put(t, object(1, 1))
				g.fail(full, late)
				err := op(w)
				wantIs(t, err, blobstor.ErrUncertain, blobstor.ErrNoSpace)
				if blobstor.IsFault(err) {
					t.Errorf("%v is a fault", err)
				}
				shown := w.answers(t)
				w.reopen(t)
				if again := w.answers(t); shown != again {
					t.Errorf("it showed %s, and has %s", shown, again)
				}
				g.fail(full, late)
				op(w) // which may have nothing left to commit
				g.fail(nil, false)
				w.put(t, object(2, 2))
				w.Put(ctx, Record{Address: object(1, 2)}) // refused if the mark is there
				shown = w.answers(t)
				w.reopen(t)
				if again := w.answers(t); shown != again {
					t.Errorf("then it showed %s, and has %s", shown, again)
				}
				_, err = w.Collect(ctx, 9, func(context.Context, []blobstor.Item) error { return nil })
				must(t, err)
				w.wantState(t, object(2, 2), Available)
				w.check(t)
			})
		}
	}
}

// answers tells what the database says of a few objects.
func (w *world) answers(tb testing.TB) string {
	tb.Helper()
	text := ""
	for c := 1; c <= 2; c++ {
		n, err := w.Counters(ctx, id(c))
		must(tb, err)
		text += fmt.Sprint(c, n, w.state(tb, object(c, 1)), w.state(tb, object(c, 2)), "; ")
	}
	return text
}

// TestFaultOnce: a commit that fails is told once, however many wait for it.
func TestFaultOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		g := &gate{}
		w := newWorld(t, Options{NoSync: true, Ballast: -1, boltCommit: g.commit, Hooks: blobstor.Hooks{Fault: func(string, error) { told.Add(1) }}})
		var ops []func() error
		for n := range 20 {
			ops = append(ops, putting(w, Record{Address: object(1, n)}))
		}
		arrived, open := g.hold()
		var wg sync.WaitGroup
		errs := make([]error, len(ops))
		wg.Go(func() { errs[0] = ops[0]() })
		<-arrived
		g.fail(syscall.EIO, false) // the next commit, that of the others
		for i := 1; i < len(ops); i++ {
			wg.Go(func() { errs[i] = ops[i]() })
		}
		synctest.Wait()
		close(open)
		wg.Wait()
		synctest.Wait()
		for _, err := range errs[1:] {
			wantIs(t, err, blobstor.ErrUncertain)
		}
		if n := told.Load(); n != 1 {
			t.Errorf("told %d times", n)
		}
		must(t, errs[0])
		must(t, w.Close())
	})
}
