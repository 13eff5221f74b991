package tsz

import (
	"math"
	"math/bits"
)

// A stream may declare any window that holds the bits of its differences, and whoever sees all points can choose
// better than the rule of an Encoder. Cut into runs that share a window, the differences that are not 0 cost 11
// bits for each run, and for each difference 2 bits and the width of the run's window. The cheapest cut is found
// from the end: what remains behind a run costs the same however the run began.

// windows are the differences of a block that are not 0, and the plan for them.
type windows struct {
	n     int
	xs    [MaxBlock]uint64
	least [MaxBlock + 1]int // bits from here to the end if every window were free
	cost  [MaxBlock + 1]int // bits from here to the end if a window is declared here
	end   [MaxBlock]int     // where that window ends
}

const declaration = 11 // bits that a window costs

// add notes the differences between the values.
func (w *windows) add(vs []float64) {
	w.n = 0
	for i := 1; i < len(vs); i++ {
		if x := math.Float64bits(vs[i]) ^ math.Float64bits(vs[i-1]); x != 0 {
			w.xs[w.n] = x
			w.n++
		}
	}
	w.least[w.n], w.cost[w.n] = 0, 0
	for i := w.n - 1; i >= 0; i-- {
		w.least[i] = w.least[i+1] + 2 + 64 - zeros(w.xs[i]) - bits.TrailingZeros64(w.xs[i])
	}
}

// zeros counts the leading zeros that a window can leave out.
func zeros(x uint64) int { return min(bits.LeadingZeros64(x), maxLead) }

// bound is a number of bits that no plan can beat.
func (w *windows) bound() int {
	if w.n == 0 {
		return 0
	}
	return w.least[0] + declaration
}

// plan finds the cheapest windows.
func (w *windows) plan() {
	for i := w.n - 1; i >= 0; i-- {
		w.cost[i] = math.MaxInt
		lead, trail := 64, 64
		for j := i; j < w.n; j++ {
			lead, trail = min(lead, zeros(w.xs[j])), min(trail, bits.TrailingZeros64(w.xs[j]))
			run := declaration + (j+1-i)*(2+64-lead-trail)
			if run+w.least[j+1] >= w.cost[i] {
				break // what the run wastes only grows
			}
			if c := run + w.cost[j+1]; c < w.cost[i] {
				w.cost[i], w.end[i] = c, j+1
			}
		}
	}
}

// window returns the bits that the differences from i to j have between them.
func (w *windows) window(i, j int) (lead, trail uint) {
	var all uint64
	for _, x := range w.xs[i:j] {
		all |= x
	}
	return uint(zeros(all)), uint(bits.TrailingZeros64(all))
}

// encode appends all points to e, which is empty, by the plan.
func (w *windows) encode(e *Encoder, ts []int64, vs []float64) error {
	if err := e.Append(ts[0], vs[0]); err != nil {
		return err
	}
	next, end := 0, 0 // of the differences
	for i := 1; i < len(ts); i++ {
		if len(e.buf)-e.pos < reserve {
			e.grow(reserve)
		}
		e.appendTime(ts[i])
		if sameBits(vs[i], vs[i-1]) {
			e.put(0, 1)
			continue
		}
		head, n := uint64(0b10), uint(2)
		if next == end {
			end = w.end[next]
			e.lead, e.trail = w.window(next, end)
			e.width = 64 - e.lead - e.trail
			head, n = uint64(0b11<<11|e.lead<<6|e.width&63), 13
		}
		e.putLong(head, n, w.xs[next]>>e.trail, e.width)
		next++
	}
	return nil
}

// appendTime is the half of Append that concerns the time.
func (e *Encoder) appendTime(t int64) {
	delta := uint64(t) - uint64(e.last)
	head, n := uint64(0), uint(1)
	if dod := delta - e.delta; dod != 0 {
		head, n = e.interval(dod)
	}
	e.put(head, n)
	e.n, e.last, e.delta = e.n+1, t, delta
}

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
