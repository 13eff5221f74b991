package metabase

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// Three proofs that buckets are opened once in a transaction and never made after Open: what the file's library logs,
// how many cursors it makes, and what the sources say. And one that a missing bucket is not made but reported.

// bucketLog is a logger of the file's library that counts buckets made.
type bucketLog struct {
	bolt.Logger // nil: it must not log errors here

	mu   sync.Mutex
	made []string
}

func (l *bucketLog) Debug(...any) {}
func (l *bucketLog) Info(...any)  {}

func (l *bucketLog) Debugf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.HasPrefix(format, "Creating bucket") {
		l.made = append(l.made, fmt.Sprintf(format, args...))
	}
}

func (l *bucketLog) Infof(string, ...any) {}

// everyOperation does all that a database can do, twice.
func everyOperation(t *testing.T, w *world) {
	for turn := range 2 {
		w.put(t, object(1, 1), "a", "1")
		must(t, w.PutBatch(ctx, []Entry{{Records: []Record{part(2, 2, 9, "c"), virtual(2, 9)}}, {Records: []Record{{Address: object(3, 1)}}}}))
		must(t, w.Put(ctx, lock(1, 3, 1, 0), Record{Address: object(1, 4), Expires: 100}))
		_, err := w.Get(ctx, object(1, 1))
		must(t, err)
		_, err = w.Exists(ctx, object(2, 1))
		must(t, err)
		w.state(t, object(1, 1))
		must(t, w.Mark(ctx, Garbage, object(2, 9), blobstor.Address{Container: id(3)}))
		_, err = w.Collect(ctx, 1, func(context.Context, []blobstor.Item) error { return nil })
		must(t, err)
		must(t, w.Mark(ctx, None, blobstor.Address{Container: id(3)}))
		w.epoch += uint64(turn)
		_, err = w.Expired(ctx, blobstor.Address{}, 10)
		must(t, err)
		_, err = w.List(ctx, blobstor.Address{}, 10, "a")
		must(t, err)
		pages(t, w.DB, Query{Container: id(1), Limit: 3, Filters: []Filter{{"a", GE, "0"}, {"b", Absent, ""}}})
		_, err = w.Inspect(ctx, object(1, 1))
		must(t, err)
		s := newShelf(t)
		s.put(Record{Address: object(4, 1)})
		_, err = Rebuild(ctx, w.DB, blobstor.Stream(s), parseJSON, nil)
		must(t, err)
		must(t, w.Mark(ctx, None, object(2, 9)))
		must(t, w.Drop(ctx, id(1)))
		w.check(t)
	}
}

func TestNoBucketIsMade(t *testing.T) {
	log := &bucketLog{}
	w := newWorld(t, Options{NoSync: true, Ballast: -1, boltLog: log})
	log.made = nil
	everyOperation(t, w)
	if len(log.made) > 0 {
		t.Errorf("made %v", log.made)
	}
	// A look whether the logger sees anything: Reset makes a fresh file, which may make its buckets.
	log.Debugf("Creating bucket %q", "x")
	if len(log.made) == 0 {
		t.Error("the logger is blind")
	}
}

// Costs of a transaction in cursors: one for the bucket, one for each entry that it writes, and one for each scan. A read
// transaction has one for each entry that it reads; a write transaction, a Search and a List have one for all of them. A
// status, the verdict about one object, reads its mark, its locks and its tombstones, each of them only if the container
// has any; if it has a parent also that one's record and status, and if a chain tells the parent, the chain.
const (
	costBucket  = 1
	costLookups = 1 // of a transaction that has one cursor for them
	costRecord  = 1 // to read a record, or find that there is none
	costVerdict = 3 // mark, relHolds, relBuries, where there are any
	costWrite   = costBucket + costLookups
	costObject  = 1 // to put one
	costCounts  = 1 // to write a container's counters, once in a transaction
	costPending = 1 // to write what is pending, once in a transaction
	costName    = 2 // a new container: write the next number and the name
)

