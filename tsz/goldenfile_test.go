package tsz

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden blocks of the current format anew")

const goldenDir = "testdata/golden/v1"

// goldenSeries is one series for each way to hold points; the file of each is its block.
func goldenSeries() map[string]series {
	even := func(n int, step int64, f func(i int) float64) series {
		s := series{unit: Milliseconds, t0: 1_700_000_000_000}
		for i := range n {
			s.ts, s.vs = append(s.ts, s.t0+int64(i+1)*step), append(s.vs, f(i))
		}
		return s
	}
	shaken := even(100, 15_000, func(i int) float64 { return float64(i*i%97) / 10 })
	for i := range shaken.ts {
		shaken.ts[i] += int64(i * 31 % 100)
	}
	wild := even(20, 1, func(int) float64 { return math.E })
	for i := range wild.ts {
		wild.ts[i] = math.MinInt64 + int64(i/2)<<58 + int64(7*i)
	}
	return map[string]series{
		"constant":           even(50, 1000, func(int) float64 { return math.Copysign(0, -1) }),
		"frame-quotient":     even(200, 1000, func(i int) float64 { return float64(i*7919%1000) / 10 }),
		"frame-product":      even(200, 1000, func(i int) float64 { return float64(i*7919%1000) * 1e-3 }),
		"delta":              even(300, 60_000, func(i int) float64 { return float64(1_000_000 + 12*i + i%5) }),
		"exceptions":         even(200, 1000, func(i int) float64 { return []float64{1.5, specials[i%len(specials)]}[(i%25+1)/25] }),
		"times-packed":       shaken,
		"times-raw":          wild,
		"one":                even(1, 1, func(int) float64 { return math.Pi }),
		"noise":              even(100, 1000, func(i int) float64 { return math.Sin(float64(i)) * math.Exp(float64(i%13)) }),
		"blocks":             even(2500, 1000, func(i int) float64 { return float64(i % 60) }),
		"stream-seconds32":   {unit: Seconds32, t0: golden[6].t0, ts: golden[6].ts, vs: golden[6].vs},
		"stream-nanoseconds": {unit: Nanoseconds, t0: 0, ts: []int64{math.MinInt64, -1, 5, 1_700_000_000_000_000_000}, vs: []float64{0, 1, 1, math.NaN()}},
		"stream-empty":       {unit: Seconds, t0: 12345},
	}
}

// goldenModes is what the packed ones among them must be: times, values and, where there is one, the decimal.
var goldenModes = map[string][3]byte{
	"blocks":         {timesSteady, valuesFrame, productCode},
	"constant":       {timesSteady, valuesConstant},
	"delta":          {timesSteady, valuesDelta, productCode},
	"exceptions":     {timesSteady, valuesFrame, productCode - 1},
	"frame-product":  {timesSteady, valuesFrame, productCode - 3},
	"frame-quotient": {timesSteady, valuesFrame, quotientCode + 1},
	"one":            {timesSteady, valuesConstant},
	"times-packed":   {timesPacked, valuesFrame, quotientCode + 1},
	"times-raw":      {timesRaw, valuesConstant},
}

// wantModes checks that a file shows what its name says.
func wantModes(t *testing.T, name string, b []byte) {
	t.Helper()
	modes, isPacked := goldenModes[name]
	if isPacked != (codec(b[4]) == codecPacked) {
		t.Fatalf("%s: codec %d", name, b[4])
	}
	if !isPacked {
		return
	}
	h, err := ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	var p packed
	if err := p.read(b[:h.Size], &h); err != nil {
		t.Fatal(err)
	}
	if got := [3]byte{p.times, p.values, p.scale.code}; got != modes {
		t.Errorf("%s: modes %d, want %d", name, got, modes)
	}
}

// block makes the block of a golden series: the kind follows from the name.
func (s series) block(t *testing.T, name string) []byte {
	if len(name) > 6 && name[:6] == "stream" {
		return encoderOf(t, s.unit, s.t0, s.ts, s.vs).AppendBlock(nil)
	}
	return mustSeal(t, s)
}

// Every block of version 1 is read by every later release; streams are also written as they always were.
func TestGoldenBlocks(t *testing.T) {
	for name, s := range goldenSeries() {
		s.name = name
		file := filepath.Join(goldenDir, name)
		if *update {
			if err := os.WriteFile(file, s.block(t, name), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d Decoder
		d.Reset(b)
		wantPoints(t, &d, s)
		wantModel(t, b, s)
		wantModes(t, name, b)
		if name[:2] == "st" && string(s.block(t, name)) != string(b) {
			t.Errorf("%s is written otherwise now", name)
		}
	}
	files, err := os.ReadDir(goldenDir)
	if err != nil || len(files) != len(goldenSeries()) {
		t.Errorf("%d golden files, want %d, %v", len(files), len(goldenSeries()), err)
	}
}
