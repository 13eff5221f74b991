package tsz

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/big"
	"strings"
	"testing"
)

// blockText reads blocks as text of zeros and ones, by the tables in the package comment and nothing else.
type blockText struct {
	t    testing.TB
	text string
}

func (b *blockText) take(n int) uint64 {
	b.t.Helper()
	if n > len(b.text) {
		b.t.Fatalf("a field of %d bits, %d are left", n, len(b.text))
	}
	v := uint64(0)
	for _, c := range b.text[:n] {
		v = v<<1 | uint64(c-'0')
	}
	b.text = b.text[n:]
	return v
}

// pad leaves out zeros up to a whole byte.
func (b *blockText) pad() {
	if v := b.take(len(b.text) % 8); v != 0 {
		b.t.Fatalf("padding is %b", v)
	}
}

func (b *blockText) uvarint() (v uint64) {
	for shift := 0; ; shift += 7 {
		c := b.take(8)
		v |= c & 127 << shift
		if c < 128 {
			return v
		}
	}
}

func (b *blockText) varint() int64 {
	v := b.uvarint()
	if v%2 == 1 {
		return -int64(v/2) - 1
	}
	return int64(v / 2)
}

// wantModel reads blocks and holds them against a series.
func wantModel(t testing.TB, block []byte, s series) {
	t.Helper()
	var ts []int64
	var vs []float64
	for len(block) > 0 {
		h, err := ParseHeader(block)
		if err != nil {
			t.Fatal(err)
		}
		head := 40
		if block[6] == 1 {
			head = 64
		}
		table := crc32.MakeTable(crc32.Castagnoli)
		sums := fmt.Sprintf("%08x%08x", crc32.Checksum(block[head:h.Size], table), crc32.Checksum(block[:head-4], table))
		if got := fmt.Sprintf("%x", block[head-8:head]); got != sums {
			t.Fatalf("checksums %s, want %s", got, sums)
		}
		b := &blockText{t: t}
		var text strings.Builder
		for _, c := range block[head:h.Size] {
			fmt.Fprintf(&text, "%08b", c)
		}
		b.text = text.String()
		if block[4] == 2 {
			blockT, blockV := b.packed(int(h.Count), h.First, h.Last)
			ts, vs = append(ts, blockT...), append(vs, blockV...)
		} else {
			var d Decoder // streams have a model of their own
			d.Reset(block[:h.Size])
			for d.Next() {
				at, v := d.At()
				ts, vs = append(ts, at), append(vs, v)
			}
		}
		block = block[h.Size:]
	}
	if len(ts) != len(s.ts) {
		t.Fatalf("%s: the model reads %d points, want %d", s.name, len(ts), len(s.ts))
	}
	for i := range ts {
		if ts[i] != s.ts[i] || !sameBits(vs[i], s.vs[i]) {
			t.Fatalf("%s: the model reads point %d as %d %v, want %d %v", s.name, i, ts[i], vs[i], s.ts[i], s.vs[i])
		}
	}
}

func (b *blockText) packed(n int, first, last int64) (ts []int64, vs []float64) {
	values, times := b.take(4), b.take(4)
	ts = append(ts, first)
	switch times {
	case 0:
		for i := 1; i < n; i++ {
			ts = append(ts, first+int64((uint64(last)-uint64(first))/uint64(n-1))*int64(i))
		}
	case 1:
		width, delta, base := int(b.take(8)), int64(b.uvarint()), b.varint()
		ts = append(ts, first+delta)
		for i := 2; i < n; i++ {
			delta += base + int64(b.take(width))
			ts = append(ts, ts[i-1]+delta)
		}
		b.pad()
	case 2:
		for i := 1; i < n; i++ {
			ts = append(ts, int64(b.take(64)))
		}
	}
	if values == 0 {
		v := math.Float64frombits(b.take(64))
		for range n {
			vs = append(vs, v)
		}
		return ts, vs
	}
	code, width := int(b.take(8)), int(b.take(8))
	d := int64(0)
	if values == 2 {
		d = b.varint()
		vs = append(vs, decimalText(d, code))
	}
	base, exceptions := b.varint(), int(b.uvarint())
	for len(vs) < n {
		if u := int64(b.take(width)); values == 1 {
			d = base + u
		} else {
			d += base + u
		}
		vs = append(vs, decimalText(d, code))
	}
	b.pad()
	for range exceptions {
		at := b.take(16)
		vs[at] = math.Float64frombits(b.take(64))
	}
	if len(b.text) > 0 {
		b.t.Fatalf("%d bits behind a block", len(b.text))
	}
	return ts, vs
}

// decimalText finds what d stands for with rational numbers and decimal text, not with floating point.
func decimalText(d int64, code int) float64 {
	if code > 64 { // the float64 nearest to a decimal fraction
		r, _ := new(big.Rat).SetString(fmt.Sprintf("%de-%d", d, code-64))
		v, _ := r.Float64()
		return v
	}
	var power float64
	fmt.Sscanf(fmt.Sprintf("1e%d", code-32), "%g", &power)
	r := new(big.Rat).Mul(new(big.Rat).SetInt64(d), new(big.Rat).SetFloat64(power))
	v, _ := r.Float64()
	return v
}

func TestModelBlocks(t *testing.T) {
	for _, s := range corpus() {
		if len(s.ts) > 0 && len(s.ts) <= 500 {
			wantModel(t, mustSeal(t, s), s)
		}
	}
}
