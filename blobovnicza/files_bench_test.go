package blobovnicza

import (
	"fmt"
	"testing"
	"time"
)

// What the number of files costs:
//
//	for i in 1 2 3 4 5; do go test -run - -bench 'Get/location=hit/files=' -benchtime 500000x ./blobovnicza; done
//	for i in 1 2 3 4 5; do go test -run - -bench Miss -benchtime 200000x ./blobovnicza; done

// benchmarkGetFiles reads blobs of 1 KiB by location from a store that has them in about that many files.
func benchmarkGetFiles(b *testing.B, files int) {
	dir, data := b.TempDir(), dataOf(1, 1024)
	opts := Options{FileSize: spreadSize(storeSize, len(data), files)}
	locations := inOrder(fillSealed(b, dir, opts, storeSize, data))
	s := mustOpen(b, dir, opts)
	b.SetBytes(int64(len(data)))
	readOne(b, granaryReads(s, locations).get())
	b.ReportMetric(float64(s.Stats().Files), "files")
	// The system itself takes longer where there are more files: pread is what does that, and the checksums.
	b.StopTimer()
	read, begin := preadReads(dir, s, locations).get(), time.Now()
	for n := range b.N {
		check(b, read(n))
	}
	b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64(b.N), "pread-ns/op")
}

// BenchmarkMiss asks for blobs that are not there, in stores of about that many files. The files have 1,000 blobs
// each, so that their filters do not all lie in the nearest cache; in short mode fewer and larger ones.
func BenchmarkMiss(b *testing.B) {
	for _, files := range []int{100, 1000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			n, dir, data := files*1000, b.TempDir(), dataOf(1, 16)
			if testing.Short() {
				n, data = files*100, dataOf(1, 512)
			}
			opts := Options{FileSize: spreadSize(n, len(data), files)}
			fillSealed(b, dir, opts, n, data)
			s := mustOpen(b, dir, opts)
			readOne(b, granaryReads(s, nil).miss())
			files := float64(s.Stats().Files)
			b.ReportMetric(files, "files")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/files, "ns/file")
		})
	}
}

// readOne reads from one goroutine. The first reads are off the clock: they make what is made on first use.
func readOne(b *testing.B, read readFunc) {
	for n := range 1000 {
		check(b, read(n))
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := read(n); err != nil {
			b.Fatal(err)
		}
	}
}
