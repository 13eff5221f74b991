package tsz

import (
	"iter"
	"math"
)

// Point is one value at one time.
type Point struct {
	T int64 // in the series' unit
	V float64
}

// batch is how many points a Decoder reads ahead: enough to make the work for each call vanish, and little memory.
const batch = 32

// Decoder reads points in order. The zero Decoder is at the end of an empty series; the Resets give it another.
// It allocates nothing, never writes to the bytes it reads, and they must not change until it is done or reset:
// memory that is mapped must stay so. It is not safe for concurrent use; any number may read the same bytes.
//
//	for d.Next() {
//		use(d.At())
//	}
//	return d.Err()
type Decoder struct {
	ts [batch]int64
	vs [batch]float64
	i  int // At, in the batch
	n  int // points in the batch

	err  error
	kind source
	left uint32 // points of this block or snapshot that were not read yet
	open bool   // the payload is verified and being read
	h    Header // of this block
	sum  uint32 // checksum of its payload
	b    []byte // this block and those behind it
	s    stream
	p    packed
}

// source is what a decoder reads.
type source uint8

const (
	nothing  source = iota
	blocks          // of any codec
	bare            // a stream without header
	snapshot        // of a stream that goes on
)

func (d *Decoder) reset(kind source) {
	d.i, d.n = -1, 0
	d.err, d.kind, d.left, d.open, d.b = nil, kind, 0, false, nil
}

// Reset makes d a reader of the blocks in b, one behind the other, as Snapshot.AppendBlock and Seal append them.
// Each is verified before its first point is read.
func (d *Decoder) Reset(b []byte) {
	d.reset(blocks)
	d.b = b
	if len(b) == 0 {
		d.err = ErrTruncated
		return
	}
	d.enter()
}

// ResetStream makes d a reader of a finished stream without header, as Encoder.Finish returns it, whose encoder
// counted from t0 in that unit. It has no checksum: damage may go unnoticed and is then read as wrong points.
func (d *Decoder) ResetStream(unit Unit, t0 int64, b []byte) {
	d.resetBare(unit.layout(), t0, b)
	if unit >= units {
		d.err = ErrRange
	}
}

func (d *Decoder) resetBare(l layout, t0 int64, b []byte) {
	d.reset(bare)
	if len(b) > maxBuffer {
		d.err = ErrCorrupt
		return
	}
	d.s.read(l, t0, b)
	d.left = math.MaxUint32
}

// ResetSnapshot makes d a reader of a snapshot.
func (d *Decoder) ResetSnapshot(s Snapshot) {
	d.reset(snapshot)
	d.left, d.h = s.n, Header{First: s.first, codec: codecStream}
	d.s.readSnapshot(&s)
}

// Next goes on to the next point and reports whether there is one. After false it stays false, and Err says why.
func (d *Decoder) Next() bool {
	d.i++
	return d.i < d.n || d.fill()
}

// At returns the point that Next or SeekTo went to. It may be called only after they reported true.
func (d *Decoder) At() (t int64, v float64) { return d.ts[d.i&(batch-1)], d.vs[d.i&(batch-1)] }

// Err returns nil as long as points are read, and after the last one if the series ended as it should.
// ErrTruncated says that bytes are missing, ErrCorrupt that they contradict themselves, ErrVersion that a later
// release wrote them, ErrRange that there is no such unit. Points before an error were read in good order.
func (d *Decoder) Err() error {
	if d.i < d.n {
		return nil
	}
	return d.err
}

// fill reads the next batch and reports whether it has a point. It stays a call so that Next is none.
//
//go:noinline
func (d *Decoder) fill() bool {
	d.i, d.n = 0, 0
	d.n = d.read(d.ts[:], d.vs[:])
	return d.n > 0
}

// DecodeAll reads the next points into ts and vs, which must be equally long, and returns how many. They are fewer
// than that only at the end of the series, or at an error, which is the one Err would return. It may follow Next
// and SeekTo: it begins behind their point.
func (d *Decoder) DecodeAll(ts []int64, vs []float64) (n int, err error) {
	vs = vs[:len(ts)]
	if at := d.i + 1; at < d.n {
		n = copy(ts, d.ts[at:d.n])
		copy(vs, d.vs[at:at+n])
		d.i += n
	}
	if n < len(ts) {
		d.i, d.n = 0, 0
		n += d.read(ts[n:], vs[n:])
		if n < len(ts) || d.left == 0 {
			return n, d.err
		}
	}
	return n, nil
}

