package metabase

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/blobstor"
)

// benchRecords returns the objects of the ancestors' benchmark of Put: one container, 20 attributes of 4 keys and 4
// values, and every second object a part of the same parent.
func benchRecords(from, n int) []Record {
	rnd := rand.New(rand.NewPCG(uint64(from), 7))
	all := make([]Record, n)
	for i := range all {
		r := &all[i]
		r.Address.Container = id(1)
		binary.BigEndian.PutUint64(r.Address.Object[:], rnd.Uint64())
		binary.BigEndian.PutUint64(r.Address.Object[8:], uint64(from+i)+1)
		r.Size = 4096
		for range 20 {
			r.Attrs = append(r.Attrs, Attr{Key: fmt.Sprintf("abc%d", rnd.IntN(4)), Value: fmt.Sprintf("xyz%d", rnd.IntN(4))})
		}
		if i%2 == 0 {
			r.Parent = id(77)
		}
	}
	return all
}

func benchWorld(b *testing.B, opts Options) *world {
	b.Helper()
	opts.pending = pendingEntries
	w := newWorld(b, opts)
	b.ReportAllocs()
	return w
}

// fill records objects without syncing each.
func (w *world) fill(b *testing.B, all []Record) {
	b.Helper()
	es := make([]Entry, len(all))
	for i := range all {
		es[i].Records = all[i : i+1]
	}
	must(b, w.PutBatch(ctx, es))
}

// inThreads runs b.N calls in some goroutines.
func inThreads(b *testing.B, threads int, do func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range threads {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

// BenchmarkPut is the comparison that the ancestors made of their bucket lookup: create asks for every bucket with
// CreateBucketIfNotExists on every access, on the ancestors' layout of a bucket for each container and attribute;
// cached is this package.
//
//	go test -run - -bench '^BenchmarkPut$' -benchtime 2000x -count 5 ./metabase
func BenchmarkPut(b *testing.B) {
	for name, threads := range map[string]int{"parallel": 2, "sequential": 1} {
		b.Run(name+"/lookup=cached", func(b *testing.B) {
			w := benchWorld(b, Options{})
			all := benchRecords(0, b.N)
			inThreads(b, threads, func(i int) error { return w.Put(ctx, all[i]) })
		})
		b.Run(name+"/lookup=create", func(b *testing.B) {
			b.ReportAllocs()
			db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, nil)
			must(b, err)
			defer db.Close()
			all := benchRecords(0, b.N)
			put := db.Update
			if threads > 1 {
				db.MaxBatchSize = threads
				put = db.Batch
			}
			inThreads(b, threads, func(i int) error {
				return put(func(tx *bbolt.Tx) error { return createPut(tx, &all[i]) })
			})
		})
	}
}

// createPut records an object as the ancestors did.
func createPut(tx *bbolt.Tx, r *Record) error {
	cnr, obj := r.Address.Container[:], r.Address.Object[:]
	bucket := func(kind byte, more string) (*bbolt.Bucket, error) {
		return tx.CreateBucketIfNotExists(append(append([]byte{kind}, cnr...), more...))
	}
	nested := func(kind byte, more, value string) error {
		b, err := bucket(kind, more)
		if err == nil {
			b, err = b.CreateBucketIfNotExists([]byte(value))
		}
		if err == nil {
			err = b.Put(obj, nil)
		}
		return err
	}
	list := func(kind byte, key []byte) error {
		b, err := bucket(kind, "")
		if err != nil {
			return err
		}
		return b.Put(key, append(append([]byte(nil), b.Get(key)...), obj...))
	}
	b, err := bucket(6, "")
	if err == nil {
		err = b.Put(obj, r.appendTo(nil))
	}
	if err == nil {
		err = list(14, obj) // payload hash
	}
	if err == nil && r.Parent.IsZero() {
		if b, err = bucket(11, ""); err == nil {
			err = b.Put(obj, nil)
		}
	} else if err == nil {
		err = list(15, r.Parent[:])
	}
	if err == nil {
		err = nested(12, "", "owner")
	}
	for i := range r.Attrs {
		if err == nil {
			err = nested(13, r.Attrs[i].Key, r.Attrs[i].Value)
		}
	}
	return err
}

// BenchmarkFileSize reports the bytes of the file for each object of BenchmarkPut, put one after the other.
func BenchmarkFileSize(b *testing.B) {
	n := shortOr(2000, 100_000)
	for range b.N {
		w := benchWorld(b, Options{NoSync: true, Ballast: -1})
		for i := range n {
			must(b, w.Put(ctx, benchRecords(i, 1)[0]))
		}
		b.ReportMetric(float64(w.fileSize(b))/float64(n), "B/object")
	}
}

// BenchmarkPutBatch reports objects/s.
func BenchmarkPutBatch(b *testing.B) {
	for _, size := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := benchWorld(b, Options{})
			all := benchRecords(0, b.N*size)
			es := make([]Entry, len(all))
			for i := range all {
				es[i].Records = all[i : i+1]
			}
			b.ResetTimer()
			for i := range b.N {
				must(b, w.PutBatch(ctx, es[i*size:(i+1)*size]))
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}

// BenchmarkPutParallel is a durable Put, and beside it a bare Update of bbolt that writes the same keys.
func BenchmarkPutParallel(b *testing.B) {
	for _, threads := range []int{1, 20, 100} {
		b.Run(fmt.Sprintf("engine=granary/threads=%d", threads), func(b *testing.B) {
			w := benchWorld(b, Options{})
			all := benchRecords(0, b.N)
			inThreads(b, threads, func(i int) error { return w.Put(ctx, all[i]) })
		})
	}
	b.Run("engine=bbolt/threads=1", func(b *testing.B) {
		b.ReportAllocs()
		db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoStatistics: true})
		must(b, err)
		defer db.Close()
		must(b, db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte(bucketName))
			return err
		}))
		all := benchRecords(0, b.N)
		written := make([][]change, b.N)
		for i := range all {
			var t txn
			t.planNew(1, &all[i], None)
			t.eachEntry(1, &all[i], func(key []byte) { t.put(attrs, t.keep(key), nil) })
			t.put(counts, container(1).append(nil), new(Counters).appendTo)
			written[i] = t.changes
		}
		inThreads(b, 1, func(i int) error {
			return db.Update(func(tx *bbolt.Tx) error {
				for _, c := range written[i] {
					if err := tx.Bucket([]byte(bucketName)).Put(append([]byte{c.class}, c.key...), c.value); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

func BenchmarkGet(b *testing.B) {
	w, all := lookupWorld(b)
	for i := 0; b.Loop(); i++ {
		_, err := w.Get(ctx, all[i%len(all)].Address)
		must(b, err)
	}
}

func BenchmarkExists(b *testing.B) {
	w, all := lookupWorld(b)
	b.Run("existing", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, err := w.Exists(ctx, all[i%len(all)].Address)
			must(b, err)
		}
	})
	b.Run("inexisting", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, err := w.Exists(ctx, blobstor.Address{Container: all[i%len(all)].Address.Container, Object: id(5)})
			must(b, err)
		}
	})
	b.Run("inexisting container", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, err := w.Exists(ctx, object(100_000+i, 1))
			must(b, err)
		}
	})
}

