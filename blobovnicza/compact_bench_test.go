package blobovnicza

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// Compaction against a plain copy of as many bytes, in turns:
//
//	for i in 1 2 3 4 5; do go test -run - -bench Compact -benchtime 1x ./blobovnicza; done

// copySync is how much the plain copy writes between two syncs: as much as a commit has at most.
const copySync = 4 << 20

// BenchmarkCompact empties a store of small files in which every second blob was deleted; MB/s are live bytes moved.
func BenchmarkCompact(b *testing.B) {
	n, fileSize := 128<<10, int64(64<<20)
	if testing.Short() {
		n, fileSize = 8<<10, 2<<20
	}
	moved := int64(n/2) * recordSize(kindPut, 4096)
	b.Run("engine=granary", func(b *testing.B) { benchmarkCompact(b, n, fileSize, moved) })
	b.Run("engine=copy", func(b *testing.B) { benchmarkCopy(b, moved) })
}

func benchmarkCompact(b *testing.B, n int, fileSize, moved int64) {
	opts := Options{FileSize: fileSize, Compact: CompactOptions{Off: true, DeadRatio: 0.25, Rate: math.MaxInt64}}
	b.SetBytes(moved)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		fillHalf(b, dir, opts, n)
		s, err := Open(dir, &opts)
		check(b, err)
		before := s.Stats()
		b.StartTimer()
		check(b, s.Compact(ctx))
		b.StopTimer()
		if after := s.Stats(); after.Live != before.Live || after.Dead > before.Dead/10 {
			b.Fatalf("before %+v, after %+v", before, after)
		}
		check(b, s.Close())
		check(b, os.RemoveAll(dir))
		b.StartTimer()
	}
}

// fillHalf makes a store of n blobs of 4 KiB in full files and deletes every second one.
func fillHalf(b *testing.B, dir string, opts Options, n int) {
	fillSealed(b, dir, opts, n, dataOf(1, 4096))
	opts.NoSync = true
	s, err := Open(dir, &opts)
	check(b, err)
	for from := 0; from < n; from += 2000 {
		var items []blobstor.Item
		for i := from; i < min(from+2000, n); i += 2 {
			items = append(items, blobstor.Item{Address: benchAddr(i)})
		}
		check(b, s.DeleteBatch(ctx, items))
	}
	check(b, s.Close())
}

// benchmarkCopy reads a file that is in the page cache, as the store's are, and writes and syncs another.
func benchmarkCopy(b *testing.B, size int64) {
	dir := b.TempDir()
	from := filepath.Join(dir, "from")
	check(b, os.WriteFile(from, dataOf(1, int(size)), 0o600))
	src, err := os.Open(from)
	check(b, err)
	defer src.Close()
	check(b, src.Sync())
	buf := make([]byte, copySync)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		dst, err := os.Create(filepath.Join(dir, "to"))
		check(b, err)
		check(b, copyBy(dst, src, size, buf))
		check(b, dst.Close())
	}
}

// copyBy copies the first size bytes of src by as much as buf holds, each with a sync.
func copyBy(dst, src *os.File, size int64, buf []byte) error {
	for off := int64(0); off < size; off += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), size-off)]
		if _, err := io.ReadFull(io.NewSectionReader(src, off, size-off), part); err != nil {
			return err
		}
		if err := appendRaw(dst, part); err != nil {
			return err
		}
	}
	return nil
}
