package tsz

import (
	"math"
	"math/rand/v2"
	"testing"
)

// decimalBits is what the values of 240 points take, as bits per value, in the better decimal codec of the layout's
// description, its header of 13 bytes included.
var decimalBits = map[string]float64{
	"MonotonicIncrease": 8.7, "MonotonicIncreaseWithResets": 16.4, "Sawtooth": 19.8, "SawtoothWithFlats": 19.8,
	"Steps": 19.8, "RealWorldCPU": 8.4,
}

// windowBits is what the best windows take for the values of 240 points, as bits per value. That of RealWorldCPU is for
// a table of our own.
var windowBits = map[string]float64{
	"MonotonicIncrease": 8.1, "MonotonicIncreaseWithResets": 23.7, "Sawtooth": 65.9, "SawtoothWithFlats": 65.6,
	"Steps": 43.9, "RealWorldCPU": 44.7,
}

func TestSealedSizes(t *testing.T) {
	for _, g := range generators {
		ts, vs := g.points(240)
		b := mustSeal(t, series{name: g.name, ts: ts, vs: vs})
		h, err := ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		payload := len(b) - h.size()
		if most := int(decimalBits[g.name]*240/8) + 16; payload > most {
			t.Errorf("%s: %d bytes, at most %d", g.name, payload, most)
		}
		var s sealer
		s.windows.add(vs)
		s.windows.plan()
		if got := float64(64+s.windows.cost[0]) / 240; math.Abs(got-windowBits[g.name]) > 0.05 {
			t.Errorf("%s: %.3f bits with the best windows, want %v", g.name, got, windowBits[g.name])
		}
	}
}

// TestSealedSmall: a packed block is never larger than a stream with the best windows, and that never larger than
// an encoder's.
func TestSealedSmall(t *testing.T) {
	var s sealer
	for _, c := range corpus() {
		c = c.cut(MaxBlock)
		if len(c.ts) == 0 {
			continue
		}
		b := mustSeal(t, c)
		h, err := ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		s.windows.add(c.vs)
		s.windows.plan()
		planned, err := s.stream(c.unit, c.ts, c.vs)
		if err != nil {
			t.Fatal(err)
		}
		greedy := encoderOf(t, c.unit, streamStart(c.unit, c.ts[0]), c.ts, c.vs).Finish()
		if len(planned) > len(greedy) {
			t.Errorf("%s: %d bytes with planned windows, %d without", c.name, len(planned), len(greedy))
		}
		if bits := headBits(c.unit, c.ts, c.vs) + s.windows.cost[0]; bytesOf(bits) != len(planned) {
			t.Errorf("%s: planned are %d bits, written %d bytes", c.name, bits, len(planned))
		}
		if bound := headBits(c.unit, c.ts, c.vs) + s.windows.bound(); bytesOf(bound) > len(planned) {
			t.Errorf("%s: %d bits should be a bound, written are %d bytes", c.name, bound, len(planned))
		}
		if payload := len(b) - h.size(); payload > len(planned) {
			t.Errorf("%s: sealed to %d bytes, a stream takes %d", c.name, payload, len(planned))
		}
		var d Decoder
		d.ResetStream(c.unit, streamStart(c.unit, c.ts[0]), planned)
		wantPoints(t, &d, c)
	}
}

// TestWindowPlan compares the plan with every possible cut.
func TestWindowPlan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var w windows
	for range 300 {
		vs := make([]float64, 1+r.IntN(10))
		for i := range vs {
			vs[i] = math.Float64frombits(r.Uint64() >> r.IntN(64) << r.IntN(64))
		}
		w.add(vs)
		w.plan()
		best := math.MaxInt
		for cuts := range 1 << max(w.n-1, 0) {
			total, from, run := 0, 0, window{64, 64}
			for i := range w.n {
				run = run.with(windowOf(w.xs[i]))
				if i == w.n-1 || cuts>>i&1 == 1 {
					total += declaration + (i+1-from)*run.bits()
					from, run = i+1, window{64, 64}
				}
			}
			best = min(best, total)
		}
		if w.cost[0] != best {
			t.Fatalf("%x: planned %d bits, the best cut has %d", vs, w.cost[0], best)
		}
	}
}

