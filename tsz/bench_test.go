package tsz

import (
	"fmt"
	"math"
	"testing"
)

// grid is the numbers of points that the benchmarks of this lineage have always had.
var grid = []int{1, 10, 30, 60, 120, 180, 240}

// BenchmarkPush makes a whole series: creation, n points, the end. Times are ns/op for all n.
func BenchmarkPush(b *testing.B) {
	e := NewEncoder(Seconds32, 0, nil)
	writers := []struct {
		name string
		push func(ts []int64, vs []float64) int
	}{
		{"word", func(ts []int64, vs []float64) int { return pushWords(e, ts, vs) }},
		{"bytealigned", func(ts []int64, vs []float64) int { return pushBits(ts, vs, true) }},
		{"bitwise", func(ts []int64, vs []float64) int { return pushBits(ts, vs, false) }},
	}
	for _, w := range writers {
		for _, g := range generators {
			for _, n := range grid {
				b.Run(fmt.Sprintf("writer=%s/series=%s/points=%d", w.name, g.name, n), func(b *testing.B) {
					ts, vs := g.points(n)
					b.ReportAllocs()
					for b.Loop() {
						if w.push(ts, vs) == 0 {
							b.Fatal("refused")
						}
					}
				})
			}
		}
	}
}

func pushWords(e *Encoder, ts []int64, vs []float64) int {
	e.Reset(0)
	for i, t := range ts {
		if e.Append(t, vs[i]) != nil {
			return 0
		}
	}
	return len(e.Finish())
}

func pushBits(ts []int64, vs []float64, aligned bool) int {
	s := newBitSeries(0, aligned)
	for i, t := range ts {
		s.push(uint32(t), vs[i])
	}
	return len(s.finish())
}

// BenchmarkNext reads a series of 240 points one by one.
func BenchmarkNext(b *testing.B) {
	for _, g := range generators {
		ts, vs := g.points(240)
		stream := encoderOf(b, Seconds32, 0, ts, vs).Finish()
		block, err := Seal(nil, Seconds32, ts, vs)
		if err != nil {
			b.Fatal(err)
		}
		var d Decoder
		b.Run("reader=stream/series="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d.ResetStream(Seconds32, 0, stream)
				if n := drain(&d); n != len(ts) {
					b.Fatal(n, d.Err())
				}
			}
		})
		b.Run("reader=packed/series="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d.Reset(block)
				if n := drain(&d); n != len(ts) {
					b.Fatal(n, d.Err())
				}
			}
		})
		b.Run("reader=bitwise/series="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := drainBits(stream); n != len(ts) {
					b.Fatal(n)
				}
			}
		})
	}
}

var sink uint64

// drain reads all points and mixes them, in a way that takes less time than a sum does.
func drain(d *Decoder) (n int) {
	mix := uint64(0)
	for d.Next() {
		t, v := d.At()
		mix ^= uint64(t) ^ math.Float64bits(v)
		n++
	}
	sink = mix
	return n
}

func drainBits(stream []byte) (n int) {
	mix := uint64(0)
	for it := newBitIterator(0, stream); it.next(); n++ {
		t, v := it.at()
		mix ^= uint64(t) ^ math.Float64bits(v)
	}
	sink = mix
	return n
}

// BenchmarkDecodeAll reads a series of 240 points at once; the bitwise reader knows only one by one.
func BenchmarkDecodeAll(b *testing.B) {
	for _, g := range generators {
		ts, vs := g.points(240)
		e := encoderOf(b, Seconds32, 0, ts, vs)
		stream, enclosed := e.Finish(), e.Snapshot().AppendBlock(nil)
		block, err := Seal(nil, Seconds32, ts, vs)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range []struct {
			name  string
			reset func(d *Decoder)
		}{
			{"stream", func(d *Decoder) { d.ResetStream(Seconds32, 0, stream) }},
			{"enclosed", func(d *Decoder) { d.Reset(enclosed) }},
			{"packed", func(d *Decoder) { d.Reset(block) }},
		} {
			b.Run("reader="+r.name+"/series="+g.name, func(b *testing.B) {
				var d Decoder
				intoT, intoV := make([]int64, len(ts)), make([]float64, len(ts))
				b.ReportAllocs()
				for b.Loop() {
					r.reset(&d)
					if n, err := d.DecodeAll(intoT, intoV); n != len(ts) {
						b.Fatal(n, err)
					}
				}
			})
		}
		b.Run("reader=bitwise/series="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := drainBits(stream); n != len(ts) {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkSeal seals a block of 240 points, which includes that it is read back.
func BenchmarkSeal(b *testing.B) {
	for _, g := range generators {
		b.Run("series="+g.name, func(b *testing.B) {
			ts, vs := g.points(240)
			var block []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if block, err = Seal(block[:0], Seconds32, ts, vs); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(block))*8/240, "bits/point")
		})
	}
}
