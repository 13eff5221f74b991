package tsz

import (
	"encoding/binary"
	"math"
	"slices"
)

// Part of the format, never change: how a packed block holds its times and its values. The first byte of the
// payload has the times in its low half.
const (
	timesSteady = 0 // one interval for all: header and count say it
	timesPacked = 1 // differences of intervals
	timesRaw    = 2

	valuesConstant = 0
	valuesFrame    = 1 // decimals, as differences to the least
	valuesDelta    = 2 // decimals, as differences of neighbours to the least of them

	maxWidth      = 56 // bits of a packed number: one load has them at every position
	exceptionSize = 10 // position and value
)

// MaxBlock is the number of points in one block that Seal makes: a look-up decodes one block at most. 1024
// values are what the decimal codecs of this kind settled on. Part of the format.
const MaxBlock = 1024

// numbers are equally wide numbers, packed one behind the other, first bit first.
type numbers struct {
	b     []byte // the whole block: a header lies before the first number
	at    uint   // bit at which the first number begins
	width uint
}

// loop returns what it takes to read the numbers from one on. The word that is loaded for a number ends with the
// byte in which the number ends, so it never reaches beyond the block, and at is the bit 57 before that end:
//
//	load(b, int(at>>3)) >> (^at & 7) & mask
//
// is the number, and at+width the place of the next. Such a word holds maxWidth bits up to the number's end, or more.
func (p *numbers) loop(i uint) (b []byte, at, width uint, mask uint64) {
	return p.b, p.at + (i+1)*p.width - 57, p.width, 1<<(p.width&63) - 1
}

func (p *numbers) number(i uint) uint64 {
	b, at, _, mask := p.loop(i)
	return load(b, int(at>>3)) >> (^at & 7) & mask
}

// packer appends numbers to bytes.
type packer struct {
	b     []byte
	pos   int
	acc   uint64
	used  uint
	width uint
}

// packInto returns a packer of n numbers.
func packInto(dst []byte, n int, width uint) packer {
	size := bytesOf(n*int(width)) + 8 // put stores whole words
	return packer{b: slices.Grow(dst, size)[:len(dst)+size], pos: len(dst), width: width}
}

func (p *packer) append(v uint64) {
	p.pos, p.acc, p.used = put(p.b, p.pos, p.acc, p.used, v, p.width)
}

// close returns the bytes, with zero bits up to the last whole one.
func (p *packer) close() []byte { return p.b[:p.pos+int(p.used+7)/8] }

// fields reads a payload from its beginning. What is missing makes it bad.
type fields struct {
	b   []byte // the whole block
	at  int
	bad bool
}

func (f *fields) byte() byte {
	if f.bad || f.at >= len(f.b) {
		f.bad = true
		return 0
	}
	f.at++
	return f.b[f.at-1]
}

func (f *fields) skip(n int) {
	if f.bad || n > len(f.b)-f.at {
		f.bad = true
		return
	}
	f.at += n
}

func (f *fields) uvarint() uint64 {
	if f.bad {
		return 0
	}
	if f.at < len(f.b) && f.b[f.at] < 0x80 {
		f.at++
		return uint64(f.b[f.at-1])
	}
	v, n := binary.Uvarint(f.b[f.at:])
	f.bad = n <= 0
	f.at += max(n, 0)
	return v
}

func (f *fields) varint() int64 {
	v := f.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (f *fields) word() uint64 {
	f.skip(8)
	if f.bad {
		return 0
	}
	return load(f.b, f.at-8)
}

// numbers makes p the next n numbers, of a width, and sees that no bit behind them is set.
func (f *fields) numbers(p *numbers, n int, width uint) {
	p.b, p.at, p.width = f.b, uint(f.at)*8, width
	if width > maxWidth {
		f.bad = true
		return
	}
	bits := uint(n) * width
	f.skip(int(bits+7) / 8)
	if !f.bad && bits&7 != 0 && f.b[f.at-1]<<(bits&7) != 0 {
		f.bad = true
	}
}

// exceptions reads the values that are no decimals: positions that rise, below count.
func (f *fields) exceptions(n, count int) []byte {
	at := f.at
	f.skip(n * exceptionSize)
	if f.bad {
		return nil
	}
	b, last := f.b[at:f.at], -1
	for i := range n {
		pos := exceptionAt(b, i)
		f.bad = f.bad || pos <= last || pos >= count
		last = pos
	}
	return b
}

func exceptionAt(b []byte, i int) int { return int(binary.BigEndian.Uint16(b[i*exceptionSize:])) }

func exceptionValue(b []byte, i int) float64 { return number(b[i*exceptionSize+2:]) }

func appendException(dst []byte, pos int, v float64) []byte {
	return appendWord(binary.BigEndian.AppendUint16(dst, uint16(pos)), math.Float64bits(v))
}

func appendWord(dst []byte, w uint64) []byte { return binary.BigEndian.AppendUint64(dst, w) }

func appendUvarint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

func appendVarint(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }
