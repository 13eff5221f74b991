package metabase

import (
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
)

// parseBench makes a record of a blob that begins with its length; it reads the head of 128 bytes.
func parseBench(info blobstor.Info, r io.ReaderAt) ([]Record, error) {
	var head [128]byte
	if _, err := r.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	return []Record{{
		Address: info.Address, Size: int64(binary.BigEndian.Uint64(head[:])),
		Attrs: []Attr{{Key: "FileName", Value: fmt.Sprintf("%x", head[8:24])}, {Key: "ContentType", Value: "image/png"}},
	}}, nil
}

// BenchmarkRebuild reports objects/s of blobs of 4 KiB, and bytes/s of large files, of which only the beginning is read.
func BenchmarkRebuild(b *testing.B) {
	small := func(dir string) (blobstor.BlobStor, error) {
		s, err := blobovnicza.Open(dir, &blobovnicza.Options{Create: true, NoSync: true})
		if err != nil {
			return nil, err
		}
		return blobstor.Stream(s), nil
	}
	large := func(dir string) (blobstor.BlobStor, error) {
		return fstree.Open(dir, &fstree.Options{Create: true, NoSync: true})
	}
	for _, c := range []struct {
		name    string
		open    func(dir string) (blobstor.BlobStor, error)
		n, size int
	}{
		{"size=4KiB", small, shortOr(2000, 100_000), 4 << 10},
		{"size=1MiB", large, shortOr(10, 500), 1 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := c.open(filepath.Join(b.TempDir(), "s"))
			must(b, err)
			defer s.Close()
			data := make([]byte, c.size)
			items := make([]blobstor.Item, 0, 1000)
			for i := range c.n {
				binary.BigEndian.PutUint64(data, uint64(c.size))
				binary.BigEndian.PutUint64(data[8:], uint64(i)*0x9e3779b97f4a7c15)
				a := blobstor.Address{Container: id(1 + i%7)}
				copy(a.Object[:], data[8:40])
				a.Object[31] = 1
				items = append(items, blobstor.Item{Address: a, Data: append([]byte(nil), data...)})
				if len(items)*c.size > 4<<20 || i == c.n-1 {
					must(b, blobstor.PutBatch(ctx, s, items))
					items = items[:0]
				}
			}
			b.ReportAllocs()
			b.SetBytes(int64(c.n) * int64(c.size))
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				w := newWorld(b, Options{pending: pendingEntries})
				b.StartTimer()
				_, err := Rebuild(ctx, w.DB, s, parseBench, &RebuildOptions{Bad: func(info blobstor.Info, err error) { b.Error(info, err) }})
				must(b, err)
			}
			b.ReportMetric(float64(b.N*c.n)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}
