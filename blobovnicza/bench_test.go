package blobovnicza

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/blobstor"
)

// storeSize is how many blobs of 4 KiB the reading benchmarks work on.
const storeSize = 100_000

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

// contestant is a filled store to read from. Its functions return a readFunc for each goroutine.
type contestant struct {
	get, hit, miss func() readFunc
	iterate        func() (count int, err error)
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
		granary, locations := fillGranary(b, filepath.Join(filled.dir, "granary"))
		filled.all = map[string]contestant{
			"granary": granaryReads(granary, locations),
			"pread":   preadReads(b, granary, locations),
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

func fillGranary(b *testing.B, dir string) (*Tree, []blobstor.Location) {
	s, err := Open(dir, &Options{Create: true})
	check(b, err)
	data := dataOf(1, 4096)
	locations := make([]blobstor.Location, storeSize)
	for from := 0; from < storeSize; from += 1000 {
		items := make([]blobstor.Item, 1000)
		for i := range items {
			items[i] = blobstor.Item{Address: benchAddr(from + i), Data: data}
		}
		check(b, s.PutBatch(ctx, items))
		for i := range items {
			locations[from+i] = items[i].Location
		}
	}
	return s, inOrder(locations)
}

func fillBolt(b *testing.B, dir string) *bbolt.DB {
	db := openBoltDB(b, dir)
	data := dataOf(1, 4096)
	for from := 0; from < storeSize; from += 1000 {
		check(b, db.Update(func(tx *bbolt.Tx) error {
			for n := from; n < from+1000; n++ {
				addr := benchAddr(n)
				if err := tx.Bucket(boltBucket).Put(boltKey(&addr), data); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return db
}

func granaryReads(s *Tree, locations []blobstor.Location) contestant {
	return contestant{
		get: func() readFunc {
			var dst []byte
			return func(n int) (err error) {
				dst, err = s.Get(ctx, benchAddr(blobAt(n)), locations[n%storeSize], dst[:0])
				return err
			}
		},
		hit: func() readFunc {
			return func(n int) error {
				_, err := s.Stat(ctx, benchAddr(blobAt(n)), "")
				return err
			}
		},
		miss: func() readFunc {
			return func(n int) error {
				if _, err := s.Stat(ctx, benchAddr(storeSize+n), ""); !errors.Is(err, blobstor.ErrNotFound) {
					return fmt.Errorf("miss: %w", err)
				}
				return nil
			}
		},
		iterate: func() (count int, err error) {
			for _, err := range s.All(ctx, "") {
				if err != nil {
					return 0, err
				}
				count++
			}
			return count, nil
		},
	}
}

// preadReads reads the bytes that granary's records have, and verifies the checksum: what a get cannot do without.
func preadReads(b *testing.B, s *Tree, locations []blobstor.Location) contestant {
	type source struct {
		f    *os.File
		off  int64
		seed uint32
	}
	files := map[uint32]*os.File{}
	for _, f := range *s.leaves[0].files.Load() {
		open, err := os.Open(filepath.Join(leafPath(filepath.Join(filled.dir, "granary"), s, 0), dataName(f.number)))
		check(b, err)
		files[f.number] = open
	}
	sources := make([]source, len(locations))
	for i, at := range locations {
		_, p, _ := parseLocation(at)
		sources[i] = source{files[p.file], p.off, fileSeed(s.storeID, 0, p.file)}
	}
	return contestant{get: func() readFunc {
		buf := make([]byte, recordSize(kindPut, 4096))
		return func(n int) error {
			from := &sources[n%storeSize]
			if _, err := from.f.ReadAt(buf, from.off); err != nil {
				return err
			}
			h, ok := parseHeader(buf, from.seed, from.off)
			if !ok || !verifyBlocks(&h, buf[headerSize:headerSize+4096], buf[headerSize+4096:]) {
				return blobstor.ErrCorrupt
			}
			return nil
		}
	}}
}

var errMissing = errors.New("missing")

func boltReads(db *bbolt.DB) contestant {
	view := func(n int, f func(v []byte) error) error {
		return db.View(func(tx *bbolt.Tx) error {
			addr := benchAddr(n)
			return f(tx.Bucket(boltBucket).Get(boltKey(&addr)))
		})
	}
	return contestant{
		get: func() readFunc {
			var dst []byte
			return func(n int) error {
				return view(blobAt(n), func(v []byte) error { dst = append(dst[:0], v...); return nil })
			}
		},
		hit: func() readFunc {
			return func(n int) error {
				return view(blobAt(n), func(v []byte) error {
					if v == nil {
						return errMissing
					}
					return nil
				})
			}
		},
		miss: func() readFunc {
			return func(n int) error { return view(storeSize+n, func(v []byte) error { return nil }) }
		},
		iterate: func() (count int, err error) {
			return count, db.View(func(tx *bbolt.Tx) error {
				return tx.Bucket(boltBucket).ForEach(func(k, v []byte) error { count++; return nil })
			})
		},
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

// BenchmarkGet reads 4 KiB blobs by their location from the page cache. pread is the floor: the same bytes, and
// the checksum, and nothing else.
func BenchmarkGet(b *testing.B) {
	all := contestants(b)
	for _, threads := range threadCounts {
		for _, name := range []string{"granary", "pread", "bbolt"} {
			b.Run(fmt.Sprintf("engine=%s/location=hit/size=4KiB/threads=%d", name, threads), func(b *testing.B) {
				b.SetBytes(4096)
				readParallel(b, threads, all[name].get)
			})
		}
	}
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
