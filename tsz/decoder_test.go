package tsz

import (
	"errors"
	"math"
	"testing"
)

// every way to read a series.
func TestReaders(t *testing.T) {
	var d Decoder // one for all: what one series leaves must not show in the next
	for _, s := range corpus() {
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		snap := e.Snapshot()
		stream, block, sealed := e.Finish(), e.AppendBlock(nil), mustSeal(t, s)
		if again := snap.AppendBlock(nil); string(again) != string(block) {
			t.Errorf("%s: block of the snapshot differs from that of the finished stream", s.name)
		}
		for _, reset := range []func(){
			func() { d.ResetStream(s.unit, s.t0, stream) },
			func() { d.Reset(block) },
			func() { d.ResetSnapshot(snap) },
			func() { d.ResetSnapshot(e.Snapshot()) },
			func() {
				if d.Reset(sealed); len(s.ts) == 0 {
					d.Reset(block) // no points, no block
				}
			},
		} {
			reset()
			wantPoints(t, &d, s)
			reset()
			wantAll(t, &d, s)
		}
	}
}

// DecodeAll goes on behind Next, and in pieces.
func TestDecodeAllInPieces(t *testing.T) {
	for _, s := range corpus() {
		for _, b := range [][]byte{encoderOf(t, s.unit, s.t0, s.ts, s.vs).AppendBlock(nil), mustSeal(t, s)} {
			var d Decoder
			if d.Reset(b); len(b) == 0 {
				continue
			}
			got := series{name: s.name}
			var ts [70]int64
			var vs [70]float64
			for piece := 0; len(got.ts) < len(s.ts); piece++ {
				if piece%3 == 0 {
					if !d.Next() {
						t.Fatal(d.Err())
					}
					ts[0], vs[0] = d.At()
					got.ts, got.vs = append(got.ts, ts[0]), append(got.vs, vs[0])
					continue
				}
				n, err := d.DecodeAll(ts[:piece%70], vs[:piece%70])
				if err != nil {
					t.Fatal(err)
				}
				got.ts, got.vs = append(got.ts, ts[:n]...), append(got.vs, vs[:n]...)
			}
			if n, err := d.DecodeAll(ts[:], vs[:]); n != 0 || err != nil || d.Next() {
				t.Errorf("%s: %d points behind the end, %v", s.name, n, err)
			}
			for i := range s.ts {
				if got.ts[i] != s.ts[i] || !sameBits(got.vs[i], s.vs[i]) {
					t.Fatalf("%s: point %d differs", s.name, i)
				}
			}
		}
	}
}

// TestSeekTo is B42 of the reports: to the last point and past it, and on from there.
func TestSeekTo(t *testing.T) {
	for _, s := range corpus() {
		if len(s.ts) == 0 {
			continue
		}
		enclosed := encoderOf(t, s.unit, s.t0, s.ts, s.vs).AppendBlock(nil)
		for _, b := range [][]byte{enclosed, mustSeal(t, s)} {
			for step := 1; step <= len(s.ts); step += 1 + step/3 {
				seekAll(t, s, b, step)
			}
		}
	}
}

// seekAll goes through a series in steps, to the times of points and to those just before and behind.
func seekAll(t *testing.T, s series, b []byte, step int) {
	t.Helper()
	var d Decoder
	d.Reset(b)
	for i := step - 1; i < len(s.ts); i += step {
		to := s.ts[i]
		if i > 0 && s.ts[i-1] < to-1 {
			to--
		}
		for range 2 { // the second time it is there already
			if !d.SeekTo(to) {
				t.Fatalf("%s: nothing at %d: %v", s.name, to, d.Err())
			}
			if at, v := d.At(); at != s.ts[i] || !sameBits(v, s.vs[i]) {
				t.Fatalf("%s: SeekTo(%d) led to %d %v, want %d %v", s.name, to, at, v, s.ts[i], s.vs[i])
			}
		}
		if d.SeekTo(math.MinInt64); i+1 < len(s.ts) {
			if at, _ := d.At(); at != s.ts[i] {
				t.Fatalf("%s: SeekTo went back", s.name)
			}
			if !d.Next() {
				t.Fatalf("%s: Next behind SeekTo(%d): %v", s.name, to, d.Err())
			}
			if at, v := d.At(); at != s.ts[i+1] || !sameBits(v, s.vs[i+1]) {
				t.Fatalf("%s: Next behind SeekTo(%d) led to %d %v", s.name, to, at, v)
			}
		}
	}
	if last := s.ts[len(s.ts)-1]; last < math.MaxInt64 {
		if d.SeekTo(last+1) || d.Next() || d.SeekTo(math.MinInt64) || d.Err() != nil {
			t.Fatalf("%s: something behind the last point, or %v", s.name, d.Err())
		}
	}
}

// TestSeekPasses shows that SeekTo does not touch what lies before: it is damaged, and nobody notices.
func TestSeekPasses(t *testing.T) {
	var s series
	for _, s = range corpus() {
		if s.name == "counter" {
			break
		}
	}
	b := mustSeal(t, s)
	h, err := ParseHeader(b)
	if err != nil || h.Count != MaxBlock {
		t.Fatal(h, err)
	}
	b[h.Size-1] ^= 1
	var d Decoder
	d.Reset(b)
	if !d.SeekTo(s.ts[MaxBlock]) {
		t.Fatal(d.Err())
	}
	if at, v := d.At(); at != s.ts[MaxBlock] || v != s.vs[MaxBlock] {
		t.Errorf("SeekTo led to %d %v", at, v)
	}
	d.Reset(b)
	if d.SeekTo(s.ts[MaxBlock-1]) || !errors.Is(d.Err(), ErrCorrupt) {
		t.Errorf("damage in the block was not noticed: %v", d.Err())
	}
}

func TestPoints(t *testing.T) {
	s := corpus()[0]
	b := mustSeal(t, s)
	i := 0
	for p, err := range Points(b) {
		if err != nil || p.T != s.ts[i] || p.V != s.vs[i] {
			t.Fatalf("point %d: %v, %v", i, p, err)
		}
		if i++; i == 100 {
			break
		}
	}
	var last error
	for _, err := range Points(b[:len(b)-1]) {
		last = err
	}
	if !errors.Is(last, ErrTruncated) {
		t.Errorf("a truncated block ends with %v", last)
	}
}

// TestZero: an empty decoder is at an end.
func TestZero(t *testing.T) {
	var d Decoder
	if d.Next() || d.SeekTo(0) || d.Err() != nil {
		t.Error("the zero Decoder has points")
	}
	d.ResetSnapshot(Snapshot{})
	if d.Next() || d.Err() != nil {
		t.Error("the zero Snapshot has points")
	}
	if got := (Snapshot{}).AppendStream(nil); string(got) != "\xf8" {
		t.Errorf("its stream is %x", got)
	}
	for _, b := range [][]byte{nil, {}} {
		d.Reset(b)
		if d.Next() || !errors.Is(d.Err(), ErrTruncated) {
			t.Errorf("no block: %v", d.Err())
		}
		d.ResetStream(Seconds32, 0, b)
		if d.Next() || !errors.Is(d.Err(), ErrTruncated) {
			t.Errorf("no stream: %v", d.Err())
		}
		d.ResetSeries4h(b, 0)
		if d.Next() || !errors.Is(d.Err(), ErrTruncated) {
			t.Errorf("no old stream: %v", d.Err())
		}
	}
}
