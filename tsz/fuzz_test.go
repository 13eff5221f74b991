package tsz

import (
	"encoding/binary"
	"math"
	"testing"
)

// seriesOf makes a series of bytes: a control byte for each point says how its time and its value follow from those before.
func seriesOf(b []byte, unit Unit) series {
	s := series{name: "fuzz", unit: unit % units}
	if len(b) < 9 {
		return s
	}
	s.t0 = int64(binary.BigEndian.Uint64(b))
	if s.unit == Seconds32 {
		s.t0 &= math.MaxUint32
	}
	t, delta, v := s.t0, int64(60), 1.0
	for b = b[8:]; len(b) > 9 && len(s.ts) < 3000; b = b[1:] {
		c := b[0]
		word := binary.BigEndian.Uint64(b[1:])
		if c&7 > 3 {
			delta = int64(word >> (c % 61))
			b = b[1:]
		}
		next := t + delta
		if next <= t || s.unit == Seconds32 && next > math.MaxUint32 {
			break
		}
		switch t = next; c >> 3 & 7 {
		case 0, 1:
		case 2, 3:
			v += float64(int8(word))
		case 4:
			v = float64(int16(word)) / 100
		case 5:
			v = specials[int(word%uint64(len(specials)))]
		case 6:
			v = math.Float64frombits(math.Float64bits(v) ^ word>>(c%64))
		case 7:
			v = math.Float64frombits(word)
			b = b[1:]
		}
		s.ts, s.vs = append(s.ts, t), append(s.vs, v)
	}
	return s
}

func addSeries(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz, and other letters that make points"), uint8(0))
	f.Add(make([]byte, 200), uint8(2))
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(i * 151)
	}
	f.Add(b, uint8(4))
	f.Add(b[100:], uint8(0))
}

// Every series comes back, whichever way it was written and is read.
func FuzzRoundTrip(f *testing.F) {
	addSeries(f)
	f.Fuzz(func(t *testing.T, b []byte, unit uint8) {
		s := seriesOf(b, Unit(unit))
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		var d Decoder
		d.ResetSnapshot(e.Snapshot())
		wantPoints(t, &d, s)
		d.ResetStream(s.unit, s.t0, e.Finish())
		wantAll(t, &d, s)
		d.Reset(e.AppendBlock(nil))
		wantPoints(t, &d, s)
	})
}

// Codec B gives what went in, and is never larger than codec A.
func FuzzSeal(f *testing.F) {
	addSeries(f)
	f.Fuzz(func(t *testing.T, b []byte, unit uint8) {
		s := seriesOf(b, Unit(unit))
		sealed := mustSeal(t, s)
		if len(s.ts) == 0 {
			return
		}
		var d Decoder
		d.Reset(sealed)
		wantPoints(t, &d, s)
		d.Reset(sealed)
		if at := s.ts[len(s.ts)/2]; !d.SeekTo(at) {
			t.Fatalf("nothing at %d: %v", at, d.Err())
		}
		if at, v := d.At(); at != s.ts[len(s.ts)/2] || !sameBits(v, s.vs[len(s.ts)/2]) {
			t.Fatalf("SeekTo led to %d %v", at, v)
		}
		if len(s.ts) <= MaxBlock {
			h, err := ParseHeader(sealed)
			a := len(encoderOf(t, s.unit, streamStart(s.unit, s.ts[0]), s.ts, s.vs).Finish())
			if err != nil || h.Size != len(sealed) || h.Size-h.size() > a {
				t.Fatalf("sealed to %d bytes, a stream takes %d: %v", h.Size-h.size(), a, err)
			}
		}
	})
}

// Any bytes are read without panic, without end and without more points than they can hold.
func FuzzDecode(f *testing.F) {
	for _, s := range corpus() {
		s = s.cut(20)
		f.Add(encoderOf(f, s.unit, s.t0, s.ts, s.vs).Finish(), uint8(s.unit), false)
		f.Add(encoderOf(f, s.unit, s.t0, s.ts, s.vs).AppendBlock(nil), uint8(s.unit), true)
		f.Add(mustSeal(f, s), uint8(s.unit), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, unit uint8, sign bool) {
		if sign && len(b) >= headerSize+statsSize { // get past the checksums
			h := Header{HasStats: b[6] == hasStats}
			n := h.size()
			size := int(binary.BigEndian.Uint32(b[12:]))
			if size <= len(b)-n {
				fix := Header{
					codec: codec(b[4]), Unit: Unit(b[5]), HasStats: h.HasStats, Count: binary.BigEndian.Uint32(b[8:]),
					First: int64(binary.BigEndian.Uint64(b[16:])), Last: int64(binary.BigEndian.Uint64(b[24:])),
				}
				b = append([]byte(nil), b[:n+size]...)
				fix.put(b)
			}
		}
		readAny(t, b, Unit(unit)%units)
	})
}

