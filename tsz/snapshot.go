package tsz

// Snapshot is a series as it was at one moment. It is a small value that never changes: it may be read from any
// goroutine while the encoder goes on, is finished or reset. The bytes that it shares with the encoder are
// never written again; it has a copy of the open one. The zero Snapshot is an empty series.
type Snapshot struct {
	whole  []byte
	acc    uint64
	used   uint
	n      uint32
	first  int64
	last   int64
	unit   Unit
	layout layout
}

// Snapshot returns the series as it is now, in constant time and without copying it. Whoever calls it must keep
// Append from running at the same moment, as for any method of the encoder; to read the snapshot nothing is needed.
func (e *Encoder) Snapshot() Snapshot {
	s := e.snapshot()
	e.shared = true
	return s
}

func (e *Encoder) snapshot() Snapshot {
	s := Snapshot{
		whole: e.buf[:e.pos:e.pos], acc: e.acc, used: e.used,
		n: e.n, first: e.first, last: e.last, unit: e.unit, layout: e.layout,
	}
	if e.finished() {
		bits, _ := e.Size()
		s.open(bits)
	}
	return s
}

// open undoes the end marker of a finished stream: what it has behind its points is taken out of it.
func (s *Snapshot) open(bits int64) {
	whole := int(bits / 8)
	s.used = uint(bits % 8)
	s.acc = 0
	if s.used > 0 {
		s.acc = uint64(s.whole[whole]>>(8-s.used)) << (64 - s.used)
	}
	s.whole = s.whole[:whole:whole]
}

// Len returns the number of points.
func (s Snapshot) Len() int { return int(s.n) }

// AppendStream appends the stream, finished, to dst and returns the extended slice.
func (s Snapshot) AppendStream(dst []byte) []byte {
	var tail [8]byte
	end, n := s.layout.end()
	pos, _, used := put(tail[:], 0, s.acc, s.used, end, n)
	return append(append(dst, s.whole...), tail[:pos+int(used+7)/8]...)
}

// AppendBlock appends the series as a block to dst and returns the extended slice.
func (s Snapshot) AppendBlock(dst []byte) []byte {
	h := Header{codec: codecStream, Unit: s.unit, Count: s.n, First: s.first, Last: s.last}
	at := len(dst)
	dst = s.AppendStream(h.room(dst))
	h.put(dst[at:])
	return dst
}
