package pilorama

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// benchOps are the ancestors': moves among 1,000 nodes, with attributes of 5 bytes.
func benchOps(n int) []Operation {
	rng := rand.New(rand.NewPCG(1, 1))
	ops := make([]Operation, n)
	for i := range ops {
		ops[i] = Operation{uint64(i + 1), NodeID(rng.IntN(1000)), NodeID(1 + rng.IntN(1000)), []Attr{{"k", "v"}}}
	}
	return ops
}

var batchSizes = []int{1, 2, 4, 8, 16, 32}

// BenchmarkApplySequential applies operations in the order of their times, ten callers for each processor, each with
// batches of a size. One op is one operation.
func BenchmarkApplySequential(b *testing.B) { benchApply(b, func([]Operation) {}) }

// BenchmarkApplyReorderLast likewise, each ten operations in reverse.
func BenchmarkApplyReorderLast(b *testing.B) {
	benchApply(b, func(ops []Operation) {
		for part := range slices.Chunk(ops, 10) {
			slices.Reverse(part)
		}
	})
}

func benchApply(b *testing.B, order func([]Operation)) {
	for _, sync := range []bool{false, true} {
		for _, size := range batchSizes {
			b.Run(fmt.Sprintf("sync=%v/batchsize=%d", sync, size), func(b *testing.B) {
				w := newWorld(b, Options{NoSync: !sync, Ballast: -1})
				ops := benchOps(b.N)
				order(ops)
				var next atomic.Int64
				b.ReportAllocs()
				b.SetParallelism(10)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for more := pb.Next(); more; {
						n := 1
						for more = pb.Next(); more && n < size; more = pb.Next() {
							n++
						}
						at := int(next.Add(int64(n))) - n
						if err := w.ApplyBatch(ctx, tree, ops[at:min(len(ops), at+n)]); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

// BenchmarkAddByPath makes nodes with seven attributes below paths of their own, as gateways of S3 do, durably.
func BenchmarkAddByPath(b *testing.B) {
	for _, threads := range []int{1, 20, 100} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			w := newWorld(b, Options{Ballast: -1})
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range threads {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if err := w.addVersion(int(i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
		})
	}
}

func (w *world) addVersion(i int) error {
	_, err := w.AddByPath(ctx, tree, alone, []string{"bucket", fmt.Sprintf("dir%d", i%100)}, []Attr{
		{FileName, fmt.Sprintf("object-%d", i)}, {"OID", "FVAc9SX6cAYfZF3mWZbPaxpUcxRfEgyPrpfgbCVx2eoC"}, {"IsUnversioned", "true"}, {"ETag", "d41d8cd98f00b204e9800998ecf8427e"},
		{"Size", "1048576"}, {"Owner", "NTrezR3C4X8aMLVg7vozt5wguyNfFhwuFx"}, {"Created", "1661946382"},
	})
	return err
}

// filled has a directory of n files.
func filled(b *testing.B, n int) *world {
	w := newWorld(b, Options{NoSync: true, Ballast: -1})
	for from := 0; from < n; from += 1000 {
		var ops []Operation
		for i := from; i < min(n, from+1000); i++ {
			ops = append(ops, Operation{uint64(i + 1), Root, NodeID(i + 1), named(fmt.Sprintf("file %d", i*7919%n), "size", "1")})
		}
		must(b, w.ApplyBatch(ctx, tree, ops))
	}
	return w
}

func sizes(tb testing.TB) []int {
	tb.Helper()
	if testing.Short() {
		return []int{1000, 10_000}
	}
	return []int{1000, 1_000_000}
}

// BenchmarkChildren reads the first hundred of a directory.
func BenchmarkChildren(b *testing.B) {
	for _, n := range sizes(b) {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			w := filled(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if page, err := w.Children(ctx, tree, Root, "", 100); err != nil || len(page) != 100 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}

// BenchmarkSubtree streams a directory. It reports how long its first entry takes and what memory it holds.
func BenchmarkSubtree(b *testing.B) {
	for _, n := range sizes(b) {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			w := filled(b, n)
			var first time.Duration
			var held uint64
			b.ReportAllocs()
			for b.Loop() {
				before := heap()
				began, at := time.Now(), 0
				for _, err := range w.Subtree(ctx, tree, Root, 0, "") {
					must(b, err)
					if at++; at == 1 {
						first += time.Since(began)
					}
					if at == n/2 {
						held = max(held, heap()-min(heap(), before))
					}
				}
				if at != n {
					b.Fatal(at)
				}
			}
			b.ReportMetric(float64(first.Microseconds())/float64(b.N), "us/first")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
			b.ReportMetric(float64(held)/1024, "KiB-held")
		})
	}
}

// heap returns what is in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
