package tsz

import (
	"math"
	"testing"
)

// TestRegressions are series that codecs of this family have lost, by the reports. Reports that are not of a series have
// tests of their own: B05 TestBuckets, B09 and B12 TestSnapshotStays, B10 and B11 TestSnapshotRace, B15
// TestExactLength, B25 TestWindowTooWide, B27 and B43 TestContradiction and TestHostilePacked, B41 TestLarge, B42
// TestSeekTo.
func TestRegressions(t *testing.T) {
	every := func(step int64, vs ...float64) series {
		s := series{unit: Seconds32, t0: 1_600_000_000}
		for i, v := range vs {
			s.ts, s.vs = append(s.ts, s.t0+int64(i+1)*step), append(s.vs, v)
		}
		return s
	}
	list := func(n int, f func(i int) float64) (vs []float64) {
		for i := range n {
			vs = append(vs, f(i))
		}
		return vs
	}
	run := func(n int) []float64 { return list(n+1, func(i int) float64 { return float64(i / n) }) }
	jumps := series{unit: Milliseconds, ts: []int64{0, 1, 2, 50, 51, 500, 501}, vs: make([]float64, 7)}
	for at := int64(3000); at <= 1_000_001; at += 997_001 / 7 {
		jumps.ts, jumps.vs = append(jumps.ts, at), append(jumps.vs, float64(at))
	}
	for name, s := range map[string]series{
		"B01 go-tsz 4: 32 leading zeros and more":     every(60, 6.00065e6, 6.000656e6, 6.000657e6, 6.000659e6, 6.000661e6),
		"B02 go-tsz 918e888: 64 bits":                 every(60, 0, math.Float64frombits(1<<63|1), math.Float64frombits(3)),
		"B03 keisku 1: counter":                       every(60, list(300, func(i int) float64 { return float64(27550378 + i) })...),
		"B03 keisku 1: one ulp":                       every(60, 1, math.Nextafter(1, 2), 1),
		"B06 prometheus 4998b975: window and repeats": every(60, 1.5, 1.7, 1.7, 1.9, 1.9, 1.7, 1.5),
		"B17 RedisTimeSeries 358: 64 bits":            every(60, math.Float64frombits(math.MaxUint64), 0, math.Float64frombits(math.MaxUint64)),
		"B18 RedisTimeSeries 279: wide jumps":         jumps,
		"B23 influxdb 91d0a8c3: constant":             every(10, list(1000, func(int) float64 { return 12.5 })...),
		"B24 ClickHouse 6398: nothing":                every(10),
		"B24 ClickHouse 6398: one":                    every(10, 7),
		"B24 ClickHouse 6398: two":                    every(10, 7, 8),
		"B28 timescaledb 6681: rising decimals":       every(10, list(1000, func(i int) float64 { return 0.4 + float64(i)/10000 })...),
		"B29 influxdb 3539: NaN goes on":              every(10, 1, math.NaN(), 2, math.NaN(), math.NaN(), 3),
		"B30 keisku: first gap 16383":                 {unit: Seconds32, t0: 0, ts: []int64{16383, 16384}, vs: []float64{1, 2}},
		"B31 keisku c4908fe: first before t0":         {unit: Seconds32, t0: 5000, ts: []int64{4000, 5000}, vs: []float64{1, 2}},
		"B32 influxdb 10465: run of 119":              every(10, run(119)...),
		"B32 influxdb 10465: run of 120":              every(10, run(120)...),
		"B32 influxdb 10465: run of 239":              every(10, run(239)...),
		"B32 influxdb 10465: run of 240":              every(10, run(240)...),
		"B33 influxdb 7391: negative step":            every(10, list(500, func(i int) float64 { return float64(-3 * i) })...),
		"B35 m3 3872":                                 every(10, 187.80131100000006, 187.801311, 187.8013),
		"B37 VictoriaMetrics 752: Inf":                every(10, 1.25, math.Inf(1), 2.25, math.Inf(-1), 2.96e-314, 3.25),
		"B38 duckdb 10335: negative zero":             every(10, 0, math.Copysign(0, -1), 0, 1, math.Copysign(0, -1)),
		"B44 tsz-rs 9: jump":                          {unit: Seconds32, ts: []int64{1, 5000, 5001, 4e9}, vs: []float64{1, 1, 1, 1}},
	} {
		s.name = name
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		var d Decoder
		d.ResetStream(s.unit, s.t0, e.Finish())
		wantPoints(t, &d, s)
		if len(s.ts) > 0 {
			d.Reset(mustSeal(t, s))
			wantPoints(t, &d, s)
		}
	}
}

// TestBuckets is B05: every edge of every bucket, in both layouts, against the model.
func TestBuckets(t *testing.T) {
	edges := []int64{0, 1, -1, 63, 64, 65, 255, 256, 257, 2047, 2048, 2049, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1 << 32, 1 << 40, math.MaxInt64 / 4}
	for _, unit := range []Unit{Seconds32, Nanoseconds} {
		for _, edge := range edges {
			for _, dod := range []int64{edge, -edge} {
				delta := int64(1 << 31)
				if unit == Nanoseconds {
					delta = 1 << 62
				}
				s := series{name: "edges", unit: unit, ts: []int64{0, delta, 2*delta + dod}, vs: []float64{1, 2, 3}}
				if last := s.ts[2]; last <= delta || unit == Seconds32 && last > math.MaxUint32 {
					continue
				}
				e := encoderOf(t, unit, 0, s.ts, s.vs)
				if got, want := e.Finish(), modelStream(unit.layout(), 0, s.ts, s.vs); string(got) != string(want) {
					t.Errorf("difference %d: %x, want %x", dod, got, want)
				}
				var d Decoder
				d.ResetStream(unit, 0, e.Finish())
				wantPoints(t, &d, s)
			}
		}
	}
}

// TestWindowTooWide is B25: leading zeros and width that make more than 64 bits.
func TestWindowTooWide(t *testing.T) {
	for _, test := range []struct {
		name, text string
		ok         bool
	}{
		{"31 and 33", "0" + "11" + "11111" + "100001" + bitsOf(33), true},
		{"31 and 34", "0" + "11" + "11111" + "100010" + bitsOf(34), false},
		{"0 and 64", "0" + "11" + "00000" + "000000" + bitsOf(64), true},
		{"1 and 64", "0" + "11" + "00001" + "000000" + bitsOf(64), false},
		{"window that was never declared", "0" + "10" + bitsOf(10), false},
	} {
		for _, more := range []int{0, 200} { // near the end and far from it
			text := "0" + bitsOf(64) + test.text
			for range more {
				text += "00"
			}
			var d Decoder
			d.ResetStream(Seconds32, 0, packText(text+"11111"))
			n, _, err := d.scan(0)
			if want := uint64(2 + more); test.ok && (err != nil || n != want) || !test.ok && (err != ErrCorrupt || n != 1) { //nolint:errorlint // the very one
				t.Errorf("%s: %d points, %v", test.name, n, err)
			}
		}
	}
}

// bitsOf is a field of n bits, all set.
func bitsOf(n int) (text string) {
	for range n {
		text += "1"
	}
	return text
}
