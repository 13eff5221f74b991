package tszbench

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/granary-store/granary/tsz"
)

// contestant writes and reads a series.
type contestant struct {
	name   string
	append func(ts []int64, vs []float64) []byte
	next   func(b []byte) uint64 // the points, mixed: takes less time than a sum does
	all    func(b []byte, ts []int64, vs []float64) int
}

// contestants returns ours first.
func contestants() []contestant {
	return []contestant{stream(), chunks("XOR", chunkenc.NewXORChunk(), 2), chunks("XOR2", chunkenc.NewXOR2Chunk(), 3)}
}

// stream is a stream of milliseconds: int64, as theirs are.
func stream() contestant {
	e := tsz.NewEncoder(tsz.Milliseconds, 0, nil)
	var d tsz.Decoder
	return contestant{
		name: "tsz",
		append: func(ts []int64, vs []float64) []byte {
			e.Reset(0)
			for i, t := range ts {
				if err := e.Append(t, vs[i]); err != nil {
					panic(err)
				}
			}
			return e.Finish()
		},
		next: func(b []byte) (mix uint64) {
			d.ResetStream(tsz.Milliseconds, 0, b)
			for d.Next() {
				t, v := d.At()
				mix ^= uint64(t) ^ math.Float64bits(v)
			}
			return mix
		},
		all: func(b []byte, ts []int64, vs []float64) int {
			d.ResetStream(tsz.Milliseconds, 0, b)
			n, err := d.DecodeAll(ts, vs)
			if err != nil {
				panic(err)
			}
			return n
		},
	}
}

// chunks is a chunk of Prometheus that reuses its memory and its iterator; new ones take longer. It has no call for
// all points, so those come one by one.
func chunks(name string, c chunkenc.Chunk, header int) contestant {
	reader, err := chunkenc.NewEmptyChunk(c.Encoding())
	if err != nil {
		panic(err)
	}
	var buf []byte
	var it chunkenc.Iterator
	return contestant{
		name: name,
		append: func(ts []int64, vs []float64) []byte {
			c.Reset(append(buf[:0], make([]byte, header)...))
			app, err := c.Appender()
			if err != nil {
				panic(err)
			}
			for i, t := range ts {
				app.Append(0, t, vs[i])
			}
			buf = c.Bytes()
			return buf
		},
		next: func(b []byte) (mix uint64) {
			reader.Reset(b)
			it = reader.Iterator(it)
			for it.Next() != chunkenc.ValNone {
				t, v := it.At()
				mix ^= uint64(t) ^ math.Float64bits(v)
			}
			return mix
		},
		all: func(b []byte, ts []int64, vs []float64) (n int) {
			reader.Reset(b)
			it = reader.Iterator(it)
			for ; it.Next() != chunkenc.ValNone; n++ {
				ts[n], vs[n] = it.At()
			}
			return n
		},
	}
}

// contest runs the contestants in turn, many times for a moment each, and reports what each took at its best, and
// the ratio of the first to the fastest of the others.
func contest(b *testing.B, points int, run func(contestant)) {
	const rounds, moment = 300, 20 * time.Microsecond
	all := contestants()
	best := make([]float64, len(all))
	for i := range best {
		best[i] = math.Inf(1)
	}
	for range rounds * b.N {
		for i, c := range all {
			n, start := 0, time.Now()
			for ; n&7 != 0 || time.Since(start) < moment; n++ {
				run(c)
			}
			best[i] = min(best[i], float64(time.Since(start).Nanoseconds())/float64(n*points))
		}
	}
	for i, c := range all {
		b.ReportMetric(best[i], c.name+"-ns/point")
	}
	b.ReportMetric(best[0]/min(best[1], best[2]), "ratio")
	b.ReportMetric(0, "ns/op")
}

// grid runs a benchmark over all series and sizes, with the series as each contestant stores it.
func grid(b *testing.B, bench func(b *testing.B, ts []int64, vs []float64, stored map[string][]byte)) {
	for _, n := range []int{120, 240} {
		for _, g := range generators {
			b.Run(fmt.Sprintf("points=%d/series=%s", n, g.name), func(b *testing.B) {
				ts, vs := g.points(n)
				stored := make(map[string][]byte)
				for _, c := range contestants() {
					stored[c.name] = append([]byte(nil), c.append(ts, vs)...)
				}
				bench(b, ts, vs, stored)
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	grid(b, func(b *testing.B, ts []int64, vs []float64, stored map[string][]byte) {
		contest(b, len(ts), func(c contestant) { c.append(ts, vs) })
		for name, s := range stored {
			b.ReportMetric(float64(len(s))*8/float64(len(ts)), name+"-bits/point")
		}
	})
}

func BenchmarkNext(b *testing.B) {
	grid(b, func(b *testing.B, ts []int64, _ []float64, stored map[string][]byte) {
		contest(b, len(ts), func(c contestant) { c.next(stored[c.name]) })
	})
}

func BenchmarkDecodeAll(b *testing.B) {
	grid(b, func(b *testing.B, ts []int64, vs []float64, stored map[string][]byte) {
		contest(b, len(ts), func(c contestant) { c.all(stored[c.name], ts, vs) })
	})
}

// TestSame proves that the contestants store the same points.
func TestSame(t *testing.T) {
	for _, g := range generators {
		ts, vs := g.points(240)
		for _, c := range contestants() {
			stored := append([]byte(nil), c.append(ts, vs)...)
			gotT, gotV := make([]int64, 240), make([]float64, 240)
			if n := c.all(stored, gotT, gotV); n != 240 {
				t.Errorf("%s/%s: %d points", g.name, c.name, n)
			}
			mix := uint64(0)
			for i := range vs {
				mix ^= uint64(ts[i]) ^ math.Float64bits(vs[i])
				if gotT[i] != ts[i] || gotV[i] != vs[i] {
					t.Fatalf("%s/%s: point %d is %d, %v", g.name, c.name, i, gotT[i], gotV[i])
				}
			}
			if got := c.next(stored); got != mix {
				t.Errorf("%s/%s: mixed to %x, want %x", g.name, c.name, got, mix)
			}
		}
	}
}