// A stream of bytes reads as the bit-at-a-time reader reads it, as far as that goes.
func FuzzDifferentialDecode(f *testing.F) {
	for _, s := range corpus() {
		if s = s.cut(20); s.unit == Seconds32 {
			f.Add(encoderOf(f, s.unit, s.t0, s.ts, s.vs).Finish())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		var d Decoder
		d.ResetStream(Seconds32, 1000, b)
		it := newBitIterator(1000, b)
		for d.Next() {
			at, v := d.At()
			if !it.next() {
				t.Fatalf("a point at %d that the other reader has not: %v", at, it.err)
			}
			if other, w := it.at(); int64(other) != at || !sameBits(v, w) {
				t.Fatalf("%d %v, the other reader has %d %v", at, v, other, w)
			}
		}
		if d.Err() == nil && it.next() {
			t.Fatal("the other reader has more points")
		}
	})
}

// Both layouts are what the naive model writes.
func FuzzDifferential(f *testing.F) {
	addSeries(f)
	f.Fuzz(func(t *testing.T, b []byte, unit uint8) {
		s := seriesOf(b, Unit(unit))
		want := modelStream(s.unit.layout(), s.t0, s.ts, s.vs)
		if got := encoderOf(t, s.unit, s.t0, s.ts, s.vs).Finish(); string(got) != string(want) {
			t.Fatalf("stream\n%x, want\n%x", got, want)
		}
	})
}

// Wherever a series is split, put away and taken up, it is the series that was never split.
func FuzzResume(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz, and other letters that make points"), uint8(0), uint16(7))
	f.Add(make([]byte, 200), uint8(2), uint16(90))
	f.Fuzz(func(t *testing.T, b []byte, unit uint8, split uint16) {
		s := seriesOf(b, Unit(unit))
		at := int(split) % (len(s.ts) + 1)
		want := encoderOf(t, s.unit, s.t0, s.ts, s.vs).Finish()
		first := encoderOf(t, s.unit, s.t0, s.ts[:at], s.vs[:at])
		e := NewEncoder(Microseconds, 1, nil)
		if err := e.Resume(first.AppendBlock(nil)); err != nil {
			t.Fatal(err)
		}
		appendAll(t, e, s.ts[at:], s.vs[at:])
		if got := e.Finish(); string(got) != string(want) {
			t.Fatalf("split at %d:\n%x, want\n%x", at, got, want)
		}
	})
}

// Snapshots are read in another goroutine while the encoder goes on: for the race detector.
func FuzzSnapshotRace(f *testing.F) {
	addSeries(f)
	f.Fuzz(func(t *testing.T, b []byte, unit uint8) {
		s := seriesOf(b, Unit(unit))
		snaps := make(chan Snapshot, len(s.ts)+1)
		bad := make(chan int)
		go func() {
			n := 0
			for snap := range snaps {
				var d Decoder
				d.ResetSnapshot(snap)
				for i := range snap.Len() {
					at, v := int64(0), 0.0
					if d.Next() {
						at, v = d.At()
					}
					if at != s.ts[i] || !sameBits(v, s.vs[i]) {
						n++
						break
					}
				}
			}
			bad <- n
		}()
		e := NewEncoder(s.unit, s.t0, nil)
		for i := range s.ts {
			appendAll(t, e, s.ts[i:i+1], s.vs[i:i+1])
			if i%8 == 0 || i < 20 {
				snaps <- e.Snapshot()
			}
		}
		e.Finish()
		snaps <- e.Snapshot()
		close(snaps)
		if n := <-bad; n > 0 {
			t.Fatalf("%d snapshots read otherwise", n)
		}
	})
}
