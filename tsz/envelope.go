package tsz

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// Part of the format, never change.
const (
	magic   = "tsz"
	version = 1

	headerSize = 40
	statsSize  = 24

	hasStats = 1 // the only flag

	codecStream codec = 1 // a finished stream
	codecPacked codec = 2 // times and values apart, packed
)

// codec says what the payload of a block is.
type codec uint8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what a block states about itself, so that a reader may pass it by.
type Header struct {
	Unit  Unit
	Count uint32 // points
	First int64  // time of the first point; of an empty series, where its first interval begins
	Last  int64  // time of the last point
	Size  int    // bytes of the whole block

	// Stats are there in blocks that Seal made: of the values that are not NaN, the least, the greatest and the
	// sum, added in order. Without any such value they are +Inf, -Inf and 0.
	HasStats      bool
	Min, Max, Sum float64

	codec codec
}

// size returns the bytes of the header.
func (h *Header) size() int {
	if h.HasStats {
		return headerSize + statsSize
	}
	return headerSize
}

// room appends the room for the header to dst.
func (h *Header) room(dst []byte) []byte {
	var zeros [headerSize + statsSize]byte
	return append(dst, zeros[:h.size()]...)
}

// put writes the header of the block b, whose payload is in place, into the room for it.
func (h *Header) put(b []byte) {
	head, payload := b[:h.size()], b[h.size():]
	h.Size = len(b)
	copy(head, magic)
	head[3] = version
	head[4] = byte(h.codec)
	head[5] = byte(h.Unit)
	binary.BigEndian.PutUint32(head[8:], h.Count)
	binary.BigEndian.PutUint32(head[12:], uint32(len(payload)))
	binary.BigEndian.PutUint64(head[16:], uint64(h.First))
	binary.BigEndian.PutUint64(head[24:], uint64(h.Last))
	if h.HasStats {
		head[6] = hasStats
		for i, v := range []float64{h.Min, h.Max, h.Sum} {
			binary.BigEndian.PutUint64(head[32+8*i:], math.Float64bits(v))
		}
	}
	sums := head[len(head)-8:]
	binary.BigEndian.PutUint32(sums, crc32.Checksum(payload, castagnoli))
	binary.BigEndian.PutUint32(sums[4:], crc32.Checksum(head[:len(head)-4], castagnoli))
}

// ParseHeader reads the header of the block that b begins with. The header is verified, what follows it is not
// looked at, and may be missing. ErrTruncated says that b ends within the header, ErrVersion that a later release
// wrote it, ErrCorrupt anything else.
func ParseHeader(b []byte) (h Header, err error) {
	_, err = h.parse(b)
	return h, err
}

// parse reads the header that b begins with, and returns the checksum of the payload.
func (h *Header) parse(b []byte) (sum uint32, err error) {
	if n := min(len(b), len(magic)); string(b[:n]) != magic[:n] {
		return 0, ErrCorrupt
	}
	if len(b) < headerSize {
		return 0, ErrTruncated
	}
	if b[3] != version {
		return 0, ErrVersion
	}
	h.codec, h.Unit, h.HasStats = codec(b[4]), Unit(b[5]), b[6] == hasStats
	h.Count = binary.BigEndian.Uint32(b[8:])
	h.First, h.Last = int64(binary.BigEndian.Uint64(b[16:])), int64(binary.BigEndian.Uint64(b[24:]))
	n := h.size()
	if len(b) < n {
		return 0, ErrTruncated
	}
	if crc32.Checksum(b[:n-4], castagnoli) != binary.BigEndian.Uint32(b[n-4:]) || b[6]&^hasStats|b[7] != 0 {
		return 0, ErrCorrupt
	}
	h.Min, h.Max, h.Sum = 0, 0, 0
	if h.HasStats {
		h.Min, h.Max, h.Sum = number(b[32:]), number(b[40:]), number(b[48:])
	}
	length := binary.BigEndian.Uint32(b[12:])
	if int64(length) > maxBuffer {
		return 0, ErrCorrupt // more than this machine can address
	}
	h.Size = n + int(length)
	return binary.BigEndian.Uint32(b[n-8:]), h.check(uint64(length))
}

// number reads a value.
func number(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) }

// check finds what no writer writes.
func (h *Header) check(length uint64) error {
	if h.codec != codecStream && h.codec != codecPacked {
		return ErrVersion
	}
	ordered := h.First < h.Last
	if h.Count < 2 {
		ordered = h.First == h.Last
	}
	least := uint64(0)
	if h.Count > 0 {
		least = 65 + 2*(uint64(h.Count)-1)
	}
	switch {
	case h.Unit >= units, !ordered:
	case h.Unit == Seconds32 && h.Count > 0 && (uint64(h.First)|uint64(h.Last))>>32 != 0:
	case h.codec == codecStream && length*8 < least:
	case h.codec == codecPacked && (h.Count == 0 || h.Count > MaxBlock):
	default:
		return nil
	}
	return ErrCorrupt
}

// payload returns the verified bytes behind the header of the block that b begins with.
func payload(b []byte, h *Header, sum uint32) ([]byte, error) {
	if len(b) < h.Size {
		return nil, ErrTruncated
	}
	p := b[h.size():h.Size]
	if crc32.Checksum(p, castagnoli) != sum {
		return nil, ErrCorrupt
	}
	return p, nil
}
