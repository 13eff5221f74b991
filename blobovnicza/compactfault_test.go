package blobovnicza

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// mutates reports whether an operation changes something.
func mutates(op durable.Op, _ string) bool { return op != durable.OpOpen && op != durable.OpRead }

// history is what a test did to a store: of each blob whether it is there. A blob whose call is under way may be
// either.
type history struct {
	mu      sync.Mutex // also held while an image is taken, so that nothing is acknowledged meanwhile
	stored  map[int]bool
	pending int // the blob of the call that runs, or -1
}

func newHistory() *history { return &history{stored: map[int]bool{}, pending: -1} }

// do runs a call that puts or removes blob n.
func (h *history) do(n int, put bool, call func() error) error {
	h.mu.Lock()
	h.pending = n
	h.mu.Unlock()
	err := call()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = -1
	if err == nil {
		h.stored[n] = put
	}
	return err
}

func (h *history) put(s *Tree, n int) error {
	return h.do(n, true, func() error { _, err := s.Put(ctx, addrOf(n), smallData(n)); return err })
}

func (h *history) remove(s *Tree, n int) error {
	return h.do(n, false, func() error { return s.Delete(ctx, addrOf(n), "") })
}

// copy returns the history up to now. The caller holds mu.
func (h *history) copy() *history {
	c := newHistory()
	c.pending = h.pending
	for n, is := range h.stored {
		c.stored[n] = is
	}
	return c
}

// verify compares a store with its history: every blob by content, each once in All, and all counters.
func (h *history) verify(t testing.TB, s *Tree, where string) {
	t.Helper()
	for n, is := range h.stored {
		got, err := s.Get(ctx, addrOf(n), "", nil)
		found := err == nil && string(got) == string(smallData(n))
		if !found && !errors.Is(err, blobstor.ErrNotFound) || n != h.pending && found != is {
			t.Fatalf("%s: blob %d, stored %v: %d bytes, %v", where, n, is, len(got), err)
		}
	}
	objects := int64(0)
	for info, err := range s.All(ctx, "") {
		if err != nil {
			t.Fatalf("%s: All: %v", where, err)
		}
		if _, err := s.Get(ctx, info.Address, info.Location, nil); err != nil {
			t.Fatalf("%s: by location: %v", where, err)
		}
		objects++
	}
	if st := s.Stats(); st.Objects != objects || st.Lost != 0 || st.Flawed != 0 || st.Torn != 0 && h.pending < 0 {
		t.Fatalf("%s: All yields %d, %+v", where, objects, st)
	}
	failed := t.Failed()
	if recount(t, s); t.Failed() && !failed {
		t.Fatalf("%s: counters are wrong", where)
	}
}

// sparseStore makes a closed store of several files, some blobs of which are deleted.
func sparseStore(t testing.TB) (dir string, h *history) {
	t.Helper()
	dir, h = t.TempDir(), newHistory()
	opts := smallFiles()
	opts.Create, opts.NoSync = true, true
	s, err := Open(dir, &opts)
	check(t, err)
	for n := range 50 {
		check(t, h.put(s, n))
	}
	for n := range 50 {
		if n%3 == 0 {
			check(t, h.remove(s, n))
		}
	}
	check(t, s.Close())
	return dir, h
}

func smallFiles() Options {
	return Options{FileSize: 6 << 10, Compact: CompactOptions{Off: true, DeadRatio: 0.01}}
}

// live uses a store in all ways that write, and returns the errors that it met.
func live(s *Tree, h *history) (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for n := 100; n < 112; n++ {
		note(h.put(s, n))
	}
	if h.stored[1] {
		note(h.remove(s, 1))
	}
	note(s.Compact(ctx))
	note(s.upkeep(ctx))
	for n := 112; n < 118; n++ {
		note(h.put(s, n))
	}
	if h.stored[100] {
		note(h.remove(s, 100))
	}
	return errs
}

