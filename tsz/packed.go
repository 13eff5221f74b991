package tsz

import "math"

// packed reads the points of a packed block: the times, then the values, row by row.
type packed struct {
	row   int // the next one
	count int

	times  byte
	t      uint64 // time of the next row
	delta  uint64 // the interval behind it
	dod    uint64 // least difference of intervals
	dods   numbers
	values byte
	scale  decimal
	base   int64 // the least decimal or difference
	d      int64 // decimal of the row before
	keep   int64 // what of it the next one begins with: all bits of a delta, none of a frame
	ints   numbers
	value  float64 // constant

	exceptions []byte
	exception  int // the next one
}

// read makes p a reader of the block b, whose header is h.
func (p *packed) read(b []byte, h *Header) error {
	f := fields{b: b, at: h.size()}
	modes := f.byte()
	*p = packed{}
	p.times, p.values, p.count, p.t = modes&15, modes>>4, int(h.Count), uint64(h.First)
	p.readTimes(&f, h)
	p.readValues(&f)
	if f.bad || f.at != len(b) {
		return ErrCorrupt
	}
	return nil
}

func (p *packed) readTimes(f *fields, h *Header) {
	switch n := uint64(p.count) - 1; {
	case p.times == timesSteady:
		span := uint64(h.Last) - uint64(h.First)
		if n > 0 {
			p.delta = span / n
			f.bad = f.bad || span%n != 0
		}
	case p.times == timesPacked && n > 1:
		width := uint(f.byte())
		p.delta = f.uvarint()
		p.dod = uint64(f.varint())
		f.numbers(&p.dods, int(n)-1, width)
	case p.times == timesRaw:
		p.dods = numbers{b: f.b, at: uint(f.at) * 8}
		f.skip(8 * int(n))
	default:
		f.bad = true
	}
}

func (p *packed) readValues(f *fields) {
	if p.values == valuesConstant {
		p.value = math.Float64frombits(f.word())
		return
	}
	n := p.count
	var ok bool
	p.scale, ok = decimalOf(f.byte())
	width := uint(f.byte())
	switch p.values {
	case valuesFrame:
	case valuesDelta:
		p.d, p.keep = f.varint(), -1
		n--
	default:
		f.bad = true
	}
	p.base = f.varint()
	exceptions := int(f.uvarint() & math.MaxInt32)
	if !ok || exceptions > p.count {
		f.bad = true
		return
	}
	f.numbers(&p.ints, n, width)
	p.exceptions = f.exceptions(exceptions, p.count)
}

// points reads the next rows into ts and vs. There are as many.
func (p *packed) points(ts []int64, vs []float64) {
	p.readTimesInto(ts)
	p.readValuesInto(vs[:len(ts)])
	p.row += len(ts)
}

func (p *packed) readTimesInto(ts []int64) {
	t, delta := p.t, p.delta
	switch {
	case p.times == timesSteady:
		i := 0
		for ; i < len(ts)-3; i += 4 { // in fours, which take half the time
			ts[i], ts[i+1], ts[i+2], ts[i+3] = int64(t), int64(t+delta), int64(t+2*delta), int64(t+3*delta)
			t += 4 * delta
		}
		for ; i < len(ts); i++ {
			ts[i] = int64(t)
			t += delta
		}
	case p.times == timesRaw:
		for i := range ts {
			ts[i] = int64(t)
			t = p.rawTime(p.row + i + 1)
		}
	default:
		for i := range ts {
			ts[i] = int64(t)
			t += delta
			if k := p.row + i; k < p.count-2 {
				delta += p.dod + p.dods.number(uint(k))
			}
		}
	}
	p.t, p.delta = t, delta
}

// rawTime returns the time of a row, or 0 behind the last.
func (p *packed) rawTime(row int) uint64 {
	if row >= p.count {
		return 0
	}
	return load(p.dods.b, int(p.dods.at>>3)+(row-1)*8)
}

