package tsz

import (
	"math"
	"math/rand/v2"
	"testing"
)

// series are points to try things on.
type series struct {
	name string
	unit Unit
	t0   int64
	ts   []int64
	vs   []float64
}

// specials are values that codecs have lost.
var specials = []float64{
	0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(),
	math.Float64frombits(0x7ff0000000000002), math.Float64frombits(0x7ff0000000000001), // stale, signalling
	math.Float64frombits(0xfff8dead_beef0001), math.Float64frombits(math.MaxUint64),
	math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, math.Float64frombits(1<<52 - 1), 2.96e-314,
	math.MaxFloat64, -math.MaxFloat64, math.MaxInt64, math.MinInt64, 1 << 53, 1<<53 + 2, -(1 << 53),
	187.80131100000006, 0.1, 0.3, 1e22, 1e23, 1e-22, 1e-23, math.Pi,
}

// corpus returns series of every kind, the same each time.
func corpus() []series {
	r := rand.New(rand.NewPCG(6, 28))
	var all []series
	add := func(name string, unit Unit, n int, next func(i int, t int64) int64, value func(i int) float64) {
		s := series{name: name, unit: unit, t0: 1_700_000_000}
		for i, t := 0, s.t0; i < n; i++ {
			t = next(i, t)
			s.ts, s.vs = append(s.ts, t), append(s.vs, value(i))
		}
		all = append(all, s)
	}
	minute := func(_ int, t int64) int64 { return t + 60 }
	for _, g := range generators {
		add(g.name, Seconds32, 240, minute, g.value)
	}
	jitter := func(_ int, t int64) int64 { return t + 15_000 + r.Int64N(100) - 50 }
	add("jitter", Milliseconds, 300, jitter, func(int) float64 { return float64(r.IntN(1000)) / 10 })
	add("sparse", Seconds32, 200, func(int, int64) int64 { return 0 }, func(i int) float64 { return float64(i) })
	gaps := &all[len(all)-1]
	for i, t := 0, int64(1_600_000_000); i < len(gaps.ts); i++ {
		t += 1 + r.Int64N(30*86400)>>r.IntN(22)
		gaps.ts[i] = t
	}
	add("nanoseconds", Nanoseconds, 200, func(_ int, t int64) int64 { return t + 1e9 + r.Int64N(2e6) }, func(int) float64 { return r.NormFloat64() })
	add("escapes", Seconds, 100, func(i int, t int64) int64 { return t + 1<<(i%50) }, func(i int) float64 { return float64(i / 7) })
	add("wild times", Nanoseconds, 60, func(i int, t int64) int64 { return t + 1 + int64(i%2)<<57 + r.Int64N(9) }, func(i int) float64 { return float64(i) })
	add("constant", Seconds, 500, minute, func(int) float64 { return math.Pi })
	add("integers", Seconds, 1024, minute, func(i int) float64 { return float64(1_000_000 * (i % 37)) })
	add("counter", Seconds, 1500, minute, func(i int) float64 { return float64(i * 1234) })
	add("descending", Seconds, 333, minute, func(i int) float64 { return -2.5 * float64(i) })
	add("specials", Milliseconds, 10*len(specials), jitter, func(int) float64 { return specials[r.IntN(len(specials))] })
	add("decimals with specials", Milliseconds, 400, minute, func(i int) float64 {
		if i%40 == 7 {
			return specials[r.IntN(len(specials))]
		}
		return float64(r.IntN(10000)) / 100
	})
	add("bits", Seconds32, 1030, minute, func(int) float64 { return math.Float64frombits(r.Uint64()) })
	for _, run := range []int{119, 120, 239, 240} {
		add("run", Seconds32, run+3, minute, func(i int) float64 { return float64(i / run) })
	}
	for n := range 4 {
		add("short", Milliseconds, n, minute, func(i int) float64 { return float64(i) / 10 })
		add("short", Seconds32, n, minute, func(i int) float64 { return float64(i) * math.E })
	}
	edge := series{name: "edges", unit: Nanoseconds, ts: []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}}
	edge.vs = specials[:len(edge.ts)]
	all = append(all, edge)
	two := series{name: "widest", unit: Nanoseconds, ts: []int64{math.MinInt64, math.MaxInt64}, vs: []float64{1, 2}}
	return append(all, two)
}

// cut is the first n points of a series.
func (s series) cut(n int) series {
	n = min(n, len(s.ts))
	s.ts, s.vs = s.ts[:n], s.vs[:n]
	return s
}

// wantPoints reads everything, one by one, and holds it against the series.
func wantPoints(t testing.TB, d *Decoder, s series) {
	t.Helper()
	for i := range s.ts {
		if !d.Next() {
			t.Fatalf("%s: ends before point %d of %d: %v", s.name, i, len(s.ts), d.Err())
		}
		if at, v := d.At(); at != s.ts[i] || !sameBits(v, s.vs[i]) {
			t.Fatalf("%s: point %d is %d %x, want %d %x", s.name, i, at, math.Float64bits(v), s.ts[i], math.Float64bits(s.vs[i]))
		}
	}
	for range 3 {
		if d.Next() || d.Err() != nil {
			t.Fatalf("%s: a point behind the last, or %v", s.name, d.Err())
		}
	}
}

// wantAll reads everything at once.
func wantAll(t testing.TB, d *Decoder, s series) {
	t.Helper()
	ts, vs := make([]int64, len(s.ts)+1), make([]float64, len(s.ts)+1)
	n, err := d.DecodeAll(ts, vs)
	if n != len(s.ts) || err != nil {
		t.Fatalf("%s: %d points, %v, want %d", s.name, n, err, len(s.ts))
	}
	for i := range s.ts {
		if ts[i] != s.ts[i] || !sameBits(vs[i], s.vs[i]) {
			t.Fatalf("%s: point %d is %d %v, want %d %v", s.name, i, ts[i], vs[i], s.ts[i], s.vs[i])
		}
	}
}

func mustSeal(t testing.TB, s series) []byte {
	t.Helper()
	b, err := Seal(nil, s.unit, s.ts, s.vs)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return b
}
