package blobovnicza

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/blobstor"
)

// Reads of 100,000 blobs, and deletes:
//
//	for i in 1 2 3 4 5; do go test -run - -bench 'Get/engine=|Exists' -benchtime 200000x ./blobovnicza; done
//	go test -run - -bench Iterate -benchtime 5x -count 5 ./blobovnicza
//	go test -run - -bench Delete -benchtime 10000x -count 5 ./blobovnicza

// storeSize is how many blobs of 4 KiB the reading benchmarks work on, GRANARY_PRESENT if that is set.
var storeSize = max(100_000, present())

func present() int {
	n, _ := strconv.Atoi(os.Getenv("GRANARY_PRESENT")) // 0 if there is none
	return n
}

// blobAt picks the n-th blob to read: a stride that shares no factor with storeSize.
func blobAt(n int) int { return n * 7919 % storeSize }

// inOrder returns all in the order in which they are read, so that the benchmarks measure the store's memory
// accesses and not their own.
func inOrder(all []blobstor.Location) []blobstor.Location {
	ordered := make([]blobstor.Location, len(all))
	for n := range all {
		ordered[n] = blobstor.Location(strings.Clone(string(all[blobAt(n)])))
	}
	return ordered
}

var threadCounts = []int{1, 20, 100}

// reader is one goroutine's way to read from a contestant.
type readFunc func(n int) error

// contestant is a filled store to read from. Its functions return a readFunc for each goroutine: get has a location,
// find does without.
type contestant struct {
	get, find, hit, miss func() readFunc
	iterate              func() (count int, err error)
}

// filled are the contestants, filled once for all benchmarks of a run and removed at its end.
var filled struct {
	sync.Once
	dir  string
	all  map[string]contestant
	tree *Tree
}

func contestants(b *testing.B) map[string]contestant {
	b.Helper()
	filled.Do(func() {
		var err error
		filled.dir, err = os.MkdirTemp("", "granary-bench")
		check(b, err)
		dir := filepath.Join(filled.dir, "granary")
		locations := inOrder(fillSealed(b, dir, Options{}, storeSize, dataOf(1, 4096)))
		granary, err := Open(dir, nil)
		check(b, err)
		filled.all = map[string]contestant{
			"granary": granaryReads(granary, locations),
			"pread":   preadReads(dir, granary, locations),
			"bbolt":   boltReads(fillBolt(b, filled.dir)),
		}
		filled.tree = granary
	})
	return filled.all
}

// removeFilled is called when all tests and benchmarks have ended.
func removeFilled() {
	if filled.dir != "" {
		filled.tree.Close()
		os.RemoveAll(filled.dir)
	}
}

// readParallel spreads b.N reads over goroutines that each have a readFunc of their own.
func readParallel(b *testing.B, threads int, reads func() readFunc) {
	funcs := make([]readFunc, threads)
	for i := range funcs {
		funcs[i] = reads()
		check(b, funcs[i](i)) // its buffer is allocated now
	}
	b.ReportAllocs()
	b.ResetTimer()
	inParallel(b, threads, func(n int) error { return funcs[n%threads](n) })
}

// BenchmarkGet reads 4 KiB blobs from the page cache, by their location and without. pread is the floor: the same
// bytes, and the checksum, and nothing else. The last cells show what the number of files costs.
func BenchmarkGet(b *testing.B) {
	for _, threads := range threadCounts {
		benchmarkGet(b, "granary", "hit", threads)
		benchmarkGet(b, "granary", "none", threads)
		benchmarkGet(b, "pread", "hit", threads)
		benchmarkGet(b, "bbolt", "hit", threads)
	}
	for _, files := range []int{10, 1000} {
		b.Run(fmt.Sprintf("location=hit/files=%d", files), func(b *testing.B) { benchmarkGetFiles(b, files) })
	}
}

func benchmarkGet(b *testing.B, name, location string, threads int) {
	b.Run(fmt.Sprintf("engine=%s/location=%s/size=4KiB/threads=%d", name, location, threads), func(b *testing.B) {
		c := contestants(b)[name]
		reads := c.get
		if location == "none" {
			reads = c.find
		}
		b.SetBytes(4096)
		readParallel(b, threads, reads)
	})
}

// BenchmarkExists asks whether a blob is there, without a location.
func BenchmarkExists(b *testing.B) {
	all := contestants(b)
	for _, threads := range threadCounts {
		for _, name := range []string{"granary", "bbolt"} {
			c := all[name]
			b.Run(fmt.Sprintf("hit/engine=%s/threads=%d", name, threads), func(b *testing.B) {
				readParallel(b, threads, c.hit)
			})
			b.Run(fmt.Sprintf("miss/engine=%s/threads=%d", name, threads), func(b *testing.B) {
				readParallel(b, threads, c.miss)
			})
		}
	}
}

// BenchmarkIterate walks over all blobs; one op is the whole store.
func BenchmarkIterate(b *testing.B) {
	all := contestants(b)
	for _, name := range []string{"granary", "bbolt"} {
		b.Run("engine="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				count, err := all[name].iterate()
				check(b, err)
				if count != storeSize {
					b.Fatalf("%d blobs", count)
				}
			}
			b.ReportMetric(float64(storeSize)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

// BenchmarkDelete removes 4 KiB blobs durably; one op is one delete.
func BenchmarkDelete(b *testing.B) {
	for _, threads := range threadCounts {
		b.Run(fmt.Sprintf("engine=granary/threads=%d", threads), func(b *testing.B) {
			s := mustOpen(b, b.TempDir(), Options{})
			fillForDelete(b, func(items []blobstor.Item) { check(b, s.PutBatch(ctx, items)) })
			inParallel(b, threads, func(n int) error { return s.Delete(ctx, benchAddr(n), "") })
		})
		b.Run(fmt.Sprintf("engine=bbolt-batch/threads=%d", threads), func(b *testing.B) {
			db := openBoltDB(b, b.TempDir())
			defer db.Close()
			fillForDelete(b, func(items []blobstor.Item) {
				check(b, db.Update(func(tx *bbolt.Tx) error {
					for i := range items {
						if err := tx.Bucket(boltBucket).Put(boltKey(&items[i].Address), items[i].Data); err != nil {
							return err
						}
					}
					return nil
				}))
			})
			inParallel(b, threads, func(n int) error {
				return db.Batch(func(tx *bbolt.Tx) error {
					addr := benchAddr(n)
					return tx.Bucket(boltBucket).Delete(boltKey(&addr))
				})
			})
		})
	}
}

// fillForDelete puts what b.N deletes need, off the clock.
func fillForDelete(b *testing.B, put func(items []blobstor.Item)) {
	data := dataOf(1, 4096)
	for from := 0; from < b.N; from += 1000 {
		var items []blobstor.Item
		for n := from; n < min(from+1000, b.N); n++ {
			items = append(items, blobstor.Item{Address: benchAddr(n), Data: data})
		}
		put(items)
	}
	b.ReportAllocs()
	b.ResetTimer()
}