// Points returns the points of the blocks in b. An error comes last, with a Point that is none.
func Points(b []byte) iter.Seq2[Point, error] {
	return func(yield func(Point, error) bool) {
		var d Decoder
		d.Reset(b)
		for d.Next() {
			t, v := d.At()
			if !yield(Point{t, v}, nil) {
				return
			}
		}
		if d.err != nil {
			yield(Point{}, d.err)
		}
	}
}

// read reads points into ts and vs, which are equally long, until they are full or nothing is left.
func (d *Decoder) read(ts []int64, vs []float64) (n int) {
	for n < len(ts) && d.err == nil {
		if d.left == 0 {
			if d.kind != blocks || !d.nextBlock() {
				return n
			}
			continue
		}
		k := len(ts) - n
		if uint32(min(k, math.MaxInt32)) > d.left {
			k = int(d.left)
		}
		n += d.readOpen(ts[n:n+k], vs[n:n+k])
	}
	return n
}

// readOpen reads points of one block, which has as many left.
func (d *Decoder) readOpen(ts []int64, vs []float64) (n int) {
	if !d.open {
		first, err := d.begin()
		if err != nil || d.left == 0 {
			d.err = err
			return 0
		}
		if first {
			ts[0], vs[0] = int64(d.s.t), math.Float64frombits(d.s.prev)
			n = 1
			d.left--
		}
	}
	var err error
	if d.kind == blocks && d.h.codec == codecPacked {
		d.p.points(ts[n:], vs[n:])
		d.left -= uint32(len(ts) - n)
		n = len(ts)
	} else {
		var k int
		k, err = d.s.points(ts[n:], vs[n:])
		n += k
		d.left -= uint32(k)
	}
	d.err = d.ended(err, ts[:n])
	return n
}

// begin opens what is to be read. In a stream it reads the first point, and reports that.
func (d *Decoder) begin() (first bool, err error) {
	d.open = true
	if d.kind == blocks {
		p, err := payload(d.b, &d.h, d.sum)
		if err != nil {
			return false, err
		}
		if d.h.codec == codecPacked {
			return false, d.p.read(d.b[:d.h.Size], &d.h)
		}
		d.s.read(d.h.Unit.layout(), 0, p)
	}
	first, err = d.s.first()
	switch {
	case err != nil:
	case !first && d.kind == bare:
		d.left = 0
	case !first:
		err = ErrCorrupt // the header states points
	case d.kind != bare: // where the first interval began is not stated, where it ended is
		d.s.t = uint64(d.h.First)
	}
	return first, err
}

// ended is what to make of the end of a run of points, which stopped for err.
func (d *Decoder) ended(err error, ts []int64) error {
	switch {
	case err != nil:
		return err
	case d.kind == bare:
		if d.s.done {
			d.left = 0
		} else {
			d.left = math.MaxUint32
		}
		return nil
	case d.s.done && d.h.codec == codecStream:
		return ErrCorrupt // before the stated number of points
	case d.left > 0 || d.kind != blocks:
		return nil
	case len(ts) > 0 && ts[len(ts)-1] != d.h.Last:
		return ErrCorrupt
	case d.h.codec == codecStream:
		return d.s.finish()
	}
	return nil
}

// enter reads the header that d.b begins with.
func (d *Decoder) enter() {
	d.sum, d.err = d.h.parse(d.b)
	d.left, d.open = d.h.Count, false
	d.s.done = false
	if d.err == nil && d.left == 0 {
		d.err = d.empty()
	}
	if d.err != nil {
		d.left = 0
	}
}

// empty verifies a block without points.
func (d *Decoder) empty() error {
	p, err := payload(d.b, &d.h, d.sum)
	if err != nil {
		return err
	}
	d.s.read(d.h.Unit.layout(), d.h.First, p)
	return d.s.finish()
}

// nextBlock goes on to the block behind this one, and reports whether there is one.
func (d *Decoder) nextBlock() bool {
	before := d.h
	if d.b = d.b[min(before.Size, len(d.b)):]; len(d.b) == 0 {
		d.kind = nothing
		return false
	}
	d.enter()
	if d.err == nil && (before.Count == 0 || d.h.Count == 0 || d.h.Unit != before.Unit || d.h.First <= before.Last) {
		d.err, d.left = ErrCorrupt, 0
	}
	return d.err == nil
}
