package tsz

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"
)

// readAny reads whatever b may be, in every way there is, and checks what must hold for any bytes.
func readAny(t testing.TB, b []byte, unit Unit) {
	t.Helper()
	var d Decoder
	for _, r := range []struct {
		name  string
		limit int
		reset func()
	}{
		{"blocks", math.MaxInt, func() { d.Reset(b) }},
		{"stream", 4*len(b) + 1, func() { d.ResetStream(unit, 1000, b) }},
		{"series4h", 4*len(b) + 1, func() { d.ResetSeries4h(b, 0) }},
		{"series4h with interval", 4*len(b) + 1, func() { d.ResetSeries4h(b, 7) }},
	} {
		r.reset()
		n := 0
		for d.Next() {
			if n++; d.Err() != nil {
				t.Fatalf("%s: %v, but there are points", r.name, d.Err())
			}
		}
		err := d.Err()
		if n > r.limit {
			t.Fatalf("%s: %d points of %d bytes", r.name, n, len(b))
		}
		if d.Next() || d.SeekTo(math.MinInt64) || d.Err() != err { //nolint:errorlint // the very same
			t.Fatalf("%s: goes on behind its end, %v", r.name, err)
		}
		if err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatalf("%s: %v", r.name, err)
		}
		r.reset()
		ts, vs := make([]int64, n+1), make([]float64, n+1)
		if k, again := d.DecodeAll(ts, vs); k != n || again != err { //nolint:errorlint // the very same
			t.Fatalf("%s: at once %d points and %v, one by one %d and %v", r.name, k, again, n, err)
		}
		r.reset()
		for at := int64(math.MinInt64); d.SeekTo(at); {
			if at, _ = d.At(); at > math.MaxInt64-1000 {
				break
			}
			at += 1000
		}
	}
}

// TestTruncated cuts every golden stream at every bit, and every block at every byte: never a clean end.
func TestTruncated(t *testing.T) {
	for _, s := range corpus() {
		s = s.cut(60)
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		bits, _ := e.Size()
		_, end := s.unit.layout().end()
		stream := e.Finish()
		for cut := range int(bits) + int(end) {
			b := append([]byte(nil), stream[:(cut+7)/8]...)
			if cut%8 != 0 {
				b[len(b)-1] &= 0xff << (8 - cut%8)
			}
			var d Decoder
			d.ResetStream(s.unit, s.t0, b)
			n := 0
			for ; d.Next(); n++ {
				if at, v := d.At(); n >= len(s.ts) || at != s.ts[n] || !sameBits(v, s.vs[n]) {
					break // what was cut off reads as zeros
				}
			}
			for d.Next() {
			}
			if !errors.Is(d.Err(), ErrTruncated) && !errors.Is(d.Err(), ErrCorrupt) {
				t.Fatalf("%s: cut to %d of %d bits ends with %v", s.name, cut, bits, d.Err())
			}
			readAny(t, b, s.unit)
		}
		for _, b := range [][]byte{e.AppendBlock(nil), mustSeal(t, s)} {
			for cut := range b {
				var d Decoder
				d.Reset(b[:cut])
				if n, _, err := d.scan(0); !errors.Is(err, ErrTruncated) || n > 0 {
					t.Fatalf("%s: block cut to %d bytes has %d points, %v", s.name, cut, n, err)
				}
			}
		}
	}
}

// TestFlipped changes every bit: an error in a block, at worst wrong points in a bare stream.
func TestFlipped(t *testing.T) {
	for _, s := range corpus() {
		s = s.cut(50)
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		stream := append([]byte(nil), e.Finish()...)
		for i := range 8 * len(stream) {
			stream[i/8] ^= 0x80 >> (i % 8)
			readAny(t, stream, s.unit)
			stream[i/8] ^= 0x80 >> (i % 8)
		}
		for _, b := range [][]byte{e.AppendBlock(nil), mustSeal(t, s)} {
			for i := range 8 * len(b) {
				b[i/8] ^= 0x80 >> (i % 8)
				var d Decoder
				d.Reset(b)
				if n, _, err := d.scan(0); err == nil || n > 0 {
					t.Fatalf("%s: bit %d of a block changed, and %d points are read, %v", s.name, i, n, err)
				}
				b[i/8] ^= 0x80 >> (i % 8)
			}
		}
	}
}

