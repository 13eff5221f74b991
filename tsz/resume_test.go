package tsz

import (
	"errors"
	"testing"
)

// TestResume: split anywhere, put away, taken up, the rest appended, it is the stream that was never split.
func TestResume(t *testing.T) {
	phases := make(map[int64]bool)
	other := NewEncoder(Seconds, 5, nil)
	for _, s := range corpus() {
		if len(s.ts) > 400 {
			continue
		}
		want := string(encoderOf(t, s.unit, s.t0, s.ts, s.vs).Finish())
		e := NewEncoder(s.unit, s.t0, nil)
		for i := 0; ; i++ {
			bits, _ := e.Size()
			phases[bits%64] = true
			block, stream := e.AppendBlock(nil), e.Snapshot().AppendStream(nil)
			if err := other.Resume(block); err != nil {
				t.Fatalf("%s: resumed at %d: %v", s.name, i, err)
			}
			wantRest(t, other, s, i, want)
			bare := NewEncoder(s.unit, 99, nil)
			if err := bare.ResumeStream(s.t0, stream); err != nil {
				t.Fatalf("%s: stream resumed at %d: %v", s.name, i, err)
			}
			wantRest(t, bare, s, i, want)
			if i == len(s.ts) {
				break
			}
			appendAll(t, e, s.ts[i:i+1], s.vs[i:i+1])
		}
		other.Finish()
	}
	if len(phases) != 64 {
		t.Errorf("only %d of 64 phases were tried", len(phases))
	}
}

// wantRest appends the points from i on and compares. Of long series it takes every tenth split.
func wantRest(t *testing.T, e *Encoder, s series, i int, want string) {
	t.Helper()
	if got, again := e.AppendBlock(nil), encoderOf(t, s.unit, s.t0, s.ts[:i], s.vs[:i]).AppendBlock(nil); string(got) != string(again) {
		t.Fatalf("%s: resumed at %d, the block is\n%x, want\n%x", s.name, i, got, again)
	}
	if i%10 != 0 && len(s.ts) > 100 {
		return
	}
	appendAll(t, e, s.ts[i:], s.vs[i:])
	if got := e.Finish(); string(got) != want {
		t.Fatalf("%s: resumed at %d, the stream is\n%x, want\n%x", s.name, i, got, want)
	}
}

func TestResumeSealed(t *testing.T) {
	for _, s := range corpus() {
		if len(s.ts) < 10 {
			continue
		}
		s = s.cut(MaxBlock + 5)
		half := s.cut(len(s.ts) / 2)
		e := NewEncoder(Microseconds, 0, nil)
		if err := e.Resume(mustSeal(t, half)); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		appendAll(t, e, s.ts[len(half.ts):], s.vs[len(half.ts):])
		var d Decoder
		d.Reset(e.AppendBlock(nil))
		wantPoints(t, &d, s)
	}
}

// TestResumeRefused: an encoder that refused to resume is as it was.
func TestResumeRefused(t *testing.T) {
	ts, vs := generators[0].points(50)
	e := NewEncoder(Seconds32, 0, &EncoderOptions{MaxPoints: 60})
	appendAll(t, e, ts, vs)
	want := string(e.AppendBlock(nil))
	many, manyV := generators[1].points(61)
	other := encoderOf(t, Milliseconds, 0, many, manyV)
	block, stream := other.AppendBlock(nil), other.Snapshot().AppendStream(nil)
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"too many points", e.Resume(block), ErrFull},
		{"nothing", e.Resume(nil), ErrTruncated},
		{"half", e.Resume([]byte(want[:len(want)/2])), ErrTruncated},
		{"twice the same", e.Resume([]byte(want + want)), ErrCorrupt},
		{"two", e.Resume([]byte(want + string(encoderOf(t, Seconds32, 0, []int64{51}, []float64{1}).AppendBlock(nil)))), ErrCorrupt},
		{"damaged", e.Resume(flipped([]byte(want))), ErrCorrupt},
		{"damaged sealed", e.Resume(flipped(mustSeal(t, series{unit: Seconds, ts: ts, vs: vs}))), ErrCorrupt},
		{"half a stream", e.ResumeStream(0, stream[:len(stream)/2]), ErrTruncated},
		{"no stream", e.ResumeStream(0, nil), ErrTruncated},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.err, test.want)
		}
	}
	tooMany := encoderOf(t, Seconds32, 0, many, manyV).Finish()
	wantErr(t, e.ResumeStream(0, tooMany), ErrFull)
	if got := string(e.AppendBlock(nil)); got != want {
		t.Errorf("a refused Resume changed the encoder:\n%x\n%x", got, want)
	}
}

// flipped is b with its last bit changed.
func flipped(b []byte) []byte {
	b = append([]byte(nil), b...)
	b[len(b)-1] ^= 1
	return b
}
