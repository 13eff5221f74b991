package tsz

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// contest runs the contestants in turn, many times for a moment each, and returns what each took at its best in
// ns per point. So a machine that is busy with other things, or drifts, hits all of them alike and the best hardly.
func contest(b *testing.B, points int, contestants ...func()) []float64 {
	const moment = 20 * time.Microsecond
	rounds := max(300_000/max(points, 1000), 10)
	best := make([]float64, len(contestants))
	for i := range best {
		best[i] = math.Inf(1)
	}
	for range rounds * b.N {
		for i, run := range contestants {
			n, start := 0, time.Now()
			for ; n&7 != 0 || time.Since(start) < moment; n++ {
				run()
			}
			best[i] = min(best[i], float64(time.Since(start).Nanoseconds())/float64(n*points))
		}
	}
	return best
}

func reportContest(b *testing.B, names []string, best []float64) {
	for i, name := range names {
		b.ReportMetric(best[i], name+"-ns/point")
	}
	b.ReportMetric(best[0]/best[1], "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkContestPush holds the word writer against the others, and reports the ratio to the byte-aligned one.
func BenchmarkContestPush(b *testing.B) {
	e := NewEncoder(Seconds32, 0, nil)
	for _, n := range grid {
		for _, g := range generators {
			b.Run(fmt.Sprintf("points=%d/series=%s", n, g.name), func(b *testing.B) {
				ts, vs := g.points(n)
				reportContest(b, []string{"word", "bytealigned", "bitwise"}, contest(b, n,
					func() { pushWords(e, ts, vs) },
					func() { pushBits(ts, vs, true) },
					func() { pushBits(ts, vs, false) },
				))
			})
		}
	}
}

// BenchmarkContestRead holds the readers of a stream against one that takes a bit at a time, and of a packed block
// against those of a stream in an envelope.
func BenchmarkContestRead(b *testing.B) {
	var d Decoder
	for _, n := range []int{120, 240} {
		for _, g := range generators {
			ts, vs := g.points(n)
			e := encoderOf(b, Seconds32, 0, ts, vs)
			stream, enclosed := e.Finish(), e.Snapshot().AppendBlock(nil)
			block, err := Seal(nil, Seconds32, ts, vs)
			if err != nil {
				b.Fatal(err)
			}
			bitwise := func() { drainBits(stream) }
			next := func() { d.ResetStream(Seconds32, 0, stream); drain(&d) }
			all := func() { d.ResetStream(Seconds32, 0, stream); d.DecodeAll(ts, vs) }
			name := fmt.Sprintf("/points=%d/series=%s", n, g.name)
			b.Run("call=Next"+name, func(b *testing.B) {
				reportContest(b, []string{"stream", "bitwise"}, contest(b, n, next, bitwise))
			})
			b.Run("call=DecodeAll"+name, func(b *testing.B) {
				reportContest(b, []string{"stream", "bitwise"}, contest(b, n, all, bitwise))
			})
			b.Run("codec=packed"+name, func(b *testing.B) {
				reportContest(b, []string{"packed", "enclosed"}, contest(b, n,
					func() { d.Reset(block); d.DecodeAll(ts, vs) },
					func() { d.Reset(enclosed); d.DecodeAll(ts, vs) }))
			})
		}
	}
}

// BenchmarkContestLong writes and reads 100,000 points that never recur, so that no branch can be learned by heart.
func BenchmarkContestLong(b *testing.B) {
	const n = 100_000
	r := rand.New(rand.NewPCG(94, 7))
	ts, vs := make([]int64, n), make([]float64, n)
	for i := range ts {
		ts[i], vs[i] = int64(i), math.Round(10*(94.7+0.77*r.NormFloat64()))/10
		if r.IntN(10) == 0 {
			vs[i] = math.Round(10*(72+15*r.Float64())) / 10
		}
	}
	e := encoderOf(b, Seconds32, 0, ts, vs)
	stream := append([]byte(nil), e.Finish()...)
	var d Decoder
	b.Run("call=Push", func(b *testing.B) {
		reportContest(b, []string{"word", "bytealigned"}, contest(b, n,
			func() { pushWords(e, ts, vs) }, func() { pushBits(ts, vs, true) }))
	})
	b.Run("call=Next", func(b *testing.B) {
		reportContest(b, []string{"stream", "bitwise"}, contest(b, n,
			func() { d.ResetStream(Seconds32, 0, stream); drain(&d) }, func() { drainBits(stream) }))
	})
	sealed := mustSeal(b, series{unit: Seconds32, ts: ts, vs: vs})
	b.Run("call=DecodeAll", func(b *testing.B) {
		reportContest(b, []string{"packed", "stream"}, contest(b, n,
			func() { d.Reset(sealed); d.DecodeAll(ts, vs) },
			func() { d.ResetStream(Seconds32, 0, stream); d.DecodeAll(ts, vs) }))
	})
}
