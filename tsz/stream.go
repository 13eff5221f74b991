package tsz

import (
	"math"
	"math/bits"
)

// stream reads the points of one stream. It knows a position in bits and no more: every field is read by one load
// at its place, so that nothing but the position ties one point to the next.
type stream struct {
	b    []byte
	last byte // behind b: the open byte of a snapshot
	end  uint // in bits

	pos    uint
	t      uint64
	delta  uint64
	prev   uint64
	trail  uint
	width  uint // of the window, 0: there is none
	mask   uint64
	layout layout
	marked bool // the end is marked: not so in a snapshot
	done   bool // the marker was read

	multiple uint64 // Series4h: what the times are multiples of, 0: unknown
}

// read makes s a reader of a whole stream in b.
func (s *stream) read(l layout, t0 int64, b []byte) {
	*s = stream{
		b: b, end: uint(len(b)) * 8, marked: true,
		layout: l, mask: l.mask(), t: uint64(t0), delta: l.start(),
	}
}

// readSnapshot makes s a reader of an open stream.
func (s *stream) readSnapshot(p *Snapshot) {
	s.read(p.layout, 0, p.whole)
	s.last, s.end, s.marked = byte(p.acc>>56), s.end+p.used, false
}

// at returns the bits at pos, at least 57 of them, with zeros behind the end.
func (s *stream) at(pos uint) uint64 {
	if o := int(pos >> 3); o < len(s.b)-8 {
		return load(s.b, o) << (pos & 7)
	}
	return s.near(pos)
}

// whole returns the 64 bits at pos, with zeros behind the end.
func (s *stream) whole(pos uint) uint64 {
	if o := int(pos >> 3); o < len(s.b)-8 {
		return load(s.b, o)<<(pos&7) | uint64(s.b[o+8])>>(8-pos&7)
	}
	return s.near(pos)
}

// near is whole near the end.
func (s *stream) near(pos uint) uint64 {
	var room [16]byte
	s.rest(room[:9], int(pos>>3))
	return load(room[:], 0)<<(pos&7) | uint64(room[8])>>(8-pos&7)
}

// rest copies what there is from a byte on, and returns how much. Behind the end it leaves b as it is.
func (s *stream) rest(b []byte, from int) int {
	n := copy(b, s.b[min(from, len(s.b)):])
	if !s.marked && from+n == len(s.b) && n < len(b) {
		b[n] = s.last
		n++
	}
	return n
}

// first reads the first point, whose value is not a difference. It reports whether there is one.
func (s *stream) first() (ok bool, err error) {
	if s.layout == old {
		return s.firstOld()
	}
	pos, err := s.interval(s.pos)
	if err != nil || s.done {
		return false, err
	}
	if s.end < 64 || pos > s.end-64 {
		return false, ErrTruncated
	}
	s.t = (s.t + s.delta) & s.mask
	s.prev = s.whole(pos)
	s.pos = pos + 64
	return true, nil
}

// interval reads the field of a time at pos, which changes delta or ends the stream, and returns where it ends.
func (s *stream) interval(pos uint) (uint, error) {
	w := s.at(pos)
	ones := uint(bits.LeadingZeros64(^w))
	switch {
	case ones == 0:
		return pos + 1, s.within(pos + 1)
	case ones <= 3:
		n := uint(shortBits[ones&3])
		s.delta = (s.delta + short(w<<((ones+1)&63), n)) & s.mask
		pos += ones + 1 + n
	case s.layout == old:
		return s.intervalOld(pos, w)
	case ones == 4:
		s.delta = (s.delta + short(w<<5, 32)) & s.mask
		pos += 37
	case s.layout == long:
		s.done = true
		return pos + 5, s.closed(pos + 5)
	case ones == 5:
		s.delta += s.whole(pos + 6)
		pos += 70
	default:
		s.done = true
		return pos + 6, s.closed(pos + 6)
	}
	return pos, s.within(pos)
}

// intervalOld is interval for what the layout Series4h has in the place of long prefixes.
func (s *stream) intervalOld(pos uint, w uint64) (uint, error) {
	w <<= 4
	if w>>32 != math.MaxUint32 {
		s.delta = (s.delta + w>>32) & s.mask
		return pos + 36, s.within(pos + 36)
	}
	s.done = true
	if w<<32>>63 != 0 { // the marker ends in a zero bit
		return pos + 37, ErrCorrupt
	}
	return pos + 37, s.closed(pos + 37)
}

// shortBits are the bits behind the prefixes of 1 to 3 ones.
var shortBits = [4]uint8{0, 7, 9, 12}

// short returns the signed number in the top n bits of w.
func short(w uint64, n uint) uint64 {
	u := w >> (-n & 63)
	if u > 1<<((n-1)&63) {
		u -= 1 << (n & 63)
	}
	return u
}