// TestContradiction is B27 and B43 of the reports: headers that do not fit their payloads, with all checksums right.
func TestContradiction(t *testing.T) {
	s := corpus()[0].cut(100)
	for _, b := range [][]byte{encoderOf(t, s.unit, s.t0, s.ts, s.vs).AppendBlock(nil), mustSeal(t, s)} {
		for _, test := range []struct {
			name  string
			spoil func(h *Header, payload []byte) []byte
			most  uint64 // points before the error
			want  error
		}{
			{"nothing", func(_ *Header, p []byte) []byte { return p }, 100, nil},
			{"more points", func(h *Header, p []byte) []byte { h.Count++; return p }, 101, ErrCorrupt},
			{"many more points", func(h *Header, p []byte) []byte { h.Count = 1 << 31; return p }, 0, ErrCorrupt},
			{"fewer points", func(h *Header, p []byte) []byte { h.Count--; return p }, 99, ErrCorrupt},
			{"no points", func(h *Header, p []byte) []byte { h.Count = 0; return p }, 0, ErrCorrupt},
			{"one point", func(h *Header, p []byte) []byte { h.Count = 1; return p }, 0, ErrCorrupt},
			{"later end", func(h *Header, p []byte) []byte { h.Last++; return p }, 100, ErrCorrupt},
			{"earlier end", func(h *Header, p []byte) []byte { h.Last--; return p }, 100, ErrCorrupt},
			{"end before start", func(h *Header, p []byte) []byte { h.Last = h.First - 1; return p }, 0, ErrCorrupt},
			{"other start", func(h *Header, p []byte) []byte { h.First--; return p }, 100, ErrCorrupt},
			{"behind its unit", func(h *Header, p []byte) []byte { h.Last = 1 << 32; return p }, 0, ErrCorrupt},
			{"no unit", func(h *Header, p []byte) []byte { h.Unit = units; return p }, 0, ErrCorrupt},
			{"no codec", func(h *Header, p []byte) []byte { h.codec = 3; return p }, 0, ErrVersion},
			{"other codec", func(h *Header, p []byte) []byte { h.codec = 3 - h.codec; return p }, 100, ErrCorrupt},
			{"garbage behind", func(_ *Header, p []byte) []byte { return append(p, 0) }, 100, ErrCorrupt},
			{"byte missing", func(_ *Header, p []byte) []byte { return p[:len(p)-1] }, 100, nil},
			{"no payload", func(_ *Header, p []byte) []byte { return nil }, 0, ErrCorrupt},
		} {
			h, err := ParseHeader(b)
			if err != nil {
				t.Fatal(err)
			}
			p := test.spoil(&h, append([]byte(nil), b[h.size():]...))
			spoiled := append(h.room(nil), p...)
			h.put(spoiled)
			var d Decoder
			d.Reset(spoiled)
			n, _, err := d.scan(0)
			if test.name == "byte missing" {
				if err == nil {
					t.Errorf("%s: not noticed", test.name)
				}
				continue
			}
			if !errors.Is(err, test.want) || n > test.most {
				t.Errorf("%s (codec %d): %d points, %v, want %v", test.name, h.codec, n, err, test.want)
			}
		}
	}
}

// TestReserved: bytes that are not used yet are zero, or a later release has made the block.
func TestReserved(t *testing.T) {
	b := encoderOf(t, Seconds, 0, []int64{1}, []float64{1}).AppendBlock(nil)
	for _, at := range []int{6, 7} {
		spoiled := append([]byte(nil), b...)
		spoiled[at] = 2
		sum := crc32.Checksum(spoiled[:headerSize-4], castagnoli)
		binary.BigEndian.PutUint32(spoiled[headerSize-4:], sum)
		if _, err := ParseHeader(spoiled); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d set: %v", at, err)
		}
	}
}

// TestSequence: blocks one behind the other must be of one series.
func TestSequence(t *testing.T) {
	block := func(unit Unit, from, n int64) []byte {
		e := NewEncoder(unit, from, nil)
		for i := range n {
			if err := e.Append(from+i, float64(i)); err != nil {
				t.Fatal(err)
			}
		}
		return e.AppendBlock(nil)
	}
	for _, test := range []struct {
		name   string
		blocks [][]byte
		n      uint64
		want   error
	}{
		{"in order", [][]byte{block(Seconds, 0, 10), block(Seconds, 10, 5), block(Seconds, 100, 1)}, 16, nil},
		{"overlap", [][]byte{block(Seconds, 0, 10), block(Seconds, 9, 5)}, 10, ErrCorrupt},
		{"other unit", [][]byte{block(Seconds, 0, 10), block(Milliseconds, 10, 5)}, 10, ErrCorrupt},
		{"empty alone", [][]byte{block(Seconds, 3, 0)}, 0, nil},
		{"empty first", [][]byte{block(Seconds, 0, 0), block(Seconds, 10, 5)}, 0, ErrCorrupt},
		{"empty last", [][]byte{block(Seconds, 0, 10), block(Seconds, 20, 0)}, 10, ErrCorrupt},
		{"garbage behind", [][]byte{block(Seconds, 0, 10), {0}}, 10, ErrCorrupt},
		{"half behind", [][]byte{block(Seconds, 0, 10), block(Seconds, 10, 5)[:30]}, 10, ErrTruncated},
		{"of a later version", [][]byte{block(Seconds, 0, 10), append([]byte("tsz\x02"), make([]byte, 60)...)}, 10, ErrVersion},
	} {
		var all []byte
		for _, b := range test.blocks {
			all = append(all, b...)
		}
		var d Decoder
		d.Reset(all)
		if n, _, err := d.scan(0); n != test.n || !errors.Is(err, test.want) {
			t.Errorf("%s: %d points, %v, want %d, %v", test.name, n, err, test.n, test.want)
		}
		readAny(t, all, Seconds)
	}
}

// TestTrailing: behind the end marker come zeros up to the next byte, and nothing.
func TestTrailing(t *testing.T) {
	for _, g := range golden {
		stream := encoderOf(t, Seconds32, g.t0, g.ts, g.vs).Finish()
		var d Decoder
		for _, tail := range []string{"\x00", "\xff", "more"} {
			d.ResetStream(Seconds32, g.t0, append(append([]byte(nil), stream...), tail...))
			if _, _, err := d.scan(0); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s and %q behind it: %v", g.name, tail, err)
			}
		}
		d.ResetStream(Seconds32, g.t0, stream)
		if _, _, err := d.scan(0); err != nil {
			t.Errorf("%s: %v", g.name, err)
		}
		if last := stream[len(stream)-1]; last&1 == 0 {
			d.ResetStream(Seconds32, g.t0, flipped(stream))
			if _, _, err := d.scan(0); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s and a bit behind its end: %v", g.name, err)
			}
		}
	}
}
