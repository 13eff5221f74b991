package blobstor_test

import (
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// BenchmarkCompress is what compression costs, over the memory storage. Beside granary stands what the cost is
// measured against: for a put the memory storage alone, for a get the library decoding one zstd frame of the whole
// blob, for a range the library decoding one block. A put is followed by a delete, whose time is next to nothing.
//
//	go test -run - -bench '^BenchmarkCompress$' -count 5 ./blobstor
func BenchmarkCompress(b *testing.B) {
	for _, content := range contents[:3] {
		for _, size := range []struct {
			name string
			n    int
		}{{"4KiB", 4 << 10}, {"128KiB", 128 << 10}, {"10MiB", 10 << 20}} {
			if testing.Short() && size.n > 1<<20 {
				size.n = 1 << 20
			}
			data := content.make(size.n, 1)
			for _, op := range []struct {
				name string
				run  func(b *testing.B, data []byte)
			}{{"put", benchCompressPut}, {"get", benchCompressGet}, {"range4KiB", benchCompressRange}} {
				b.Run(fmt.Sprintf("data=%s/size=%s/op=%s", content.name, size.name, op.name), func(b *testing.B) { op.run(b, data) })
			}
		}
	}
}

func benchCompressPut(b *testing.B, data []byte) {
	c, _ := compressed(b, blobstor.CompressOptions{})
	for _, e := range []struct {
		name string
		s    blobstor.Storage
	}{{"granary", c}, {"plain", storagetest.NewMemory(0)}} {
		b.Run("engine="+e.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				mustPut(b, e.s, address(1), data)
				must(b, e.s.Delete(ctx, address(1), ""))
			}
		})
	}
	if st := c.Stats(); st.Bytes > 0 {
		b.Logf("stored/raw %.3f", float64(st.Stored)/float64(st.Bytes))
	}
}

func benchCompressGet(b *testing.B, data []byte) {
	c, _ := compressed(b, blobstor.CompressOptions{})
	mustPut(b, c, address(1), data)
	buf := make([]byte, 0, len(data))
	b.Run("engine=granary", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := c.Get(ctx, address(1), "", buf)
			must(b, err)
		}
	})
	benchDecode(b, "zstd", data)
}

func benchCompressRange(b *testing.B, data []byte) {
	const length = 4 << 10
	c, _ := compressed(b, blobstor.CompressOptions{})
	mustPut(b, c, address(1), data)
	b.Run("engine=granary", func(b *testing.B) {
		b.SetBytes(length)
		b.ReportAllocs()
		p := make([]byte, length)
		for b.Loop() {
			_, _, err := c.ReadRange(ctx, address(1), "", p, int64(len(data)-length)/2)
			must(b, err)
		}
	})
	benchDecode(b, "block", data[:min(len(data), 128<<10)])
}

// benchDecode decodes a zstd frame of the data.
func benchDecode(b *testing.B, engine string, data []byte) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)))
	must(b, err)
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	must(b, err)
	defer dec.Close()
	frame := enc.EncodeAll(data, nil)
	b.Run("engine="+engine, func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		buf := make([]byte, 0, len(data))
		for b.Loop() {
			_, err := dec.DecodeAll(frame, buf)
			must(b, err)
		}
	})
}
