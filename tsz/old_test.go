package tsz

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"
)

// modelOld writes a stream of the layout Series4h as text of zeros and ones.
func modelOld(t0 uint32, ts []int64, vs []float64) []byte {
	var b strings.Builder
	field := func(v uint64, n int) { b.WriteString(fmt.Sprintf("%064b", v)[64-n:]) }
	field(uint64(t0), 32)
	lead, width := -1, 0
	delta := int64(0)
	for i, t := range ts {
		x := math.Float64bits(vs[i])
		if i == 0 {
			delta = t - int64(t0)
			field(uint64(delta)&(1<<14-1), 14)
			field(x, 64)
			continue
		}
		dod := t - ts[i-1] - delta
		delta = t - ts[i-1]
		switch {
		case -2047 <= dod && dod <= 2048:
			modelInterval(&b, field, wide, dod)
		default:
			b.WriteString("1111")
			field(uint64(dod), 32)
		}
		if x ^= math.Float64bits(vs[i-1]); x == 0 {
			b.WriteString("0")
			continue
		}
		l, trail := min(bits.LeadingZeros64(x), 31), bits.TrailingZeros64(x)
		if lead >= 0 && l >= lead && trail >= 64-lead-width {
			b.WriteString("10")
		} else {
			lead, width = l, 64-l-trail
			b.WriteString("11")
			field(uint64(lead), 5)
			field(uint64(width%64), 6)
		}
		field(x>>(64-lead-width), width)
	}
	b.WriteString("1111" + bitsOf(32) + "0")
	return packText(b.String())
}

func TestSeries4h(t *testing.T) {
	const t0 = 1_500_000_000
	for _, s := range corpus() {
		if s.unit != Seconds32 || len(s.ts) > 300 {
			continue
		}
		from := s.t0
		for _, first := range []int64{1, 60, 16383} {
			moved := s
			moved.ts = nil
			for i, at := range s.ts {
				if i == 0 {
					from = at - first
				}
				moved.ts = append(moved.ts, at-from+t0)
			}
			b := modelOld(t0, moved.ts, moved.vs)
			var d Decoder
			d.ResetSeries4h(b, 0)
			wantPoints(t, &d, moved)
			for cut := range b {
				d.ResetSeries4h(b[:cut], 0)
				if _, _, err := d.scan(0); !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%s: cut to %d of %d bytes: %v", s.name, cut, len(b), err)
				}
			}
		}
	}
}

// TestSeries4hEnd: the marker ends in a zero bit.
func TestSeries4hEnd(t *testing.T) {
	head := fmt.Sprintf("%032b", 1000) + fmt.Sprintf("%014b", 60) + bitsOf(64) + "1111" + bitsOf(32)
	for bit, want := range map[string]error{"0": nil, "1": ErrCorrupt} {
		var d Decoder
		d.ResetSeries4h(packText(head+bit), 0)
		if n, first, err := d.scan(0); n != 1 || first != 1060 || !errors.Is(err, want) {
			t.Errorf("%s behind the marker: %d points from %d, %v, want %v", bit, n, first, err, want)
		}
	}
}

// TestSeries4hRepair: a first interval of 4.55 hours or more comes back where anything tells of it.
func TestSeries4hRepair(t *testing.T) {
	const t0 = 1_500_000_000 // a multiple of 60, 16384 is none
	for _, test := range []struct {
		name     string
		ts       []int64
		interval uint32
		first    int64 // as it is read
	}{
		{"short", []int64{t0 + 600, t0 + 660}, 60, t0 + 600},
		{"long, interval known", []int64{t0 + 18000, t0 + 18060}, 60, t0 + 18000},
		{"long, one point, interval known", []int64{t0 + 18000}, 60, t0 + 18000},
		{"long, the second point tells", []int64{t0 + 16400, t0 + 16401}, 0, t0 + 16400},
		{"long, nothing tells", []int64{t0 + 18000}, 0, t0 + 18000 - 16384},
		{"longer than 9.1 hours", []int64{t0 + 40000}, 0, t0 + 40000 - 32768},
	} {
		var d Decoder
		d.ResetSeries4h(modelOld(t0, test.ts, make([]float64, len(test.ts))), test.interval)
		n, first, err := d.scan(0)
		if err != nil || first != test.first || int(n) != len(test.ts) {
			t.Errorf("%s: %d points from %d, %v, want %d", test.name, n, first-t0, err, test.first-t0)
		}
	}
}