func (s *stream) within(pos uint) error {
	if pos > s.end {
		return ErrTruncated
	}
	return nil
}

// closed says whether the stream may end at pos: only zeros up to the next whole byte, and nothing behind it.
func (s *stream) closed(pos uint) error {
	switch {
	case pos > s.end:
		return ErrTruncated
	case !s.marked || s.end-pos > 7 || s.near(pos) != 0:
		return ErrCorrupt
	}
	return nil
}

// finish says whether the stream ends where it is, after as many points as its header states.
func (s *stream) finish() error {
	_, err := s.interval(s.pos)
	if err == nil && !s.done {
		err = ErrCorrupt
	}
	return err
}

// points reads points into ts and vs, which are equally long, until they are full or the stream ends or fails.
// What it read before an error is good.
func (s *stream) points(ts []int64, vs []float64) (n int, err error) {
	for n < len(ts) {
		if int(s.pos>>3) < len(s.b)-margin {
			n += s.quick(s.b, 0, ts[n:], vs[n:])
		} else {
			n += s.quickNear(ts[n:], vs[n:])
			if s.pos > s.end {
				return n - 1, ErrTruncated
			}
		}
		if n == len(ts) {
			break
		}
		if err = s.point(); err != nil || s.done {
			break
		}
		ts[n], vs[n] = int64(s.t), math.Float64frombits(s.prev)
		n++
	}
	return n, err
}

// quickNear is quick near the end, on a copy that is padded with zeros. The last of the points that it reads may
// end in these.
func (s *stream) quickNear(ts []int64, vs []float64) int {
	var room [2*margin + 2]byte
	from := s.pos >> 3
	n := s.rest(room[:margin+2], int(from))
	return s.quick(room[:n+margin], from*8, ts, vs)
}

// margin is how many bytes must lie behind the one in which a point begins, so that quick may load whatever it needs:
// up to 16 bits of time and 13 of the window, then 9 bytes.
const margin = 13

// quick reads points as long as they are of the usual kind and begin more than margin before the end of b, which is
// the stream from bit from on. It is the inner loop of all reading, and keeps to what fits the registers; whatever
// is rare, or wrong, it leaves to point. A point that is wrong may have left its mark: point will find it so.
func (s *stream) quick(b []byte, from uint, ts []int64, vs []float64) (n int) {
	pos := s.pos - from
	t, delta, prev, mask := s.t, s.delta, s.prev, s.mask
	trail, right := s.trail, 64-s.width
	vs = vs[:len(ts)]
	for n < len(ts) {
		o := int(pos >> 3)
		if o >= len(b)-margin {
			break
		}
		w := load(b, o) << (pos & 7)
		p := pos + 1
		if int64(w) >= 0 {
			w <<= 1
		} else {
			ones := uint(bits.LeadingZeros64(^w))
			if ones > 3 {
				break
			}
			n := uint(shortBits[ones&3])
			w <<= (ones + 1) & 63
			delta = (delta + short(w, n)) & mask
			w <<= n & 63
			p += ones + n
		}
		if int64(w) >= 0 {
			p++
		} else {
			if w<<1>>63 == 0 {
				p += 2
				w <<= 2
			} else {
				right = uint(64-w>>51) & 63 // 64 is written as 0
				trail = right - uint(w>>57&31)
				p += 13
				w <<= 13
			}
			if trail > 63 || right > 63 { // no window yet, or one that sticks out
				break
			}
			if right < p-pos+7 { // the difference goes on behind the word
				o := int(p >> 3)
				if o >= len(b)-8 {
					break // never, but the compiler must know
				}
				w = load(b, o)<<(p&7) | uint64(b[o+8])>>(8-p&7)
			}
			prev ^= w >> right << trail
			p += 64 - right
		}
		pos = p
		t = (t + delta) & mask
		ts[n], vs[n] = int64(t), math.Float64frombits(prev)
		n++
	}
	s.pos, s.t, s.prev, s.trail, s.width = pos+from, t, prev, trail, 64-right
	s.delta = delta
	return n
}

// point reads one point, of any kind, anywhere.
func (s *stream) point() error {
	pos, err := s.interval(s.pos)
	if err != nil || s.done {
		return err
	}
	if w := s.at(pos); int64(w) >= 0 {
		pos++
	} else {
		pos += 2
		if w<<1>>63 == 1 {
			s.width = uint(w>>51-1)&63 + 1 // 64 is written as 0
			s.trail = 64 - s.width - uint(w>>57&31)
			pos += 11
		}
		if s.width == 0 || s.trail > 63 {
			return ErrCorrupt
		}
		s.prev ^= s.whole(pos) >> (-s.width & 63) << (s.trail & 63)
		pos += s.width
	}
	if pos > s.end {
		return ErrTruncated
	}
	s.pos = pos
	s.t = (s.t + s.delta) & s.mask
	return nil
}
