package blobovnicza

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// Tree shapes, the contestants adjacent in each cell, on a disk that nobody else uses. 4x4 needs that many puts: the
// first one in each leaf zeroes space ahead that 60 puts use up.
//
//	for i in 1 2 3 4 5; do go test -run - -bench 'Put/engine=(granary|rawlog)/tree=/size=/threads=(1|20)$' -benchtime 40000x ./blobovnicza; done
//	for i in 1 2 3 4 5; do go test -run - -bench 'Put/engine=(granary|rawlog)/tree=/size=/threads=100$' -benchtime 100000x ./blobovnicza; done
//
// Batches:
//
//	for i in 1 2 3 4 5; do go test -run - -bench PutBatch -benchtime 50x ./blobovnicza; done

// shapes are the trees of the ancestors' benchmarks. 10x0 has one leaf, as 1x0: it is there for their rows.
var shapes = [][2]int{{1, 0}, {10, 0}, {2, 2}, {4, 4}}

// BenchmarkPut stores 4 KiB blobs durably; one op is one put, whatever the number of threads.
func BenchmarkPut(b *testing.B) {
	for _, shape := range shapes {
		for _, threads := range threadCounts {
			for _, e := range engines {
				if e.alone && shape != shapes[0] {
					continue
				}
				b.Run(fmt.Sprintf("engine=%s/tree=%dx%d/size=4KiB/threads=%d", e.name, shape[0], shape[1], threads),
					func(b *testing.B) { benchmarkPut(b, e.open, shape, threads) })
			}
		}
	}
}

func benchmarkPut(b *testing.B, open func(*testing.B, string, [2]int) engine, shape [2]int, threads int) {
	e := open(b, b.TempDir(), shape)
	data := dataOf(1, 4096)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	inParallel(b, threads, func(n int) error { return e.put(benchAddr(n), data) })
	b.StopTimer()
	check(b, e.close())
}

// batchSize is how many blobs of 4 KiB one op of BenchmarkPutBatch stores.
const batchSize = 1000

// BenchmarkPutBatch stores 1,000 blobs of 4 KiB with one call. raw writes as many bytes to a file and syncs it.
func BenchmarkPutBatch(b *testing.B) {
	b.Run("engine=granary", func(b *testing.B) {
		s := mustOpen(b, b.TempDir(), Options{})
		items, next := make([]blobstor.Item, batchSize), 0
		data := dataOf(1, 4096)
		benchmarkBatch(b, func() error {
			for i := range items {
				items[i] = blobstor.Item{Address: benchAddr(next + i), Data: data}
			}
			next += batchSize
			return s.PutBatch(ctx, items)
		})
		b.ReportMetric(float64(s.Stats().Commits)/float64(b.N), "commits/op")
	})
	b.Run("engine=raw", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
		check(b, err)
		defer f.Close()
		data := dataOf(1, batchSize*4096)
		benchmarkBatch(b, func() error { return appendRaw(f, data) })
	})
}

func benchmarkBatch(b *testing.B, op func() error) {
	b.SetBytes(batchSize * 4096)
	b.ReportAllocs()
	for b.Loop() {
		check(b, op())
	}
}

// appendRaw writes data at the file's position with calls of writeSize, and syncs it.
func appendRaw(f *os.File, data []byte) error {
	for rest := data; len(rest) > 0; {
		n := min(len(rest), writeSize)
		if _, err := f.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return fdatasync(f)
}
