package tsz

import (
	"errors"
	"testing"
)

// TestLarge is B41 of the reports: no counter ends at 16 bits, and none long before memory does.
func TestLarge(t *testing.T) {
	for _, n := range []int{65_535, 65_536, 65_537, 5_000_000} {
		if testing.Short() && n > 100_000 {
			continue
		}
		e := NewEncoder(Seconds32, 0, nil)
		ts, vs := make([]int64, n), make([]float64, n)
		for i := range n {
			ts[i], vs[i] = int64(i), float64(i%1000)/8
			if err := e.Append(ts[i], vs[i]); err != nil {
				t.Fatalf("point %d: %v", i, err)
			}
		}
		s := series{name: "large", unit: Seconds32, ts: ts, vs: vs}
		var d Decoder
		d.ResetSnapshot(e.Snapshot())
		wantPoints(t, &d, s)
		block := e.AppendBlock(nil)
		if h, err := ParseHeader(block); err != nil || int(h.Count) != n || h.Size != len(block) {
			t.Fatalf("%+v, %v", h, err)
		}
		d.Reset(block)
		wantAll(t, &d, s)
		sealed := mustSeal(t, s)
		d.Reset(sealed)
		wantAll(t, &d, s)
		d.Reset(sealed)
		if !d.SeekTo(int64(n - 1)) {
			t.Fatal(d.Err())
		}
	}
}

// TestFullBytes: a stream that has no room left refuses the point.
func TestFullBytes(t *testing.T) {
	e := encoderOf(t, Seconds32, 0, []int64{1}, []float64{1})
	pos := e.pos
	e.pos = maxStream + 1
	if err := e.Append(2, 2); !errors.Is(err, ErrFull) {
		t.Errorf("%v, want ErrFull", err)
	}
	e.pos = pos
	appendAll(t, e, []int64{2}, []float64{2})
}
