package tsz

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"
)

// modelStream writes a stream as text of zeros and ones, by the table in the package comment and nothing else.
func modelStream(l layout, t0 int64, ts []int64, vs []float64) []byte {
	var b strings.Builder
	field := func(v uint64, n int) {
		text := fmt.Sprintf("%064b", v)
		b.WriteString(text[64-n:])
	}
	last, delta := t0, int64(l.start())
	lead, width := -1, 0
	for i, t := range ts {
		next := t - last
		dod := next - delta
		if l == long {
			dod = int64(int32(dod))
		}
		modelInterval(&b, field, l, dod)
		last, delta = t, next
		x := math.Float64bits(vs[i])
		if i == 0 {
			field(x, 64)
			continue
		}
		if x ^= math.Float64bits(vs[i-1]); x == 0 {
			b.WriteString("0")
			continue
		}
		l, s := min(bits.LeadingZeros64(x), 31), 0
		s = 64 - l - bits.TrailingZeros64(x)
		if lead >= 0 && l >= lead && bits.TrailingZeros64(x) >= 64-lead-width && width-s < 22 {
			b.WriteString("10")
		} else {
			lead, width = l, s
			b.WriteString("11")
			field(uint64(lead), 5)
			field(uint64(width%64), 6)
		}
		field(x>>(64-lead-width), width)
	}
	if l == long {
		b.WriteString("11111")
	} else {
		b.WriteString("111111")
	}
	return packText(b.String())
}

func modelInterval(b *strings.Builder, field func(uint64, int), l layout, dod int64) {
	switch {
	case dod == 0:
		b.WriteString("0")
	case -63 <= dod && dod <= 64:
		b.WriteString("10")
		field(uint64(dod), 7)
	case -255 <= dod && dod <= 256:
		b.WriteString("110")
		field(uint64(dod), 9)
	case -2047 <= dod && dod <= 2048:
		b.WriteString("1110")
		field(uint64(dod), 12)
	case l == long || -(1<<31-1) <= dod && dod <= 1<<31:
		b.WriteString("11110")
		field(uint64(dod), 32)
	default:
		b.WriteString("111110")
		field(uint64(dod), 64)
	}
}

// packText makes bytes of zeros and ones.
func packText(text string) []byte {
	b := make([]byte, (len(text)+7)/8)
	for i, c := range text {
		if c == '1' {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	return b
}

func TestModel(t *testing.T) {
	for _, s := range corpus() {
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		want := modelStream(s.unit.layout(), s.t0, s.ts, s.vs)
		if got := e.Finish(); string(got) != string(want) {
			t.Errorf("%s: stream\n%x, want\n%x", s.name, got, want)
		}
		if s.unit == Seconds32 {
			b := newBitSeries(uint32(s.t0), true)
			for i, at := range s.ts {
				b.push(uint32(at), s.vs[i])
			}
			if got := b.finish(); string(got) != string(want) {
				t.Errorf("%s: contestant\n%x, want\n%x", s.name, got, want)
			}
		}
	}
}
