package tsz

import "testing"

func TestWide(t *testing.T) {
	for _, g := range generators {
		for _, u := range []Unit{Seconds32, Milliseconds} {
			ts, vs := g.points(240)
			b := encoderOf(t, u, 0, ts, vs).Finish()
			var d Decoder
			d.ResetStream(u, 0, b)
			i := 0
			for ; d.Next(); i++ {
				a, v := d.At()
				if a != ts[i] || v != vs[i] {
					t.Fatal(g.name, u, i, a, v, vs[i])
				}
			}
			if i != 240 || d.Err() != nil {
				t.Error(g.name, u, i, d.Err())
			}
		}
	}
}