// Every single operation fails once, while puts, deletes, rolls, index files and compaction go on: errors are typed,
// what was acknowledged stays, what failed never comes true, the store goes on, and counters are right; so it is in
// the running store, after a reopen, and after a loss of power.
func TestEveryOperationFailsOnce(t *testing.T) {
	stride := 3
	if testing.Short() {
		stride = 17
	}
	master, was := sparseStore(t)
	for n := 0; ; n += stride {
		ss := &sites{all: map[blobstor.Storage]*site{}}
		s := ss.open(t, copyStore(t, master), smallFiles())
		st, h := ss.of(s), was.copy()
		st.faults.Add(crashtest.Fault{N: n, Err: syscall.EIO, Match: mutates})
		errs := live(s, h)
		where := fmt.Sprintf("fault %d", n)
		for _, err := range errs {
			where += ": " + err.Error()
			if !blobstor.IsFault(err) || !errors.Is(err, syscall.EIO) {
				t.Errorf("fault %d: %v is no fault", n, err)
			}
		}
		if len(errs) > 3 {
			t.Errorf("fault %d: one fault, %d errors: %s", n, len(errs), where)
		}
		h.verify(t, s, where)
		closed := s.Close()
		image := filepath.Join(t.TempDir(), "image")
		check(t, st.record.PowerLoss(image))
		for _, dir := range []string{image, st.dir} {
			s = mustOpen(t, dir, smallFiles())
			h.verify(t, s, where)
			if errs := live(s, h.copy()); len(errs) > 0 {
				t.Errorf("fault %d: after a reopen: %v", n, errs)
			}
			check(t, s.Close())
		}
		if st.faults.Hits() == 0 {
			check(t, closed)
			break
		}
	}
}

// A new file whose name could not be made durable may be found after a crash, with what it says of the old file's end:
// so nothing is written behind that any more.
func TestNameNotSynced(t *testing.T) {
	s, st := faulty(t, Options{FileSize: 4 << 10, Compact: CompactOptions{Off: true}})
	_, err := s.Put(ctx, addrOf(1), dataOf(1, 3500))
	check(t, err)
	check(t, s.upkeep(ctx))
	st.faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Err: syscall.EIO})
	if _, err = s.Put(ctx, addrOf(2), dataOf(2, 3500)); !errors.Is(err, blobstor.ErrFailed) {
		t.Fatalf("put: %v", err)
	}
	check(t, s.Delete(ctx, addrOf(1), "")) // would still fit
	for _, dir := range []string{copyStore(t, st.dir), st.dir} {
		if dir == st.dir {
			check(t, s.Close())
		}
		again := mustOpen(t, dir, Options{})
		expect(t, again, 1, nil)
		expect(t, again, 2, nil)
		check(t, again.Close())
	}
}

// A manifest that a killed process has written may be lost yet: Open makes it durable before it removes what the
// manifest no longer lists.
func TestOpenProvesBeforeItRemoves(t *testing.T) {
	s, st := faulty(t, byHand())
	putSmall(t, s, 0, 80)
	for n := range 40 {
		remove(t, s, n)
	}
	check(t, s.upkeep(ctx))
	killed := filepath.Join(t.TempDir(), "killed")
	var once sync.Once
	st.faults.Add(crashtest.Fault{Forever: true, Match: func(op durable.Op, path string) bool {
		if op == durable.OpRemove && strings.HasSuffix(path, indexSuffix) { // the manifest was written
			once.Do(func() { check(t, os.CopyFS(killed, os.DirFS(st.dir))) })
		}
		return false
	}})
	check(t, s.Compact(ctx))
	var ops []durable.Op
	faults := &crashtest.Faults{}
	faults.Add(crashtest.Fault{Forever: true, Match: func(op durable.Op, path string) bool {
		if strings.HasSuffix(path, dataSuffix) && (op == durable.OpSync || op == durable.OpRemove) {
			ops = append(ops, op)
		}
		return false
	}})
	again, err := open(killed, &Options{Compact: CompactOptions{Off: true}}, faults)
	check(t, err)
	check(t, again.Close())
	if len(ops) < 2 || ops[0] != durable.OpSync {
		t.Errorf("on data files Open does %v", ops)
	}
}

// A file that cannot be removed is tried again with the next one.
func TestUnlinkFails(t *testing.T) {
	s, st := faulty(t, byHand())
	putSmall(t, s, 0, 160)
	for n := range 40 {
		remove(t, s, n)
	}
	st.faults.Add(crashtest.Fault{Op: durable.OpRemove, Err: syscall.EIO})
	if err := s.Compact(ctx); !errors.Is(err, syscall.EIO) {
		t.Errorf("compact: %v", err)
	}
	for n := 40; n < 60; n++ {
		remove(t, s, n)
	}
	check(t, s.Compact(ctx))
	if files, _ := onDisk(t, st.dir); files != s.Stats().Files {
		t.Errorf("%d files on disk, %d in the store", files, s.Stats().Files)
	}
}
