package tsz

import (
	"errors"
	"math"
	"math/bits"
)

// errUnsound is a fault of this package, caught before anybody lost data by it.
var errUnsound = errors.New("tsz: sealed block does not decode to its points")

// Seal appends the points as blocks of up to MaxBlock points to dst and returns the extended slice. Each block is
// the smallest of what the format has for it, states the least, greatest and sum of its values, and was decoded
// and compared with the points, bit by bit, before Seal returns. Times must rise and fit the unit: the errors are
// those of Append, ErrFull apart, and dst comes back as it was. No points give no block. Seal keeps and changes neither
// ts nor vs, which must be equally long.
func Seal(dst []byte, unit Unit, ts []int64, vs []float64) ([]byte, error) {
	vs = vs[:len(ts)]
	if err := sealable(unit, ts); err != nil {
		return dst, err
	}
	var s sealer
	sealed := dst
	for len(ts) > 0 {
		n := min(len(ts), MaxBlock)
		at := len(sealed)
		var err error
		if sealed, err = s.seal(sealed, unit, ts[:n], vs[:n]); err != nil {
			return dst, err
		}
		if !holds(sealed[at:], ts[:n], vs[:n]) {
			return dst, errUnsound
		}
		ts, vs = ts[n:], vs[n:]
	}
	return sealed, nil
}

// sealable says why the times cannot be sealed, or nil.
func sealable(unit Unit, ts []int64) error {
	if unit >= units {
		return ErrRange
	}
	for i, t := range ts {
		switch {
		case unit == Seconds32 && uint64(t) > math.MaxUint32:
			return ErrRange
		case i > 0 && t == ts[i-1]:
			return ErrDuplicate
		case i > 0 && t < ts[i-1]:
			return ErrOutOfOrder
		}
	}
	return nil
}

// sealer is the working memory for one block.
type sealer struct {
	windows windows
	times   times
	values  values
}

// seal appends one block.
func (s *sealer) seal(dst []byte, unit Unit, ts []int64, vs []float64) ([]byte, error) {
	h := Header{Unit: unit, Count: uint32(len(ts)), First: ts[0], Last: ts[len(ts)-1], codec: codecPacked}
	h.summarize(vs)
	at := len(dst)
	dst = h.room(dst)

	s.times.choose(ts)
	s.values.choose(vs)
	packed := 1 + s.times.size + s.values.size
	s.windows.add(vs)
	head := headBits(unit, ts, vs)
	if packed > bytesOf(head+s.windows.bound()) {
		s.windows.plan()
		if packed > bytesOf(head+s.windows.cost[0]) {
			h.codec = codecStream
		}
	}
	if h.codec == codecStream {
		stream, err := s.stream(unit, ts, vs)
		if err != nil {
			return dst[:at], err
		}
		dst = append(dst, stream...)
	} else {
		dst = append(dst, s.times.mode|s.values.mode<<4)
		dst = s.times.append(dst, ts)
		dst = s.values.append(dst, vs)
	}
	h.put(dst[at:])
	return dst, nil
}

// stream returns the points as a stream whose windows are planned.
func (s *sealer) stream(unit Unit, ts []int64, vs []float64) ([]byte, error) {
	e := NewEncoder(unit, streamStart(unit, ts[0]), nil)
	if err := s.windows.encode(e, ts, vs); err != nil {
		return nil, err
	}
	return e.Finish(), nil
}

// streamStart is where the first interval must begin to take one bit.
func streamStart(unit Unit, first int64) int64 { return first - int64(unit.layout().start()) }

func bytesOf(bits int) int { return (bits + 7) / 8 }

// headBits returns the bits of a stream without its differences: the times, the first value, the bits that say
// whether a value changed, as far as it did not, and the end.
func headBits(unit Unit, ts []int64, vs []float64) int {
	_, n := unit.layout().end()
	total := int(n) + 1 + 64
	delta := unit.layout().start()
	for i := 1; i < len(ts); i++ {
		next := uint64(ts[i]) - uint64(ts[i-1])
		total++
		if dod := next - delta; dod != 0 {
			total += differenceBits(unit.layout(), dod) - 1
		}
		delta = next
		if sameBits(vs[i], vs[i-1]) {
			total++
		}
	}
	return total
}

func differenceBits(l layout, dod uint64) int {
	if l == long {
		dod = uint64(int64(int32(uint32(dod))))
	}
	b := &buckets[bits.Len64(code(dod))]
	if l == long && b.n == 64 {
		return 37
	}
	return int(b.length + b.n)
}

// summarize sets what blocks state about their values.
func (h *Header) summarize(vs []float64) {
	h.HasStats = true
	h.Min, h.Max, h.Sum = math.Inf(1), math.Inf(-1), 0
	for _, v := range vs {
		if v < h.Min {
			h.Min = v
		}
		if v > h.Max {
			h.Max = v
		}
		if v == v { // not NaN
			h.Sum += v
		}
	}
}

// holds reports whether the block decodes to exactly these points.
func holds(block []byte, ts []int64, vs []float64) bool {
	var d Decoder
	d.Reset(block)
	for i := range ts {
		if !d.Next() {
			return false
		}
		if t, v := d.At(); t != ts[i] || !sameBits(v, vs[i]) {
			return false
		}
	}
	return !d.Next() && d.Err() == nil
}
