package tsz

import (
	"encoding/hex"
	"math"
	"testing"
)

// golden are finished streams of the layout SeriesLong, as its writers have always made them.
var golden = []struct {
	name string
	t0   int64
	ts   []int64
	vs   []float64
	hex  string
}{
	{"empty", 0, nil, nil, "f8"},
	{"one point", 0, []int64{1}, []float64{124.45}, "a2a02f8e6666666666fc"},
	{"a minute on", 1000, []int64{1060}, []float64{1}, "1ff80000000000007c"},
	{"63 leading zeros", 1000, []int64{1060, 1120}, []float64{1, math.Nextafter(1, 2)}, "1ff80000000000003fc200000001f8"},
	{"window of 64 bits", 1000, []int64{1060, 1120}, []float64{0, math.Float64frombits(1<<63 | 1)},
		"000000000000000030010000000000000003f0"},
	{"counter", 0, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		[]float64{124.45, 125.45, 126.45, 127.45, 128.45, 129.45, 130.45, 131.45, 132.45, 133.45},
		"a2a02f8e6666666666b883700b4b56dfe95555555555b903710b4b807d1f80"},
	{"edges of the buckets", 1000,
		[]int64{1060, 1184, 1245, 1371, 1753, 1880, 2264, 4696, 5081, 7515, 7901},
		[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		"1ff800000000000050141620b401a02e10174003a005e000008017bffffe001f"},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			e := encoderOf(t, Seconds32, g.t0, g.ts, g.vs)
			if got := hex.EncodeToString(e.Snapshot().AppendStream(nil)); got != g.hex {
				t.Errorf("snapshot %s, want %s", got, g.hex)
			}
			if got := hex.EncodeToString(e.Finish()); got != g.hex {
				t.Errorf("stream %s, want %s", got, g.hex)
			}
		})
	}
}

// TestSizes holds the encoder to the sizes that the layout and its window rule give. The last is of a table of our
// own; the others are the same for every encoder of the layout.
func TestSizes(t *testing.T) {
	want := []int{313, 764, 2008, 2005, 1411, 1400}
	for i, g := range generators {
		ts, vs := g.points(240)
		e := encoderOf(t, Seconds32, 0, ts, vs)
		bits, bytes := e.Size()
		if got := len(e.Finish()); got != want[i] || bytes != got || int((bits+5+7)/8) != got {
			t.Errorf("%s: %d bytes, Size says %d and %d bits, want %d", g.name, got, bytes, bits, want[i])
		}
		if again, n := e.Size(); again != bits || n != bytes {
			t.Errorf("%s: finished, Size says %d, %d, want %d, %d", g.name, again, n, bits, bytes)
		}
	}
}

func encoderOf(t testing.TB, unit Unit, t0 int64, ts []int64, vs []float64) *Encoder {
	t.Helper()
	e := NewEncoder(unit, t0, nil)
	appendAll(t, e, ts, vs)
	return e
}

func appendAll(t testing.TB, e *Encoder, ts []int64, vs []float64) {
	t.Helper()
	for i := range ts {
		if err := e.Append(ts[i], vs[i]); err != nil {
			t.Fatalf("point %d at %d: %v", i, ts[i], err)
		}
	}
}
