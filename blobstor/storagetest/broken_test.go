package storagetest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// A mistake is a storage that breaks a law in one way. The suite must reject it by a clause of that law, or, where
// by is longer, one whose name begins like that.
type mistake struct {
	by    string
	name  string
	spoil func(b *broken)
}

// mistakes are grouped by law, as the clauses are.
func mistakes() []mistake {
	return slices.Concat(brokenDurable, brokenImmutable, brokenLocations, brokenAbsence, brokenIntegrity, brokenRanges,
		brokenReaders, brokenWriters, brokenIteration, brokenOwnership, brokenContexts, brokenClosing, brokenSizes,
		brokenFullDisk, brokenFailedSync, brokenBatches, brokenRefusals)
}

// unbreakable are clauses that no storage can break, with the reason.
var unbreakable = []string{
	"law6/huge length costs no memory", // a promise of blobstor.GetRange: no storage sees the length
}

// TestRejects runs the clauses of one law on each broken storage and wants one of them to fail. In the end every
// clause must have failed at least once: one that cannot fail proves nothing.
func TestRejects(t *testing.T) {
	var mu sync.Mutex
	failed := map[string]bool{}
	t.Run("mistakes", func(t *testing.T) {
		for _, m := range mistakes() {
			t.Run(m.by+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				names := m.failures(t)
				if len(names) == 0 {
					t.Errorf("the suite accepts it")
				}
				mu.Lock()
				defer mu.Unlock()
				for _, n := range names {
					failed[n] = true
				}
			})
		}
	})
	if t.Failed() || testing.Short() {
		return
	}
	for _, c := range clauses() {
		if !failed[c.name] && !slices.Contains(unbreakable, c.name) {
			t.Errorf("no broken storage fails %q", c.name)
		}
	}
}

// failures runs the clauses of the mistake's law and returns those that failed.
func (m mistake) failures(t *testing.T) (names []string) {
	for _, c := range clauses() {
		if c.law() != m.by && !(strings.Contains(m.by, "/") && strings.HasPrefix(c.name, m.by)) {
			continue
		}
		for _, v := range c.views {
			if why := attempt(t, c, brokenHarness(m.spoil), v); why != "" {
				t.Logf("%s/%s: %.200s", v, c.name, why)
				names = append(names, c.name)
				break
			}
		}
	}
	return names
}

// attempt runs a clause apart from the test and returns why it failed, "" if it did not.
func attempt(t *testing.T, c clause, h Harness, v view) string {
	r := &recorder{TB: t, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer r.clean()
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		c.run(r, h, v)
	}()
	select {
	case <-r.done:
	case <-time.After(10 * h.Patience):
		return "the clause hangs"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.failures, "; ")
}

// recorder is a testing.TB that notes failures and lets the test go on.
type recorder struct {
	testing.TB
	done chan struct{}

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()              {}
func (r *recorder) Logf(string, ...any)  {}
func (r *recorder) Cleanup(f func())     { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Skipf(string, ...any) { runtime.Goexit() }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) clean() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

// broken is a memory storage whose methods a mistake replaces.
type broken struct {
	*Memory
	put      func(context.Context, blobstor.Address, []byte) (blobstor.Location, error)
	get      func(context.Context, blobstor.Address, blobstor.Location, []byte) ([]byte, error)
	stat     func(context.Context, blobstor.Address, blobstor.Location) (blobstor.Info, error)
	remove   func(context.Context, blobstor.Address, blobstor.Location) error
	all      func(context.Context, blobstor.Location) iter.Seq2[blobstor.Info, error]
	read     func(context.Context, blobstor.Address, blobstor.Location, []byte, int64) (int, int64, error)
	putMany  func(context.Context, []blobstor.Item) error
	delMany  func(context.Context, []blobstor.Item) error
	close    func() error
	reader   func(blobstor.Reader) blobstor.Reader
	writer   func(context.Context, int64) (blobstor.Writer, error)
	reopened func(power bool) // what happens to the content meanwhile
	readOnly func() blobstor.Storage
	full     func() func()
	failSync func() func()
}

func newBroken(m *Memory, spoil func(*broken)) *broken {
	b := &broken{
		Memory: m, put: m.Put, get: m.Get, stat: m.Stat, remove: m.Delete, all: m.All, read: m.ReadRange,
		close:    m.Close,
		reader:   func(r blobstor.Reader) blobstor.Reader { return r },
		reopened: func(bool) {},
		full:     m.Full, failSync: m.FailSync,
	}
	b.readOnly = func() blobstor.Storage { return blobstor.ReadOnly(b) }
	// What blobstor adds goes through the other methods, broken as they are.
	b.putMany = func(ctx context.Context, items []blobstor.Item) error {
		return blobstor.PutBatch(ctx, Hide(b), items)
	}
	b.delMany = func(ctx context.Context, items []blobstor.Item) error {
		return blobstor.DeleteBatch(ctx, Hide(b), items)
	}
	b.writer = func(ctx context.Context, size int64) (blobstor.Writer, error) {
		return blobstor.Stream(Hide(b)).NewWriter(ctx, size)
	}
	spoil(b)
	return b
}

const brokenLimit = 4096

func brokenHarness(spoil func(*broken)) Harness {
	reopen := func(power bool) func(testing.TB, blobstor.Storage) blobstor.Storage {
		return func(_ testing.TB, s blobstor.Storage) blobstor.Storage {
			b := s.(*broken)
			b.reopened(power)
			return newBroken(b.Reopen(), spoil)
		}
	}
	return Harness{
		Limit:     brokenLimit,
		Patience:  300 * time.Millisecond,
		New:       func(testing.TB) blobstor.Storage { return newBroken(NewMemory(brokenLimit), spoil) },
		Reopen:    reopen(false),
		PowerLoss: reopen(true),
		Damage: func(_ testing.TB, s blobstor.Storage, addr blobstor.Address) {
			s.(*broken).Damage(addr)
		},
		Full:     func(_ testing.TB, s blobstor.Storage) func() { return s.(*broken).full() },
		FailSync: func(_ testing.TB, s blobstor.Storage) func() { return s.(*broken).failSync() },
		ReadOnly: func(_ testing.TB, s blobstor.Storage) blobstor.Storage { return s.(*broken).readOnly() },
	}
}

// TestAcceptsUnbroken runs every clause in the broken storages' own frame without a mistake.
func TestAcceptsUnbroken(t *testing.T) {
	for _, c := range clauses() {
		for _, v := range c.views {
			h := brokenHarness(func(*broken) {})
			h.Patience = time.Minute
			if why := attempt(t, c, h, v); why != "" {
				t.Errorf("%s/%s: %s", v, c.name, why)
			}
		}
	}
}

func (b *broken) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	return b.put(ctx, addr, data)
}

