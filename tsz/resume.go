package tsz

// AppendBlock appends the series as it is now, as a block, to dst and returns the extended slice. The block is also
// the state of the encoder: see Resume.
func (e *Encoder) AppendBlock(dst []byte) []byte { return e.snapshot().AppendBlock(dst) }

// Resume makes the encoder go on where the block ends, at the exact bit: what is appended from then on gives the same
// stream as if the encoder had never been put away. The block is verified and decoded, so nothing in it is merely
// believed. Its points and its unit replace what the encoder had; limit and memory stay. A block of Seal can be
// resumed as well.
//
// Resume returns ErrTruncated, ErrCorrupt or ErrVersion for bytes that cannot be read or are more than one block, and
// ErrFull for more points than the encoder may have. After an error the encoder is as it was.
func (e *Encoder) Resume(block []byte) error {
	h, err := ParseHeader(block)
	switch {
	case err != nil:
		return err
	case len(block) > h.Size:
		return ErrCorrupt
	case h.Count > e.max:
		return ErrFull
	}
	var d Decoder
	d.Reset(block)
	n, first, err := d.scan(h.First)
	if err != nil {
		return err
	}
	e.unit, e.layout = h.Unit, h.Unit.layout()
	if h.codec == codecStream {
		e.take(&d.s, n, first)
		return nil
	}
	e.Reset(streamStart(h.Unit, first))
	for d.Reset(block); d.Next(); {
		if err := e.Append(d.At()); err != nil {
			return err // never: the times rise, and they fit
		}
	}
	return nil
}

// ResumeStream is Resume for a finished stream without header, whose encoder counted from t0 in this one's unit. Only its
// form can be verified.
func (e *Encoder) ResumeStream(t0 int64, b []byte) error {
	var d Decoder
	d.ResetStream(e.unit, t0, b)
	n, first, err := d.scan(t0)
	if err != nil {
		return err
	}
	if n > uint64(e.max) {
		return ErrFull
	}
	e.take(&d.s, n, first)
	return nil
}

// scan reads all points and returns their number, and the time of the first, which is start if there is none.
func (d *Decoder) scan(start int64) (n uint64, first int64, err error) {
	first = start
	for ; d.Next(); n++ {
		if n == 0 {
			first, _ = d.At()
		}
	}
	return n, first, d.Err()
}

// take makes the encoder one of the n points of a stream that was read to its end.
func (e *Encoder) take(s *stream, n uint64, first int64) {
	e.Reset(first)
	if n == 0 {
		return
	}
	e.pos, e.used = int(s.pos/8), s.pos%8
	e.acc = s.at(s.pos-e.used) &^ (1<<(64-e.used) - 1)
	if len(e.buf) < e.pos+reserve {
		e.buf = make([]byte, e.pos+max(reserve, firstSize))
	}
	copy(e.buf, s.b[:e.pos])
	e.n, e.last, e.delta, e.prev = uint32(n), int64(s.t), s.delta, s.prev
	e.lead, e.trail, e.width = 64-s.width-s.trail, s.trail, s.width
}