func TestCursors(t *testing.T) {
	attrs := func(n int) (as []Attr) {
		for i := range n {
			as = append(as, Attr{fmt.Sprint("key", i), "text", Auto})
		}
		return as
	}
	for _, c := range []struct {
		name string
		do   func(w *world) error
		op   string
		want int
	}{
		{"put", func(w *world) error { return w.Put(ctx, Record{Address: object(1, 9)}) }, "commit", costWrite + costObject + costCounts},
		{"put in a new container", func(w *world) error { return w.Put(ctx, Record{Address: object(5, 9)}) }, "commit", costWrite + costName + costObject + costCounts},
		{"put 20 attributes", func(w *world) error { return w.Put(ctx, Record{Address: object(1, 9), Attrs: attrs(20)}) }, "commit", costWrite + costObject + costCounts + costPending},
		{"put a number", func(w *world) error {
			return w.Put(ctx, Record{Address: object(1, 9), Attrs: []Attr{{"n", "5", Auto}}})
		}, "commit", costWrite + costObject + costCounts + costPending},
		{"put what expires", func(w *world) error { return w.Put(ctx, Record{Address: object(1, 9), Expires: 200}) }, "commit", costWrite + costObject + costCounts + 1},
		{"put a part and its parent", func(w *world) error { return w.Put(ctx, part(1, 9, 8, ""), virtual(1, 8)) }, "commit",
			costWrite + 2*costObject + 1 + costCounts},
		{"put again", func(w *world) error { return w.Put(ctx, Record{Address: object(1, 1)}) }, "commit", costWrite},
		{"put a batch of 100", func(w *world) error {
			es := make([]Entry, 100)
			for i := range es {
				es[i].Records = []Record{{Address: object(1, 100+i), Attrs: attrs(20)}}
			}
			return w.PutBatch(ctx, es)
		}, "commit", costWrite + 100*costObject + costCounts + costPending},
		{"get", func(w *world) error { _, err := w.Get(ctx, object(1, 1)); return err }, "get", costBucket + costRecord},
		{"get where there is more", func(w *world) error { _, err := w.Get(ctx, object(6, 1)); return err }, "get", costBucket + costRecord + costVerdict},
		{"get a part", func(w *world) error { _, err := w.Get(ctx, object(1, 2)); return err }, "get", costBucket + 2*costRecord},
		{"exists not", func(w *world) error { _, err := w.Exists(ctx, object(1, 99)); return err }, "exists", costBucket + costRecord},
		{"exists in no container", func(w *world) error { _, err := w.Exists(ctx, object(9, 99)); return err }, "exists", 0},
		{"status", func(w *world) error { _, err := w.Status(ctx, object(1, 1)); return err }, "status", costBucket + costRecord + 1},
		{"counters", func(w *world) error { _, err := w.Counters(ctx, id(1)); return err }, "counters", costBucket},
		{"list", func(w *world) error { _, err := w.List(ctx, blobstor.Address{}, 2); return err }, "list", costBucket + 2 + costLookups},
		{"search", func(w *world) error {
			_, err := w.Search(ctx, Query{Container: id(1), Filters: []Filter{{"a", EQ, "1"}}})
			return err
		}, "search", costBucket + 1 + costLookups},
		{"index of 2 entries", func(w *world) error { w.beginIndexing(); return w.Put(ctx, Record{Address: object(1, 1)}) }, "index", costBucket + 2 + 2},
		{"mark", func(w *world) error { return w.Mark(ctx, Garbage, object(1, 1)) }, "commit", costWrite + 1 + 1 + costCounts},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]int{}
			w := newWorld(t, Options{NoSync: true, Ballast: -1, pending: 1 << 20, watch: func(op string, n int) { got[op] += n }})
			w.put(t, object(1, 1), "a", "1")
			w.record(t, part(1, 2, 3, ""))
			w.record(t, Record{Address: object(6, 1)}, lock(6, 3, 9, 0))
			w.record(t, Record{Address: object(6, 4), Kind: Tombstone, Target: id(5)})
			must(t, w.Mark(ctx, Redundant, object(6, 3)))
			clear(got)
			must(t, c.do(w))
			if got[c.op] != c.want || len(got) != min(c.want, 1) && c.op != "index" {
				t.Errorf("cursors %v, want %d in %q", got, c.want, c.op)
			}
		})
	}
}

// TestMissingBucket removes the bucket under an open database: what needs it reports that, and nothing makes it.
func TestMissingBucket(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1), "a", "1")
	must(t, w.file.Update(func(tx *bolt.Tx) error { return tx.Bucket(0).Tx().DeleteBucket([]byte(bucketName)) }))
	_, err := w.Get(ctx, object(1, 1))
	wantIs(t, err, blobstor.ErrCorrupt)
	wantIs(t, w.Put(ctx, Record{Address: object(1, 2)}), blobstor.ErrCorrupt)
	wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
	must(t, w.Close())
	_, err = Open(w.dir, &w.opts)
	wantIs(t, err, blobstor.ErrCorrupt)
}

// TestOnlyTheSchemaCreates reads the sources of this package and the one below.
func TestOnlyTheSchemaCreates(t *testing.T) {
	calls := map[string]int{}
	for _, dir := range []string{".", "../internal/bolt"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			must(t, err)
			if n := creations(t, file, src); n > 0 {
				calls[filepath.Base(file)] += n
			}
		}
	}
	if len(calls) != 1 || calls["fresh.go"] != 1 {
		t.Errorf("buckets are made in %v, want one place in fresh.go", calls)
	}
	const bad = "package a\nvar make = b.CreateBucketIfNotExists\n"
	if creations(t, "bad.go", []byte(bad)) != 1 {
		t.Error("the test is blind")
	}
}

// creations counts where a source names a method that makes or moves buckets.
func creations(tb testing.TB, name string, src []byte) (n int) {
	tb.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	must(tb, err)
	ast.Inspect(f, func(node ast.Node) bool {
		if sel, ok := node.(*ast.SelectorExpr); ok && (strings.HasPrefix(sel.Sel.Name, "CreateBucket") || sel.Sel.Name == "MoveBucket") {
			n++
		}
		return true
	})
	return n
}