// TestSealedKinds: the corpus meets every way to hold times and values.
func TestSealedKinds(t *testing.T) {
	seen := make(map[[2]byte]bool)
	exceptions := false
	for _, s := range corpus() {
		for b := mustSeal(t, s); len(b) > 0; {
			h, err := ParseHeader(b)
			if err != nil {
				t.Fatal(err)
			}
			if h.codec == codecStream {
				seen[[2]byte{'s', 0}] = true
			} else {
				modes := b[h.size()]
				seen[[2]byte{'t', modes & 15}], seen[[2]byte{'v', modes >> 4}] = true, true
				var p packed
				if err := p.read(b[:h.Size], &h); err != nil {
					t.Fatal(err)
				}
				exceptions = exceptions || len(p.exceptions) > 0
				seen[[2]byte{'q', min(p.scale.code/quotientCode, 1)}] = true
			}
			b = b[h.Size:]
		}
	}
	for _, kind := range [][2]byte{
		{'s', 0}, {'q', 0}, {'q', 1}, {'t', timesSteady}, {'t', timesPacked}, {'t', timesRaw},
		{'v', valuesConstant}, {'v', valuesFrame}, {'v', valuesDelta},
	} {
		if !seen[kind] {
			t.Errorf("no block of kind %c %d", kind[0], kind[1])
		}
	}
	if !exceptions {
		t.Error("no block with exceptions")
	}
}

// TestEstimate: decimals are found whatever their period and whichever values fit a worse decimal by chance.
func TestEstimate(t *testing.T) {
	var v values
	for digits := range 7 {
		for period := 2; period < 120; period++ {
			vs := make([]float64, 240)
			for i := range vs {
				vs[i] = float64(9_400_000+i%period*17) / powers[digits]
			}
			if v.choose(vs); v.exceptions > 0 || v.size > bytesOf(240*11)+20 {
				t.Errorf("%d digits, period %d: %d exceptions, %d bytes", digits, period, v.exceptions, v.size)
			}
		}
	}
}

// TestVerified: Seal would notice any bit that does not come back.
func TestVerified(t *testing.T) {
	s := corpus()[3]
	b := mustSeal(t, s)
	if !holds(b, s.ts, s.vs) {
		t.Fatal("the block does not hold its own points")
	}
	for i := range s.ts {
		vs := append([]float64(nil), s.vs...)
		vs[i] = math.Nextafter(vs[i], 0)
		ts := append([]int64(nil), s.ts...)
		ts[i]++
		if holds(b, s.ts, vs) || holds(b, ts, s.vs) {
			t.Fatalf("another point %d is not noticed", i)
		}
	}
	if holds(b, s.ts[:len(s.ts)-1], s.vs) {
		t.Error("a point too much is not noticed")
	}
	if holds(flipped(b), s.ts, s.vs) {
		t.Error("damage is not noticed")
	}
}

func TestSealRefused(t *testing.T) {
	before := []byte("what was there")
	for _, test := range []struct {
		unit Unit
		ts   []int64
		want error
	}{
		{Seconds32, []int64{-1}, ErrRange},
		{Seconds32, []int64{1, 1 << 32}, ErrRange},
		{Seconds, []int64{1, 2, 2}, ErrDuplicate},
		{Seconds, []int64{1, 2, 1}, ErrOutOfOrder},
	} {
		got, err := Seal(before, test.unit, test.ts, make([]float64, len(test.ts)))
		wantErr(t, err, test.want)
		if string(got) != string(before) {
			t.Errorf("%v: dst is %q", test.ts, got)
		}
	}
}

func TestStats(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		vs            []float64
		min, max, sum float64
	}{
		{[]float64{1, -2, 4}, -2, 4, 3},
		{[]float64{nan, 3, nan}, 3, 3, 3},
		{[]float64{nan, nan}, math.Inf(1), math.Inf(-1), 0},
		{[]float64{math.Inf(1), 1}, 1, math.Inf(1), math.Inf(1)},
		{[]float64{0.1, 0.2, 0.3}, 0.1, 0.3, 0.1 + 0.2 + 0.3},
	} {
		ts := []int64{1, 2, 3}[:len(test.vs)]
		h, err := ParseHeader(mustSeal(t, series{unit: Seconds, ts: ts, vs: test.vs}))
		if err != nil || !h.HasStats || h.Min != test.min || h.Max != test.max || !near(h.Sum, test.sum) {
			t.Errorf("%v: %+v, %v", test.vs, h, err)
		}
		if h.Count != uint32(len(ts)) || h.First != 1 || h.Last != int64(len(ts)) || h.Unit != Seconds {
			t.Errorf("%v: %+v", test.vs, h)
		}
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-15 }

