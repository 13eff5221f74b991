package tsz

import (
	"math"
	"math/bits"
)

// times is how the times of a block are packed.
type times struct {
	mode  byte
	size  int // bytes
	base  uint64
	width uint
}

// choose takes the smallest of what can hold the times.
func (p *times) choose(ts []int64) {
	n := len(ts)
	*p = times{mode: timesSteady}
	if n < 3 {
		return
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i := 2; i < n; i++ {
		dod := int64(difference(ts, i))
		least, most = min(least, dod), max(most, dod)
	}
	if least == 0 && most == 0 {
		return
	}
	p.base, p.width = uint64(least), uint(bits.Len64(uint64(most)-uint64(least)))
	p.mode = timesPacked
	p.size = len(p.append(nil, ts[:2])) + bytesOf((n-2)*int(p.width))
	if raw := 8 * (n - 1); p.width > maxWidth || p.size > raw {
		*p = times{mode: timesRaw, size: raw}
	}
}

// difference returns by how much the interval before point i is longer than the one before it.
func difference(ts []int64, i int) uint64 {
	return uint64(ts[i]) - 2*uint64(ts[i-1]) + uint64(ts[i-2])
}

// append appends the times behind the first.
func (p *times) append(dst []byte, ts []int64) []byte {
	switch p.mode {
	case timesRaw:
		for _, t := range ts[1:] {
			dst = appendWord(dst, uint64(t))
		}
	case timesPacked:
		dst = append(dst, byte(p.width))
		dst = appendUvarint(dst, uint64(ts[1])-uint64(ts[0]))
		dst = appendVarint(dst, int64(p.base))
		pack := packInto(dst, len(ts)-2, p.width)
		for i := 2; i < len(ts); i++ {
			pack.append(difference(ts, i) - p.base)
		}
		dst = pack.close()
	}
	return dst
}

// values is how the values of a block are packed.
type values struct {
	way
	ds    [MaxBlock]int64 // as decimals of the way's scale
	exact [MaxBlock]bool
}

// way is one way to pack values.
type way struct {
	mode       byte
	scale      decimal
	base       int64
	width      uint
	exceptions int
	size       int // bytes
}

// choose takes the smallest of what can hold the values. Where no decimal does, most are exceptions, which is never
// small.
func (p *values) choose(vs []float64) {
	if constant(vs) {
		p.way = way{mode: valuesConstant, size: 8}
		return
	}
	best := way{size: math.MaxInt}
	for _, g := range estimate(vs) {
		p.round(g.decimal, vs)
		for _, w := range [2]way{p.frame(len(vs)), p.delta(len(vs))} {
			if w.size < best.size {
				best = w
			}
		}
		if p.exceptions == 0 {
			break // the next promised no less
		}
	}
	if p.scale != best.scale {
		p.round(best.scale, vs)
	}
	p.way = best
}

func constant(vs []float64) bool {
	for _, v := range vs {
		if !sameBits(v, vs[0]) {
			return false
		}
	}
	return true
}

// round makes integers of all values. An exception gets one that is near, so that differences stay small, or the
// one before it.
func (p *values) round(scale decimal, vs []float64) {
	p.way = way{scale: scale}
	var last int64
	for i, v := range vs {
		d, exact := scale.of(v)
		if !exact {
			p.exceptions++
			if d == 0 {
				d = last
			}
		}
		p.ds[i], p.exact[i], last = d, exact, d
	}
}

// frame is the way to pack the integers as they are, those of exceptions apart.
func (p *values) frame(n int) way {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i, d := range p.ds[:n] {
		if p.exact[i] {
			least, most = min(least, d), max(most, d)
		}
	}
	if p.exceptions == n {
		least, most = 0, 0
	}
	return p.measure(valuesFrame, least, most, n)
}

// delta is the way to pack the differences of neighbours.
func (p *values) delta(n int) way {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i := 1; i < n; i++ {
		d := p.ds[i] - p.ds[i-1]
		least, most = min(least, d), max(most, d)
	}
	return p.measure(valuesDelta, least, most, n-1)
}

// measure returns the way to pack n integers from least to most.
func (p *values) measure(mode byte, least, most int64, n int) way {
	var room [40]byte
	w := p.way
	w.mode, w.base, w.width = mode, least, uint(bits.Len64(uint64(most)-uint64(least)))
	w.size = len(w.head(room[:0], p.ds[0])) + bytesOf(n*int(w.width)) + w.exceptions*exceptionSize
	return w
}

// head appends what stands before the packed integers, of which the first of a delta is one.
func (w *way) head(dst []byte, first int64) []byte {
	dst = append(dst, w.scale.code, byte(w.width))
	if w.mode == valuesDelta {
		dst = appendVarint(dst, first)
	}
	dst = appendVarint(dst, w.base)
	return appendUvarint(dst, uint64(w.exceptions))
}

// append appends the values.
func (p *values) append(dst []byte, vs []float64) []byte {
	if p.mode == valuesConstant {
		return appendWord(dst, math.Float64bits(vs[0]))
	}
	pack := packInto(p.head(dst, p.ds[0]), len(vs), p.width)
	for i, d := range p.ds[:len(vs)] {
		switch {
		case p.mode == valuesFrame && p.exact[i]:
			pack.append(uint64(d - p.base))
		case p.mode == valuesFrame:
			pack.append(0)
		case i > 0:
			pack.append(uint64(d - p.ds[i-1] - p.base))
		}
	}
	dst = pack.close()
	for i, v := range vs {
		if !p.exact[i] {
			dst = appendException(dst, i, v)
		}
	}
	return dst
}
