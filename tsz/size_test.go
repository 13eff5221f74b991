package tsz

import "testing"

func TestShow(t *testing.T) {
	for _, g := range generators {
		ts, vs := g.points(240)
		e := encoderOf(t, Seconds32, 0, ts, vs)
		a := len(e.Finish())
		b, err := Seal(nil, Seconds32, ts, vs)
		if err != nil {
			t.Error(g.name, err)
			continue
		}
		h, err := ParseHeader(b)
		var s sealer
		s.windows.add(vs)
		s.windows.plan()
		s.values.choose(vs)
		t.Log(g.name, a, "best", bytesOf(headBits(Seconds32, ts, vs)+s.windows.cost[0]), float64(s.windows.cost[0]+64)/240, "B", len(b), len(b)-h.size(), float64(len(b)-h.size())*8/240, h.codec, s.values.mode, s.values.width, s.values.exceptions, s.values.scale.code)
	}
}