// lookupWorld has 100 objects, each in a container of its own.
func lookupWorld(b *testing.B) (*world, []Record) {
	w := benchWorld(b, Options{})
	all := benchRecords(0, 100)
	for i := range all {
		all[i].Address.Container, all[i].Parent = id(i+1), blobstor.ID{}
	}
	w.fill(b, all)
	return w, all
}

func BenchmarkIsLocked(b *testing.B) {
	w := benchWorld(b, Options{})
	all := make([]Record, 0, 2000)
	for i := range 1000 {
		all = append(all, Record{Address: object(1, i+1)}, Record{Address: object(1, i+5001), Kind: Lock, Target: id(i + 1)})
	}
	w.fill(b, all)
	for i := 0; b.Loop(); i++ {
		if s, err := w.Status(ctx, object(1, i%1000+1)); err != nil || !s.Held {
			b.Fatal(s, err)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	w := benchWorld(b, Options{})
	all := make([]Record, 1000)
	for i := range all {
		all[i] = Record{Address: object(1, i+1), Attrs: []Attr{{Key: "myHeader", Value: fmt.Sprint(i)}}}
	}
	w.fill(b, all)
	for _, c := range []struct {
		name   string
		filter Filter
		want   int
	}{
		{"string equal", Filter{"myHeader", EQ, "100"}, 1},
		{"string not equal", Filter{"myHeader", NE, "100"}, 999},
		{"common prefix", Filter{"myHeader", Prefix, "99"}, 11},
		{"unknown", Filter{"unknown", EQ, "100"}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := w.Search(ctx, Query{Container: id(1), Filters: []Filter{c.filter}})
				if err != nil || len(p.Found) != c.want {
					b.Fatal(len(p.Found), err)
				}
			}
		})
	}
}

// searchRecords are objects with 8 attributes, of which FilePath is unique.
func searchRecords(n int) []Record {
	all := make([]Record, n)
	for i := range all {
		all[i] = Record{Address: object(1, i+1), Attrs: []Attr{{Key: "FilePath", Value: fmt.Sprintf("dir/file-%07d", i)}}}
		for k := range 7 {
			all[i].Attrs = append(all[i].Attrs, Attr{Key: fmt.Sprintf("attr%d", k), Value: fmt.Sprint(i * k)})
		}
	}
	return all
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		if n > 1000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			w := benchWorld(b, Options{NoSync: true})
			w.fill(b, searchRecords(n))
			names := []string{"FilePath", "attr0", "attr1", "attr2", "attr3", "attr4", "attr5", "attr6"}
			run := func(name string, want int, q Query) {
				q.Container, q.Attrs = id(1), names
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						p, err := w.Search(ctx, q)
						if err != nil || len(p.Found) != want {
							b.Fatal(len(p.Found), err)
						}
					}
				})
			}
			run("EQ", 1, Query{Filters: []Filter{{"FilePath", EQ, "dir/file-0000500"}, {"Absent", Absent, ""}}})
			run("NE", 100, Query{Limit: 100, Filters: []Filter{{"FilePath", NE, "dir/file-0000500"}}})
			run("range", 100, Query{Limit: 100, Filters: []Filter{{"attr1", GE, "100"}, {"attr1", LT, "900"}}})
		})
	}
}

func BenchmarkListWithCursor(b *testing.B) {
	w := benchWorld(b, Options{NoSync: true})
	n := shortOr(10_000, 100_000)
	all := make([]Record, n)
	for i := range all {
		all[i] = Record{Address: object(i/9+1, i+1), Size: 10, Attrs: []Attr{{Key: "abc", Value: "xyz"}}}
	}
	w.fill(b, all)
	for _, limit := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			b.ReportAllocs()
			var at blobstor.Address
			for b.Loop() {
				page, err := w.List(ctx, at, limit)
				must(b, err)
				if at = (blobstor.Address{}); len(page) == limit {
					at = page[limit-1].Address
				}
			}
		})
	}
}

func shortOr(short, full int) int {
	if testing.Short() {
		return short
	}
	return full
}
