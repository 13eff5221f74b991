package blobovnicza

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/granary-store/granary/internal/durable"
)

// Open with a million objects, which take 5 GB of disk:
//
//	go test -run - -bench Open -benchtime 10x -timeout 30m ./blobovnicza

// BenchmarkOpen opens a store and gets one blob. After a crash it takes turns with the floor, which reads the active
// file twice from its start to its end; time/floor is the median of their ratios.
func BenchmarkOpen(b *testing.B) {
	n, name, opts := 1_000_000, "objects=1M", Options{}
	if testing.Short() {
		n, name, opts = 20_000, "objects=20k", Options{FileSize: 12 << 20}
	}
	dir, crashed := filepath.Join(b.TempDir(), "closed"), filepath.Join(b.TempDir(), "crashed")
	fillOpen(b, dir, crashed, opts, n)
	b.Run(name+"/after=close", func(b *testing.B) {
		b.ReportAllocs()
		var files int
		for i := 0; b.Loop(); i++ {
			s := openAndGet(b, dir, opts, i*7919%n)
			b.StopTimer()
			files = s.Stats().Files
			check(b, s.Close())
			b.StartTimer()
		}
		reportPer100(b, files)
	})
	b.Run(name+"/after=crash", func(b *testing.B) { benchmarkCrash(b, crashed, opts, n) })
}

func benchmarkCrash(b *testing.B, crashed string, opts Options, n int) {
	work := filepath.Join(b.TempDir(), "work")
	var files int
	var floor time.Duration
	var ratios []float64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		cloneCrashed(b, crashed, work)
		once := readTwice(b, newest(b, crashed))
		b.StartTimer()
		begin := time.Now()
		s := openAndGet(b, work, opts, i*7919%n)
		d := time.Since(begin)
		b.StopTimer()
		floor, ratios = floor+once, append(ratios, float64(d)/float64(once))
		files = s.Stats().Files
		check(b, s.Close())
		b.StartTimer()
	}
	reportPer100(b, files)
	b.ReportMetric(floor.Seconds()*1000/float64(b.N), "floor-ms/op")
	b.ReportMetric(median(ratios), "time/floor")
}

func reportPer100(b *testing.B, files int) {
	b.ReportMetric(float64(files), "files")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/float64(files)*100, "ms/100files")
}

func openAndGet(b *testing.B, dir string, opts Options, n int) *Tree {
	s, err := Open(dir, &opts)
	check(b, err)
	_, err = s.Get(ctx, benchAddr(n), "", nil)
	check(b, err)
	return s
}

// fillOpen fills dir with n blobs of 4 KiB, and crashed with what a kill would leave of it after a few puts more. The
// active file of crashed has no index, as if the store had not been closed since that file was begun: this is the
// most that a crash can cost.
func fillOpen(b *testing.B, dir, crashed string, opts Options, n int) {
	b.Helper()
	filling := opts
	filling.Create, filling.NoSync = true, true
	data := dataOf(1, 4096)
	fill(b, dir, filling, 0, n-500, data)
	s, err := Open(dir, &opts)
	check(b, err)
	for i := n - 500; i < n; i++ {
		_, err := s.Put(ctx, benchAddr(i), data)
		check(b, err)
	}
	cloneCrashed(b, dir, crashed)
	check(b, s.Close())
	check(b, os.RemoveAll(strings.TrimSuffix(newest(b, crashed), dataSuffix)+".idx"))
}

// cloneCrashed makes to a copy of the store in from, which may be open but idle. Full files never change, so links to
// them will do. What is copied is synced, as it was before the crash.
func cloneCrashed(b *testing.B, from, to string) {
	b.Helper()
	check(b, os.RemoveAll(to))
	active := strings.TrimSuffix(newest(b, from), dataSuffix)
	check(b, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		ext := filepath.Ext(path)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.TrimSuffix(path, ext) == active || ext != dataSuffix && ext != ".idx":
			return copySynced(path, target)
		}
		return os.Link(path, target)
	}))
}

func copySynced(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	if _, err := dst.ReadFrom(src); err != nil {
		return err
	}
	return dst.Sync()
}

// newest returns the path of the active file of a store of one leaf.
func newest(b *testing.B, dir string) string {
	files := dataFiles(b, dir)
	return files[len(files)-1]
}

// readTwice is the time of reading a file twice. The first time it comes from the disk, because Open does not trust
// the page cache after a crash either.
func readTwice(b *testing.B, path string) time.Duration {
	dir, err := durable.OpenDir(filepath.Dir(path), nil)
	check(b, err)
	defer dir.Close()
	f, err := dir.Open(filepath.Base(path))
	check(b, err)
	defer f.Close()
	size, err := f.Size()
	check(b, err)
	buf := make([]byte, writeSize)
	f.DropCache()
	begin := time.Now()
	for range 2 {
		for off := int64(0); off < size; off += writeSize {
			_, err := f.ReadAt(buf[:min(writeSize, size-off)], off)
			check(b, err)
		}
	}
	return time.Since(begin)
}
