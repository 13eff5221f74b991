package tsz

import (
	"math"
	"math/bits"
	"slices"
)

const (
	// reserve is what one point takes at most, 151 bits, and the word that is stored: so one check per point is enough.
	reserve = 32
	// firstSize is the least that a buffer grows to: 60 points of most gauges.
	firstSize = 512
	// maxBuffer is the most that a stream may take: positions in bits fit an int, lengths 32 bits. With less than
	// two reserves left it is full.
	maxBuffer = min(math.MaxInt>>3, math.MaxUint32)
	maxStream = maxBuffer - 2*reserve

	// maxLead is the largest count of leading zeros that its 5 bits can state.
	maxLead = 31
	// rewindow is the number of bits a point must waste before the window is narrowed: 11 to declare the new
	// window, and 11 more in case the next point needs the old one.
	rewindow = 22
)

// Encoder writes points into a stream, a few bits each. It must be made by [NewEncoder]. It is not safe for
// concurrent use; what [Encoder.Snapshot] returned is, beside an encoder that goes on.
type Encoder struct {
	buf  []byte // the stream up to pos, and room behind it
	pos  int    // bytes before it never change
	acc  uint64 // the open byte, in the top bits
	used uint   // bits of it, 0 to 7

	n      uint32 // points
	max    uint32
	last   int64
	top    int64  // the latest time the unit can hold; MinInt64 when finished
	delta  uint64 // the last interval, modulo the layout's mask
	prev   uint64 // the last value
	lead   uint   // the window: leading zeros, trailing zeros and the bits between; 0 if there is none yet
	trail  uint
	width  uint
	start  int64 // the time that the first interval begins with
	first  int64
	unit   Unit
	layout layout
	shared bool // a snapshot refers to buf
}

// EncoderOptions are what an encoder can do without. nil means all defaults.
type EncoderOptions struct {
	// MaxPoints is the number of points at which the series is full. Default and most: 2^32-1.
	MaxPoints uint32
	// Buffer is memory for the stream to begin in, which is the encoder's from then on. Default: none. It grows as
	// it must; 2 KiB hold 240 points of any kind of gauge.
	Buffer []byte
}

// NewEncoder returns an encoder of an empty stream. t0 is the time from which the first interval counts, best
// one interval before the first point; any time will do. Whoever stores a bare stream must keep t0 and the unit; a
// block states them. NewEncoder panics if there is no such unit.
func NewEncoder(unit Unit, t0 int64, opts *EncoderOptions) *Encoder {
	if unit >= units {
		panic("tsz: no unit " + unit.String())
	}
	e := &Encoder{unit: unit, layout: unit.layout(), max: math.MaxUint32}
	if opts != nil {
		e.buf = opts.Buffer[:min(cap(opts.Buffer), maxBuffer)]
		if opts.MaxPoints > 0 {
			e.max = opts.MaxPoints
		}
	}
	e.Reset(t0)
	return e
}

// Reset makes the encoder one of an empty stream that counts from t0. It keeps unit, limit and memory, so what
// Finish returned is overwritten by later points; memory that a snapshot refers to is left to it.
func (e *Encoder) Reset(t0 int64) {
	if e.shared {
		e.buf, e.shared = nil, false
	}
	e.pos, e.acc, e.used = 0, 0, 0
	e.n, e.last, e.delta, e.prev = 0, t0, e.layout.start(), 0
	e.lead, e.trail, e.width = 0, 0, 0 // no window: it is narrower than any
	e.start, e.first = t0, t0
	e.top = math.MaxInt64
	if e.layout == long {
		e.top = math.MaxUint32
	}
}

// Append adds a point. Times must rise: ErrOutOfOrder and ErrDuplicate say that they do not, ErrRange that the
// unit cannot hold t, ErrFull that the series has all the points or bytes it may have, ErrFinished that Finish was
// called. After an error the encoder is as it was. Every bit of v is kept, whatever it is.
func (e *Encoder) Append(t int64, v float64) error {
	if e.n-1 >= e.max-1 || t <= e.last || t > e.top || len(e.buf)-e.pos < reserve {
		return e.appendRare(t, v)
	}
	delta := uint64(t) - uint64(e.last)
	head, n := uint64(0), uint(1)
	if dod := delta - e.delta; dod != 0 {
		head, n = e.interval(dod)
	}
	e.n, e.last, e.delta = e.n+1, t, delta
	x := math.Float64bits(v) ^ e.prev
	if x == 0 {
		e.pos, e.acc, e.used = put(e.buf, e.pos, e.acc, e.used, head<<1, n+1)
		return nil
	}
	e.prev ^= x
	lead, trail := min(uint(bits.LeadingZeros64(x)), maxLead), uint(bits.TrailingZeros64(x))
	width := 64 - lead - trail
	if lead >= e.lead && trail >= e.trail && e.width-width < rewindow {
		head, n = head<<2|0b10, n+2
		trail, width = e.trail, e.width
	} else {
		head, n = head<<13|uint64(0b11<<11|lead<<6|width&63), n+13
		e.lead, e.trail, e.width = lead, trail, width
	}
	x >>= trail & 63
	if n+width > maxPut {
		e.putLong(head, n, x, width)
		return nil
	}
	e.pos, e.acc, e.used = put(e.buf, e.pos, e.acc, e.used, head<<(width&63)|x, n+width)
	return nil
}

