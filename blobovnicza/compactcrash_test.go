package blobovnicza

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// frames is a tap that takes a picture before every step: what a loss of power at that moment would leave, and what
// was acknowledged by then. One run so gives what crashtest.Steps would need a run for each step for.
type frames struct {
	t      *testing.T
	record *crashtest.Recorder
	h      *history
	want   func(step int) bool

	mu    sync.Mutex
	count int
	taken []frame
}

// frame is the state at one step.
type frame struct {
	dir   string
	h     *history
	where string
}

func (f *frames) Before(op durable.Op, path string, file *durable.File) error {
	if mutates(op, path) {
		f.step(op, path)
	}
	return f.record.Before(op, path, file)
}

func (f *frames) After(op durable.Op, path string, file *durable.File) {
	f.record.After(op, path, file)
}

func (f *frames) step(op durable.Op, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; !f.want(f.count) {
		return
	}
	f.h.mu.Lock() // nothing is acknowledged between the two halves of the picture
	defer f.h.mu.Unlock()
	dir := filepath.Join(f.t.TempDir(), "image")
	check(f.t, f.record.PowerLoss(dir))
	f.taken = append(f.taken, frame{dir, f.h.copy(), fmt.Sprintf("step %d, %v of %s", f.count, op, filepath.Base(path))})
}

// film opens a store whose steps are pictured.
func film(t *testing.T, dir string, h *history, want func(step int) bool) (*Tree, *frames) {
	t.Helper()
	record, err := crashtest.NewRecorder(dir)
	check(t, err)
	f := &frames{t: t, record: record, h: h, want: want}
	opts := smallFiles()
	s, err := open(dir, &opts, f)
	check(t, err)
	return s, f
}

// resolve decides about the blob whose call was under way: what can be found is durable.
func (h *history) resolve(s *Tree) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending >= 0 {
		_, err := s.Stat(ctx, addrOf(h.pending), "")
		h.stored[h.pending] = err == nil
		h.pending = -1
	}
}

// recover opens the store as a frame shows it, compacts and closes it, and verifies it at each stop. It returns the
// frames of that.
func (fr *frame) recover(t *testing.T, want func(step int) bool) []frame {
	t.Helper()
	s, f := film(t, fr.dir, fr.h, want)
	fr.h.verify(t, s, fr.where+", opened")
	fr.h.resolve(s)
	check(t, s.Compact(ctx))
	fr.h.verify(t, s, fr.where+", compacted")
	check(t, s.Close())
	opts := smallFiles()
	s, err := open(fr.dir, &opts, nil)
	check(t, err)
	fr.h.verify(t, s, fr.where+", opened again")
	check(t, s.Close())
	check(t, os.RemoveAll(fr.dir))
	return f.taken
}

func every(n int) func(step int) bool { return func(step int) bool { return step%n == 0 } }
func noStep(int) bool                 { return false }

// The power fails at every step of filling, deleting, compaction, the making of files and of indexes, and of Close,
// and again at every step of the recovery from that: nothing that was acknowledged is lost or comes back.
func TestPowerLossAtEveryStep(t *testing.T) {
	outer, inner, nested := 1, 3, 16
	if testing.Short() {
		outer, inner, nested = 5, 7, 8
	}
	dir, h := t.TempDir(), newHistory()
	opts := smallFiles()
	s, err := open(dir, &Options{Create: true, FileSize: opts.FileSize}, nil)
	check(t, err)
	check(t, s.Close())
	s, f := film(t, dir, h, every(outer))
	for n := range 36 {
		check(t, h.put(s, n))
	}
	for n := range 36 {
		if n%3 > 0 {
			check(t, h.remove(s, n))
		}
	}
	check(t, s.Compact(ctx))
	for n := 40; n < 60; n++ {
		check(t, h.put(s, n))
	}
	check(t, h.remove(s, 41))
	check(t, s.Close())
	t.Logf("%d steps", f.count)
	all := 0
	for i, fr := range f.taken {
		want := noStep
		if i%nested == nested-1 {
			want = every(inner)
		}
		for _, again := range fr.recover(t, want) {
			again.where = fr.where + "; " + again.where
			again.recover(t, noStep)
			all++
		}
	}
	t.Logf("%d losses of power, %d nested", len(f.taken), all)
}

// A process that is killed while it compacts in the background loses nothing, over many lives of one store, and what
// it left open is counted right.
func TestKillCompaction(t *testing.T) {
	t.Setenv(churnEnv, "1")
	compacted := int64(0)
	killCycles(t, 20, 150, 7, func(dir string) {
		s := mustOpen(t, dir, Options{FileSize: 32 << 10, Compact: CompactOptions{Off: true, DeadRatio: 0.02}})
		recount(t, s)
		check(t, s.Compact(ctx))
		recount(t, s)
		compacted += s.Stats().Compacted
		check(t, s.Close())
	})
	if compacted == 0 {
		t.Error("nothing was compacted")
	}
}
