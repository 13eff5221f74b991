package tsz

import (
	"math"
	"math/bits"
)

// decimal is what integers of a block stand for: a quotient d / 10^k or a product d * 10^k, where 10^k is the
// float64 nearest to it. Either is one operation of two float64, so any machine gets the same bits.
//
// The quotient of two exact numbers is the float64 nearest to a decimal fraction: what was once read from a
// decimal text is always found. The product is what sums of such numbers come to more often, and it is faster.
type decimal struct {
	code byte
	by   float64 // 10^k of a quotient, or 1
	mul  float64 // 10^k of a product, or 1
	inv  float64 // by what a value is multiplied to find its integer
}

// Part of the format, never change: the code of a product with 10^k is 32+k, that of a quotient by 10^k is 64+k.
const (
	productCode  = 32
	quotientCode = 64
	maxExponent  = 22 // the largest power of ten that is a float64 exactly
)

var powers = [maxExponent + 1]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

var inverses = [maxExponent + 1]float64{
	1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11,
	1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22,
}

// product stands for d * 10^k.
func product(k int) decimal {
	s := decimal{code: byte(productCode + k), by: 1, mul: powers[max(k, 0)], inv: inverses[max(k, 0)]}
	if k < 0 {
		s.mul, s.inv = inverses[-k], powers[-k]
	}
	return s
}

// quotient stands for d / 10^k.
func quotient(k int) decimal {
	return decimal{code: byte(quotientCode + k), by: powers[k], mul: 1, inv: powers[k]}
}

// decimalOf returns what a code means.
func decimalOf(code byte) (s decimal, ok bool) {
	switch k := int(code); {
	case k >= productCode-maxExponent && k <= productCode+maxExponent:
		return product(k - productCode), true
	case k > quotientCode && k <= quotientCode+maxExponent:
		return quotient(k - quotientCode), true
	}
	return s, false
}

// value returns what d stands for.
func (s decimal) value(d int64) float64 {
	if s.by != 1 {
		return float64(d) / s.by
	}
	return float64(d) * s.mul
}

// maxDecimal bounds the integers: float64 has all up to here.
const maxDecimal = 1 << 53

// of returns the integer that stands for v, and whether it does so bit by bit. If not, it is near, or 0.
func (s decimal) of(v float64) (d int64, exact bool) {
	scaled := v * s.inv
	if !(math.Abs(scaled) <= maxDecimal) { // NaN too
		return 0, false
	}
	d = int64(math.RoundToEven(scaled))
	return d, sameBits(s.value(d), v)
}

// samples is how many values decide which decimals are tried on all of them.
const samples = 32

// guess is a decimal and the bits that it promises to take.
type guess struct {
	decimal
	bits int
}

// estimate returns the two decimals that promise to take the fewest bits for the values. One that fits all samples
// is not beaten by finer ones; coarser ones are tried where whole numbers fit.
func estimate(vs []float64) [2]guess {
	best := [2]guess{{product(0), math.MaxInt}, {product(0), math.MaxInt}}
	var room [samples]float64
	sample := room[:pick(&room, vs)]
	try := func(s decimal) (exact bool) {
		bits, exact := s.bits(sample, best[1].bits)
		switch {
		case bits < best[0].bits:
			best[0], best[1] = guess{s, bits}, best[0]
		case bits < best[1].bits:
			best[1] = guess{s, bits}
		}
		return exact
	}
	if try(product(0)) {
		for k := 1; k <= maxExponent && try(product(k)); k++ {
		}
		return best
	}
	for k, exact := 1, false; k <= maxExponent && !exact; k++ {
		exact = try(product(-k))
		exact = try(quotient(k)) || exact // both: the samples may flatter the one
	}
	return best
}

// pick copies some of the values and returns how many. They lie at distances without order, or what recurs would
// deceive.
func pick(sample *[samples]float64, vs []float64) int {
	n := min(samples, len(vs))
	for i := range n {
		from, to := i*len(vs)/n, (i+1)*len(vs)/n
		sample[i] = vs[from+int(uint32(i)*2654435769>>16)%(to-from)]
	}
	return n
}

// bits returns what the values take, and whether all of them are exact. It gives up above a limit.
func (s decimal) bits(vs []float64, limit int) (total int, exact bool) {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for _, v := range vs {
		if d, ok := s.of(v); ok {
			least, most = min(least, d), max(most, d)
		} else if total += 8 * exceptionSize; total >= limit {
			return total, false
		}
	}
	exact = total == 0
	if least <= most {
		total += len(vs) * bits.Len64(uint64(most)-uint64(least))
	}
	return total, exact
}