// putLong appends n bits of a head and the width bits of x, where one put is not enough for both.
func (e *Encoder) putLong(head uint64, n uint, x uint64, width uint) {
	pos, acc, used := e.pos, e.acc, e.used
	if n > maxPut-32 {
		pos, acc, used = put(e.buf, pos, acc, used, head, n)
		head, n = 0, 0
	}
	if width > 32 {
		width -= 32
		pos, acc, used = put(e.buf, pos, acc, used, head<<(width&63)|x>>32, n+width)
		head, n, x, width = 0, 0, x&math.MaxUint32, 32
	}
	e.pos, e.acc, e.used = put(e.buf, pos, acc, used, head<<(width&63)|x, n+width)
}

// appendRare is Append where something is in the way: a refusal, a buffer to grow, or the first point.
func (e *Encoder) appendRare(t int64, v float64) error {
	if err := e.refuse(t); err != nil {
		return err
	}
	if len(e.buf)-e.pos < reserve {
		e.grow(reserve)
	}
	if e.n > 0 {
		return e.Append(t, v)
	}
	e.delta = (uint64(t) - uint64(e.start)) & e.layout.mask()
	head, n := uint64(0), uint(1)
	if dod := e.delta - e.layout.start(); dod != 0 {
		head, n = e.interval(dod)
	}
	e.put(head, n)
	e.prev = math.Float64bits(v)
	e.put64(e.prev)
	e.n, e.first, e.last = 1, t, t
	return nil
}

// refuse says why a point at t cannot be added, or nil.
func (e *Encoder) refuse(t int64) error {
	switch {
	case e.finished():
		return ErrFinished
	case e.layout == long && uint64(t) > math.MaxUint32:
		return ErrRange
	case e.n > 0 && t == e.last:
		return ErrDuplicate
	case e.n > 0 && t < e.last:
		return ErrOutOfOrder
	case e.n >= e.max || e.pos > maxStream:
		return ErrFull
	}
	return nil
}

// interval returns the bits for a difference of intervals that is not 0. Of the widest, it puts the first half.
func (e *Encoder) interval(dod uint64) (head uint64, n uint) {
	if e.layout == long {
		dod = uint64(int64(int32(uint32(dod))))
	}
	b := &buckets[bits.Len64(code(dod))]
	if b.n < 64 {
		return b.prefix<<(b.n&63) | dod&(1<<(b.n&63)-1), uint(b.length + b.n)
	}
	if e.layout == long { // the most negative difference: modulo 2^32 the most positive
		return 0b11110<<32 | dod&math.MaxUint32, 37
	}
	e.put(b.prefix<<32|dod>>32, uint(b.length)+32)
	return dod & math.MaxUint32, 32
}

// code maps differences to numbers that have as many bits as their bucket needs, less one: 1 and 0 to 0, -1 and 2
// to 1, and so on.
func code(dod uint64) uint64 { return (dod - 1) ^ uint64(int64(dod-1)>>63) }

func (e *Encoder) put(v uint64, n uint) {
	e.pos, e.acc, e.used = put(e.buf, e.pos, e.acc, e.used, v, n)
}

func (e *Encoder) put64(v uint64) {
	e.put(v>>32, 32)
	e.put(v&math.MaxUint32, 32)
}

// grow makes room for n more bytes in new memory: a snapshot may refer to the old.
func (e *Encoder) grow(n int) {
	size := max(firstSize, min(2*len(e.buf), maxBuffer), e.pos+n)
	grown := slices.Grow([]byte(nil), size)
	grown = grown[:min(cap(grown), maxBuffer)]
	copy(grown, e.buf[:e.pos])
	e.buf, e.shared = grown, false
}

// Finish ends the stream and returns it: the bytes that the layout defines, zero bits up to the last whole one. It
// may be called again; Append gets ErrFinished from now on. The result is valid until Reset.
func (e *Encoder) Finish() []byte {
	if !e.finished() {
		if len(e.buf)-e.pos < reserve {
			e.grow(reserve)
		}
		end, n := e.layout.end()
		e.put(end, n)
		e.pos += int(e.used+7) / 8 // the open byte is stored
		e.top = math.MinInt64
	}
	return e.buf[:e.pos:e.pos]
}

func (e *Encoder) finished() bool { return e.top == math.MinInt64 }

// end is the marker behind the last point, and its bits.
func (l layout) end() (uint64, uint) {
	if l == wide {
		return 0b111111, 6
	}
	return 0b11111, 5
}

// Len returns the number of points.
func (e *Encoder) Len() int { return int(e.n) }

// Size returns the number of bits that the points take, and the bytes of the stream if it were finished now.
func (e *Encoder) Size() (bits int64, bytes int) {
	if e.finished() {
		_, n := e.layout.end()
		return int64(e.pos)*8 - int64(-e.used&7) - int64(n), e.pos
	}
	bits = int64(e.pos)*8 + int64(e.used)
	_, n := e.layout.end()
	return bits, int((bits + int64(n) + 7) / 8)
}