// TestExceptionsSmall: a value that is no number costs an exception, and spoils nothing beside it.
func TestExceptionsSmall(t *testing.T) {
	for _, odd := range specials {
		if math.Abs(odd) < 1e16 && math.Abs(odd) > 1e-16 || odd == 0 && !math.Signbit(odd) {
			continue // numbers like others
		}
		var v values
		vs := make([]float64, 240)
		for i := range vs {
			if vs[i] = float64(1_000_000 + 100*i); i%60 == 30 {
				vs[i] = odd
			}
		}
		v.choose(vs)
		frame := bytesOf(240*8) + 20 // of integers, in hundreds
		if most := frame + 4*exceptionSize; v.size > most {
			t.Errorf("four times %v among 240 values: %d bytes, at most %d", odd, v.size, most)
		}
	}
}

// TestHostilePacked is B27 and B43 of the reports: payloads that no Seal makes, with all checksums right.
func TestHostilePacked(t *testing.T) {
	h := Header{Unit: Seconds, Count: 4, First: 0, Last: 30, codec: codecPacked}
	frame := func(rest ...byte) []byte { return append([]byte{valuesFrame << 4}, rest...) }
	for _, test := range []struct {
		name    string
		payload []byte
		ok      bool
	}{
		{"frame of 4 bits", frame(productCode, 4, 0, 0, 0x12, 0x34), true},
		{"frame of no bits", frame(productCode, 0, 4, 0), true},
		{"frame too short", frame(productCode, 4, 0, 0, 0x12), false},
		{"frame too long", frame(productCode, 4, 0, 0, 0x12, 0x34, 0), false},
		{"bits behind the last", frame(productCode, 3, 0, 0, 0x12, 0x31), false},
		{"too wide", append(frame(productCode, 57, 0, 0), make([]byte, 29)...), false},
		{"as wide as can be", append(frame(productCode, 56, 0, 0), make([]byte, 28)...), true},
		{"no such product", frame(productCode+maxExponent+1, 0, 0, 0), false},
		{"no such quotient", frame(quotientCode, 0, 0, 0), false},
		{"base without end", frame(productCode, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), false},
		{"exceptions missing", frame(productCode, 0, 0, 1), false},
		{"more exceptions than points", append(frame(productCode, 0, 0, 5), make([]byte, 50)...), false},
		{"exception", append(frame(productCode, 0, 0, 1), 0, 3, 1, 2, 3, 4, 5, 6, 7, 8), true},
		{"exception outside", append(frame(productCode, 0, 0, 1), 0, 4, 1, 2, 3, 4, 5, 6, 7, 8), false},
		{"exception twice", append(frame(productCode, 0, 0, 2), 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8), false},
		{"huge count of exceptions", frame(productCode, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f), false},
		{"delta", []byte{valuesDelta << 4, productCode, 8, 2, 0, 0, 1, 2, 3}, true},
		{"constant", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, true},
		{"constant too short", []byte{0, 1, 2, 3, 4, 5, 6, 7}, false},
		{"no such times", []byte{3, 1, 2, 3, 4, 5, 6, 7, 8}, false},
		{"no such values", []byte{3 << 4, 1, 2, 3, 4, 5, 6, 7, 8}, false},
		{"packed times", []byte{timesPacked, 0, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8}, true},
		{"packed times to elsewhere", []byte{timesPacked, 0, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8}, false},
		{"packed times too wide", []byte{timesPacked, 57, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8}, false},
		{"raw times too short", []byte{timesRaw, 1, 2, 3, 4, 5, 6, 7, 8}, false},
		{"nothing", nil, false},
	} {
		b := append(h.room(nil), test.payload...)
		h.put(b)
		var d Decoder
		d.Reset(b)
		if _, _, err := d.scan(0); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
		readAny(t, b, Seconds)
	}
	h.Last = 31
	b := append(h.room(nil), 0, 1, 2, 3, 4, 5, 6, 7, 8)
	h.put(b)
	var d Decoder
	d.Reset(b)
	if n, _, err := d.scan(0); err == nil || n > 0 {
		t.Errorf("of steady times that do not divide %d are read, %v", n, err)
	}
}
