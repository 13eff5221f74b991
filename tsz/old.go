package tsz

// lostInterval is what the 14 bits of a first interval lose when it is 4.55 hours or longer.
const lostInterval = 1 << 14

// ResetSeries4h makes d a reader of a finished stream in the older layout Series4h, which is no longer written. Such a
// stream begins with its own t0, in seconds.
//
// Its first interval was cut to 14 bits. If interval is not 0, the times are known to be multiples of it, and a first time
// that is not one gets back the 16384 s that it lost. Otherwise it gets them back if the second point would come before
// the first. What cannot be told that way, a first interval of more than 9.1 hours above all, is read as it is written.
func (d *Decoder) ResetSeries4h(b []byte, interval uint32) {
	d.resetBare(old, 0, b)
	d.s.multiple = uint64(interval)
}

// firstOld is first for this layout.
func (s *stream) firstOld() (ok bool, err error) {
	if s.end < 32 {
		return false, ErrTruncated
	}
	if len(s.b) == 9 { // one point takes 19 bytes
		_, err = s.intervalOld(32, s.at(32))
		if err == nil && !s.done {
			err = ErrTruncated
		}
		return false, err
	}
	s.pos = 32 + 14 + 64
	if s.pos > s.end {
		return false, ErrTruncated
	}
	s.delta = s.at(32) >> 50
	s.prev = s.whole(32 + 14)
	t0 := s.at(0) >> 32
	if s.lost(t0) {
		s.delta += lostInterval
	}
	s.t = (t0 + s.delta) & s.mask
	return true, nil
}

// lost reports whether the first interval must be longer than it is written.
func (s *stream) lost(t0 uint64) bool {
	if s.multiple > 0 {
		return (t0+s.delta)&s.mask%s.multiple != 0
	}
	ahead := *s
	if _, err := ahead.interval(s.pos); err != nil || ahead.done {
		return false
	}
	return int32(uint32(ahead.delta)) < 0
}
