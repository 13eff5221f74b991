package metabase

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// number is an integer from -(2^256-1) to 2^256-1 in the order of its bytes: a sign, 1 unless it is negative, and
// the magnitude in 32 bytes, big-endian, complemented if it is negative. Zero has the sign 1.
type number [33]byte

// parseNumber reads a decimal integer: digits behind an optional sign, nothing else. It reports whether it is one and
// in range.
func parseNumber[T ~string | ~[]byte](s T) (n number, ok bool) {
	digits := s
	negative := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative, digits = s[0] == '-', s[1:]
	}
	if len(digits) == 0 {
		return n, false
	}
	var mag [4]uint64 // little-endian words
	for i := 0; i < len(digits); i++ {
		c := digits[i] - '0'
		if c > 9 {
			return n, false
		}
		carry := uint64(c)
		for w := range mag {
			hi, lo := bits.Mul64(mag[w], 10)
			var over uint64
			mag[w], over = bits.Add64(lo, carry, 0)
			carry = hi + over
		}
		if carry != 0 {
			return n, false
		}
	}
	return makeNumber(mag, negative), true
}

func makeNumber(mag [4]uint64, negative bool) (n number) {
	for w := range mag {
		binary.BigEndian.PutUint64(n[25-8*w:], mag[w])
	}
	if negative && mag != [4]uint64{} {
		for i := range n[1:] {
			n[1+i] = ^n[1+i]
		}
		return n
	}
	n[0] = 1
	return n
}

// String returns the number in decimal digits.
func (n number) String() string {
	negative := n[0] == 0
	var mag [4]uint64
	for w := range mag {
		mag[w] = binary.BigEndian.Uint64(n[25-8*w:])
		if negative {
			mag[w] = ^mag[w]
		}
	}
	if mag == [4]uint64{} {
		return "0"
	}
	var buf [80]byte
	at := len(buf)
	for mag != [4]uint64{} {
		var rem uint64
		for w := len(mag) - 1; w >= 0; w-- {
			mag[w], rem = bits.Div64(rem, mag[w], 10)
		}
		at--
		buf[at] = '0' + byte(rem)
	}
	if negative {
		at--
		buf[at] = '-'
	}
	return string(buf[at:])
}

// least and most are the bounds of numbers.
var (
	least = makeNumber([4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, true)
	most  = makeNumber([4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, false)
)

// splitNumber returns the sign and the digits without leading zeros of a text that may be a number. Texts that are the
// same number are split into the same.
func splitNumber(s string) (negative bool, digits string) {
	digits = s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative, digits = s[0] == '-', s[1:]
	}
	if trimmed := strings.TrimLeft(digits, "0"); trimmed != digits && trimmed == "" {
		return false, "0"
	} else if trimmed != "" {
		digits = trimmed
	}
	return negative, digits
}
