package tsz

import (
	"errors"
	"math"
	"math/bits"
)

// What came before, as contestants of the benchmarks and as a second opinion in tests: the layout SeriesLong
// written and read through a stream of bits on bytes, from the description of it.

// bitStream is a slice of bytes that bits are appended to.
type bitStream struct {
	b       []byte
	free    uint // bits of the last byte, 0 to 7
	aligned bool // writes whole bytes where it can: the optimisation of the seed
}

func (s *bitStream) writeBit(bit bool) {
	if s.free == 0 {
		s.b = append(s.b, 0)
		s.free = 8
	}
	s.free--
	if bit {
		s.b[len(s.b)-1] |= 1 << s.free
	}
}

// writeByte writes 8 bits, wherever the stream stands.
func (s *bitStream) writeByte(c byte) {
	if s.free == 0 {
		s.b = append(s.b, c)
		return
	}
	s.b[len(s.b)-1] |= c >> (8 - s.free)
	s.b = append(s.b, c<<s.free)
}

func (s *bitStream) writeBits(v uint64, n uint) {
	v <<= 64 - n
	if s.aligned {
		s.writeAligned(v, n)
		return
	}
	for ; n >= 8; n -= 8 {
		s.writeByte(byte(v >> 56))
		v <<= 8
	}
	for ; n > 0; n-- {
		s.writeBit(v>>63 == 1)
		v <<= 1
	}
}

// writeAligned fills the open byte, appends whole bytes and opens one for the rest.
func (s *bitStream) writeAligned(v uint64, n uint) {
	if s.free > 0 {
		m := min(s.free, n)
		s.b[len(s.b)-1] |= byte(v >> (64 - s.free))
		s.free -= m
		v <<= m
		n -= m
	}
	for ; n >= 8; n -= 8 {
		s.b = append(s.b, byte(v>>56))
		v <<= 8
	}
	if n > 0 {
		s.b = append(s.b, byte(v>>56))
		s.free = 8 - n
	}
}

// bitSeries is a series on it.
type bitSeries struct {
	bw                  bitStream
	t0, t, delta        uint32
	v                   float64
	lead, trail         uint8
	any, window, closed bool
}

func newBitSeries(t0 uint32, aligned bool) *bitSeries {
	return &bitSeries{t0: t0, bw: bitStream{aligned: aligned}}
}

func (s *bitSeries) push(t uint32, v float64) {
	if !s.any {
		s.any = true
		s.delta = t - s.t0
		s.dod(int32(s.delta - 60))
		s.bw.writeBits(math.Float64bits(v), 64)
	} else {
		delta := t - s.t
		s.dod(int32(delta - s.delta))
		s.delta = delta
		s.value(v)
	}
	s.t, s.v = t, v
}

func (s *bitSeries) dod(dod int32) {
	switch {
	case dod == 0:
		s.bw.writeBit(false)
	case -63 <= dod && dod <= 64:
		s.bw.writeBits(0b10, 2)
		s.bw.writeBits(uint64(dod), 7)
	case -255 <= dod && dod <= 256:
		s.bw.writeBits(0b110, 3)
		s.bw.writeBits(uint64(dod), 9)
	case -2047 <= dod && dod <= 2048:
		s.bw.writeBits(0b1110, 4)
		s.bw.writeBits(uint64(dod), 12)
	default:
		s.bw.writeBits(0b11110, 5)
		s.bw.writeBits(uint64(dod), 32)
	}
}

func (s *bitSeries) value(v float64) {
	x := math.Float64bits(v) ^ math.Float64bits(s.v)
	if x == 0 {
		s.bw.writeBit(false)
		return
	}
	s.bw.writeBit(true)
	lead, trail := uint8(bits.LeadingZeros64(x)), uint8(bits.TrailingZeros64(x))
	if lead > 31 {
		lead = 31
	}
	width := 64 - lead - trail
	if s.window && lead >= s.lead && trail >= s.trail && 64-s.lead-s.trail-width < 22 {
		s.bw.writeBit(false)
		s.bw.writeBits(x>>s.trail, 64-uint(s.lead)-uint(s.trail))
		return
	}
	s.window, s.lead, s.trail = true, lead, trail
	s.bw.writeBit(true)
	s.bw.writeBits(uint64(lead), 5)
	s.bw.writeBits(uint64(width), 6)
	s.bw.writeBits(x>>trail, uint(width))
}

func (s *bitSeries) finish() []byte {
	if !s.closed {
		s.bw.writeBits(0b11111, 5)
		s.closed = true
	}
	return s.bw.b
}

var errEnd = errors.New("end of bits")

// bitReader reads one bit at a time.
type bitReader struct {
	b    []byte
	left uint8 // bits of the first byte that were not read
}

func (r *bitReader) readBit() (bool, error) {
	if r.left == 0 {
		if len(r.b) < 2 {
			return false, errEnd
		}
		r.b, r.left = r.b[1:], 8
	}
	r.left--
	return r.b[0]>>r.left&1 == 1, nil
}

func (r *bitReader) readBits(n uint) (v uint64, err error) {
	for ; n > 0; n-- {
		bit, err := r.readBit()
		if err != nil {
			return 0, err
		}
		v <<= 1
		if bit {
			v |= 1
		}
	}
	return v, nil
}

// bitIterator reads a series of that layout.
type bitIterator struct {
	r           bitReader
	t, delta    uint32
	v           uint64
	lead, width uint
	any, end    bool
	err         error
}

func newBitIterator(t0 uint32, b []byte) *bitIterator {
	return &bitIterator{r: bitReader{b: b, left: 8}, t: t0, delta: 60}
}

func (it *bitIterator) next() bool {
	if it.end || it.err != nil {
		return false
	}
	if it.err = it.time(); it.err != nil || it.end {
		return false
	}
	if !it.any {
		it.any = true
		it.v, it.err = it.r.readBits(64)
	} else {
		it.err = it.value()
	}
	return it.err == nil
}

func (it *bitIterator) time() error {
	ones := 0
	for ; ones < 5; ones++ {
		bit, err := it.r.readBit()
		if err != nil {
			return err
		}
		if !bit {
			break
		}
	}
	if ones == 5 {
		it.end = true
		return nil
	}
	n := [...]uint{0, 7, 9, 12, 32}[ones]
	u, err := it.r.readBits(n)
	if err != nil {
		return err
	}
	if n > 0 && u > 1<<(n-1) {
		u -= 1 << n
	}
	it.delta += uint32(u)
	it.t += it.delta
	return nil
}

func (it *bitIterator) value() error {
	changed, err := it.r.readBit()
	if err != nil || !changed {
		return err
	}
	renewed, err := it.r.readBit()
	if err != nil {
		return err
	}
	if renewed {
		lead, err := it.r.readBits(5)
		if err != nil {
			return err
		}
		width, err := it.r.readBits(6)
		if err != nil {
			return err
		}
		it.lead, it.width = uint(lead), uint(width)
		if width == 0 {
			it.width = 64
		}
	}
	x, err := it.r.readBits(it.width)
	if err != nil {
		return err
	}
	it.v ^= x << (64 - it.lead - it.width)
	return nil
}

func (it *bitIterator) at() (uint32, float64) { return it.t, math.Float64frombits(it.v) }
