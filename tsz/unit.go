package tsz

import "strconv"

// Unit says what the times of a series count, all of them from any origin the program likes. It decides how a
// stream codes them, so both sides must agree on it; a block states it.
type Unit uint8

// The units. The numbers are part of the format, never change them.
const (
	// Seconds32 are whole seconds from 0 to 2^32-1, coded bit for bit as the layout called SeriesLong.
	Seconds32 Unit = iota
	// Seconds and the units below are any int64, coded with one more escape.
	Seconds
	Milliseconds
	Microseconds
	Nanoseconds

	units = iota // how many there are
)

var unitNames = [units]string{"seconds32", "seconds", "milliseconds", "microseconds", "nanoseconds"}

func (u Unit) String() string {
	if u < units {
		return unitNames[u]
	}
	return "Unit(" + strconv.Itoa(int(u)) + ")"
}

// layout is how the times of a stream are coded.
type layout uint8

const (
	long layout = iota // SeriesLong: modulo 2^32
	wide               // modulo 2^64
	old                // Series4h: modulo 2^32, only read
)

func (u Unit) layout() layout {
	if u == Seconds32 {
		return long
	}
	return wide
}

// mask is the modulus of a layout's times, less one.
func (l layout) mask() uint64 {
	if l == wide {
		return 1<<64 - 1
	}
	return 1<<32 - 1
}

// start is the interval that a stream assumes before its first point. A minute is what SeriesLong assumes.
func (l layout) start() uint64 {
	if l == long {
		return 60
	}
	return 0
}