func (b *broken) Get(ctx context.Context, addr blobstor.Address, at blobstor.Location, dst []byte) ([]byte, error) {
	return b.get(ctx, addr, at, dst)
}

func (b *broken) Stat(ctx context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Info, error) {
	return b.stat(ctx, addr, at)
}

func (b *broken) Delete(ctx context.Context, addr blobstor.Address, at blobstor.Location) error {
	return b.remove(ctx, addr, at)
}

func (b *broken) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return b.all(ctx, after)
}

func (b *broken) ReadRange(ctx context.Context, addr blobstor.Address, at blobstor.Location, p []byte, off int64) (int, int64, error) {
	return b.read(ctx, addr, at, p, off)
}

func (b *broken) PutBatch(ctx context.Context, items []blobstor.Item) error {
	return b.putMany(ctx, items)
}

func (b *broken) DeleteBatch(ctx context.Context, items []blobstor.Item) error {
	return b.delMany(ctx, items)
}

func (b *broken) Close() error { return b.close() }

func (b *broken) NewReader(ctx context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Reader, error) {
	r, err := blobstor.Stream(struct {
		blobstor.Storage
		blobstor.RangeReader
	}{Hide(b), b}).NewReader(ctx, addr, at)
	if err != nil {
		return nil, err
	}
	return b.reader(r), nil
}

func (b *broken) NewWriter(ctx context.Context, size int64) (blobstor.Writer, error) {
	return b.writer(ctx, size)
}

// A reader and a writer whose methods a mistake replaces.
type brokenReader struct {
	blobstor.Reader
	read    func([]byte) (int, error)
	readAt  func([]byte, int64) (int, error)
	writeTo func(io.Writer) (int64, error)
	close   func() error
}

func spoilReader(r blobstor.Reader, spoil func(*brokenReader)) blobstor.Reader {
	b := &brokenReader{Reader: r, read: r.Read, readAt: r.ReadAt, writeTo: r.WriteTo, close: r.Close}
	spoil(b)
	return b
}

func (r *brokenReader) Read(p []byte) (int, error)              { return r.read(p) }
func (r *brokenReader) ReadAt(p []byte, off int64) (int, error) { return r.readAt(p, off) }
func (r *brokenReader) WriteTo(w io.Writer) (int64, error)      { return r.writeTo(w) }
func (r *brokenReader) Close() error                            { return r.close() }

// brokenWriter collects what is written and hands it to commit.
type brokenWriter struct {
	data   []byte
	write  func([]byte) error
	commit func(blobstor.Address, []byte) (blobstor.Location, error)
	close  func()
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if err := w.write(p); err != nil {
		return 0, err
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *brokenWriter) Commit(addr blobstor.Address) (blobstor.Location, error) {
	return w.commit(addr, w.data)
}

func (w *brokenWriter) Close() error {
	w.close()
	return nil
}

// simpleWriter returns a writer without any checks, to be spoiled further.
func (b *broken) simpleWriter(ctx context.Context) *brokenWriter {
	return &brokenWriter{
		write: func([]byte) error { return nil },
		commit: func(addr blobstor.Address, data []byte) (blobstor.Location, error) {
			return b.put(ctx, addr, data)
		},
		close: func() {},
	}
}