func (p *packed) readValuesInto(vs []float64) {
	if p.values == valuesConstant {
		for i := range vs {
			vs[i] = p.value
		}
		return
	}
	row := uint(p.row) // in the packed integers
	rest := vs
	if p.values == valuesDelta {
		if p.row == 0 && len(vs) > 0 {
			vs[0] = p.scale.value(p.d)
			rest = vs[1:]
		} else {
			row--
		}
	}
	if p.scale.by == 1 {
		p.d = p.ints.products(rest, row, p.d, p.keep, p.base, p.scale.mul)
	} else {
		p.d = p.ints.quotients(rest, row, p.d, p.keep, p.base, p.scale.by)
	}
	p.patch(vs)
}

// products and quotients read decimals from a row on, of which d is the one before, and return the last. They are
// loops apart because a division takes as long as all the rest; two numbers are taken from a word if it has them.
func (p *numbers) products(vs []float64, row uint, d, keep, base int64, mul float64) int64 {
	b, at, width, mask := p.loop(row)
	limit, i := len(b)-8, 0
	for pairs := p.pairs(vs); i < len(pairs)-1; i += 2 {
		at += width
		o := int(at >> 3)
		if o > limit {
			break // never, but the compiler must know
		}
		w := load(b, o) >> (^at & 7)
		d = d&keep + (base + int64(w>>(width&63)&mask))
		pairs[i] = float64(d) * mul
		d = d&keep + (base + int64(w&mask))
		pairs[i+1] = float64(d) * mul
		at += width
	}
	for ; i < len(vs); i++ {
		o := int(at >> 3)
		if o > limit {
			break // never
		}
		d = d&keep + (base + int64(load(b, o)>>(^at&7)&mask))
		vs[i] = float64(d) * mul
		at += width
	}
	return d
}

func (p *numbers) quotients(vs []float64, row uint, d, keep, base int64, by float64) int64 {
	b, at, width, mask := p.loop(row)
	limit, i := len(b)-8, 0
	for pairs := p.pairs(vs); i < len(pairs)-1; i += 2 {
		at += width
		o := int(at >> 3)
		if o > limit {
			break // never, but the compiler must know
		}
		w := load(b, o) >> (^at & 7)
		d = d&keep + (base + int64(w>>(width&63)&mask))
		pairs[i] = float64(d) / by
		d = d&keep + (base + int64(w&mask))
		pairs[i+1] = float64(d) / by
		at += width
	}
	for ; i < len(vs); i++ {
		o := int(at >> 3)
		if o > limit {
			break // never
		}
		d = d&keep + (base + int64(load(b, o)>>(^at&7)&mask))
		vs[i] = float64(d) / by
		at += width
	}
	return d
}

// pairs returns the part of vs whose numbers a word has two by two: all or nothing.
func (p *numbers) pairs(vs []float64) []float64 {
	if p.width > maxWidth/2 {
		return nil
	}
	return vs
}

// patch puts the values in place that are no decimals.
func (p *packed) patch(vs []float64) {
	for n := len(p.exceptions) / exceptionSize; p.exception < n; p.exception++ {
		i := exceptionAt(p.exceptions, p.exception) - p.row
		if i >= len(vs) {
			return
		}
		if i >= 0 {
			vs[i] = exceptionValue(p.exceptions, p.exception)
		}
	}
}

// seek goes on to the first row whose time is not before t. There is one.
func (p *packed) seek(t int64) {
	var ts [1]int64
	from := p.row
	if p.times == timesSteady {
		if wait := uint64(t) - p.t; int64(p.t) < t && p.delta > 0 {
			n := (wait-1)/p.delta + 1
			p.row += int(min(n, uint64(p.count-p.row)))
			p.t += uint64(p.row-from) * p.delta
		}
	} else {
		for int64(p.t) < t && p.row < p.count {
			p.readTimesInto(ts[:])
			p.row++
		}
	}
	if p.values == valuesDelta {
		for row := max(from, 1); row < p.row; row++ {
			p.d += p.base + int64(p.ints.number(uint(row-1)))
		}
	}
}
