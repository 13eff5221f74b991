package tsz

import (
	"errors"
	"math"
	"testing"
)

// TestRefusals: a refused point leaves no trace, at any position.
func TestRefusals(t *testing.T) {
	for _, unit := range []Unit{Seconds32, Nanoseconds} {
		ts, vs := generators[1].points(100)
		want := encoderOf(t, unit, 0, ts, vs).Finish()
		e := NewEncoder(unit, 0, &EncoderOptions{MaxPoints: 100})
		for i := range ts {
			if i > 0 {
				wantErr(t, e.Append(ts[i]-1, 7), ErrDuplicate)
				wantErr(t, e.Append(ts[i]-2, 7), ErrOutOfOrder)
				if unit == Nanoseconds {
					wantErr(t, e.Append(math.MinInt64, 7), ErrOutOfOrder)
				}
			}
			if unit == Seconds32 {
				for _, at := range []int64{-1, math.MinInt64, 1 << 32, math.MaxInt64} {
					wantErr(t, e.Append(at, 7), ErrRange)
				}
			}
			if err := e.Append(ts[i], vs[i]); err != nil {
				t.Fatal(err)
			}
		}
		wantErr(t, e.Append(1000, 7), ErrFull)
		wantErr(t, e.Append(100, 7), ErrDuplicate)
		if e.Len() != 100 {
			t.Errorf("%d points", e.Len())
		}
		if got := e.Finish(); string(got) != string(want) {
			t.Errorf("%v: refused points left traces:\n%x\n%x", unit, got, want)
		}
		wantErr(t, e.Append(1000, 7), ErrFinished)
		if got := e.Finish(); string(got) != string(want) {
			t.Errorf("%v: finished again, or after an Append: %x", unit, got)
		}
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// TestFirstTimes: the first point may be anywhere, whatever t0 is.
func TestFirstTimes(t *testing.T) {
	times := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 59, 60, 61, math.MaxUint32 - 1, math.MaxUint32, math.MaxInt64 - 1, math.MaxInt64}
	for _, unit := range []Unit{Seconds32, Seconds, Nanoseconds} {
		for _, t0 := range times {
			for _, first := range times {
				if unit == Seconds32 && uint64(first) > math.MaxUint32 {
					continue
				}
				s := series{name: "first", unit: unit, t0: t0, ts: []int64{first}, vs: []float64{math.Pi}}
				if first != math.MaxInt64 && (unit != Seconds32 || first != math.MaxUint32) {
					s.ts, s.vs = append(s.ts, first+1), append(s.vs, 1)
				}
				e := encoderOf(t, unit, t0, s.ts, s.vs)
				var d Decoder
				d.ResetSnapshot(e.Snapshot())
				wantPoints(t, &d, s)
				d.ResetStream(unit, t0, e.Finish())
				wantPoints(t, &d, s)
				d.Reset(e.AppendBlock(nil))
				wantPoints(t, &d, s)
				d.Reset(mustSeal(t, s))
				wantPoints(t, &d, s)
			}
		}
	}
}

// TestReset: a used encoder gives the bytes of a new one, in the same memory.
func TestReset(t *testing.T) {
	e := NewEncoder(Seconds32, 0, &EncoderOptions{Buffer: make([]byte, 0, 4096)})
	room := &e.buf[0]
	for range 2 {
		for _, s := range corpus() {
			if s.unit != Seconds32 || len(s.ts) > 400 {
				continue
			}
			e.Reset(s.t0)
			appendAll(t, e, s.ts, s.vs)
			if got, want := e.Finish(), encoderOf(t, s.unit, s.t0, s.ts, s.vs).Finish(); string(got) != string(want) {
				t.Errorf("%s: %x, want %x", s.name, got, want)
			}
			if &e.buf[0] != room {
				t.Fatalf("%s: other memory", s.name)
			}
		}
	}
}

// TestExactLength is B15 of the reports (see TestRegressions): no spare byte at the end, whatever the number of bits.
func TestExactLength(t *testing.T) {
	seen := make(map[int64]bool)
	for _, s := range corpus() {
		e := NewEncoder(s.unit, s.t0, nil)
		_, end := s.unit.layout().end()
		for i := range s.ts {
			appendAll(t, e, s.ts[i:i+1], s.vs[i:i+1])
			bits, size := e.Size()
			seen[bits%8] = true
			if want := int(bits+int64(end)+7) / 8; size != want || len(e.Snapshot().AppendStream(nil)) != want {
				t.Fatalf("%s: %d bits make %d bytes, want %d", s.name, bits, size, want)
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("only %d ends were tried", len(seen))
	}
}

// TestSnapshotStays is B09 and B12 of the reports: what a snapshot holds never changes, whatever the encoder does next.
func TestSnapshotStays(t *testing.T) {
	for _, s := range corpus() {
		if len(s.ts) > 400 {
			continue
		}
		e := NewEncoder(s.unit, s.t0, nil)
		var snaps []Snapshot
		var blocks [][]byte
		take := func() {
			snaps = append(snaps, e.Snapshot())
			blocks = append(blocks, snaps[len(snaps)-1].AppendBlock(nil))
		}
		take()
		for i := range s.ts {
			appendAll(t, e, s.ts[i:i+1], s.vs[i:i+1])
			take()
		}
		e.Finish()
		take()
		e.Reset(7)
		for i := range int64(2000) {
			if err := e.Append(i, -1/float64(i)); err != nil {
				t.Fatal(err)
			}
		}
		var d Decoder
		for i, snap := range snaps {
			if got := snap.AppendBlock(nil); string(got) != string(blocks[i]) {
				t.Fatalf("%s: snapshot %d changed", s.name, i)
			}
			d.ResetSnapshot(snap)
			wantPoints(t, &d, s.cut(i))
		}
	}
}

// TestSnapshotRace is B10 and B11 of the reports, for the race detector: snapshots are read while the encoder goes on.
func TestSnapshotRace(t *testing.T) {
	s := corpus()[2]
	e := NewEncoder(s.unit, s.t0, nil)
	done := make(chan string)
	for i := range s.ts {
		appendAll(t, e, s.ts[i:i+1], s.vs[i:i+1])
		snap := e.Snapshot()
		go func() {
			var d Decoder
			d.ResetSnapshot(snap)
			n, _, err := d.scan(0)
			if err != nil || int(n) != i+1 || len(snap.AppendBlock(nil)) == 0 {
				done <- "a snapshot reads otherwise"
				return
			}
			done <- ""
		}()
	}
	e.Finish()
	for range s.ts {
		if complaint := <-done; complaint != "" {
			t.Error(complaint)
		}
	}
}

func TestAllocations(t *testing.T) {
	s := corpus()[5]
	e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
	stream := append([]byte(nil), e.Finish()...)
	block, sealed := e.AppendBlock(nil), mustSeal(t, s)
	ts, vs := make([]int64, len(s.ts)), make([]float64, len(s.ts))
	e.Reset(s.t0)
	for name, f := range map[string]func(){
		"encode": func() {
			e.Reset(s.t0)
			for i := range s.ts {
				if e.Append(s.ts[i], s.vs[i]) != nil {
					panic("refused")
				}
			}
			e.Finish()
		},
		"AppendBlock": func() { block = e.AppendBlock(block[:0]) },
		"Snapshot":    func() { block = e.Snapshot().AppendBlock(block[:0]) },
		"stream": func() {
			var d Decoder
			d.ResetStream(s.unit, s.t0, stream)
			drain(&d)
		},
		"sealed": func() {
			var d Decoder
			d.Reset(sealed)
			d.SeekTo(s.ts[100])
			if _, err := d.DecodeAll(ts, vs); err != nil {
				panic(err)
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { pushWords(e, s.ts[:1], s.vs[:1]) }); n != 0 {
		t.Errorf("reset: %v allocations", n)
	}
}

func TestNoUnit(t *testing.T) {
	var d Decoder
	d.ResetStream(units, 0, []byte{0xf8})
	if d.Next() || !errors.Is(d.Err(), ErrRange) {
		t.Errorf("a stream of no unit: %v", d.Err())
	}
	if _, err := Seal(nil, units, []int64{1}, []float64{1}); !errors.Is(err, ErrRange) {
		t.Errorf("sealed in no unit: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an encoder of no unit")
		}
	}()
	NewEncoder(units, 0, nil)
}
