package tsz

import (
	"math"
	"math/bits"
)

// A stream may declare any window that holds the bits of its differences, and whoever sees all points can choose
// better than the rule of an Encoder. Cut into runs that share a window, the differences that are not 0 cost 11
// bits for each run, and for each difference 2 bits and the width of the run's window. The cheapest cut is found
// from the end: what remains behind a run costs the same however the run began.

// windows are the differences of a block that are not 0, and the plan for them. The plan for the differences from i
// on begins with a run to end[i], in the window run[i], and costs cost[i] bits.
type windows struct {
	n     int
	xs    [MaxBlock]uint64
	least int // bits if every difference had a window of its own for nothing
	cost  [MaxBlock + 1]int
	end   [MaxBlock]int
	run   [MaxBlock]window
}

// window is what differences have in common: zeros at both ends.
type window struct{ lead, trail int }

func windowOf(x uint64) window {
	return window{min(bits.LeadingZeros64(x), maxLead), bits.TrailingZeros64(x)}
}

// with widens a window.
func (w window) with(v window) window { return window{min(w.lead, v.lead), min(w.trail, v.trail)} }

// bits returns what a difference takes in the window.
func (w window) bits() int { return 2 + 64 - w.lead - w.trail }

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
	w.least = 0
	for _, x := range w.xs[:w.n] {
		w.least += windowOf(x).bits()
	}
}

// bound is a number of bits that no plan can beat.
func (w *windows) bound() int {
	if w.n == 0 {
		return 0
	}
	return w.least + declaration
}

// plan finds the cheapest windows.
func (w *windows) plan() {
	w.cost[w.n] = 0
	for i := w.n - 1; i >= 0; i-- {
		own := windowOf(w.xs[i])
		w.cost[i] = math.MaxInt
		if i+1 < w.n { // the run behind, longer by one: often the best, and then the search is short
			w.try(i, w.end[i+1], own.with(w.run[i+1]))
		}
		run := own
		for j := i; j < w.n; j++ {
			run = run.with(windowOf(w.xs[j]))
			// A longer run could be cut here for one more declaration, and then costs no more.
			if w.try(i, j+1, run)-declaration >= w.cost[i] {
				break
			}
		}
	}
}

// try returns what a plan costs that begins with a run from i to end, and takes it if it is the cheapest so far.
func (w *windows) try(i, end int, run window) int {
	c := declaration + (end-i)*run.bits() + w.cost[end]
	if c < w.cost[i] {
		w.cost[i], w.end[i], w.run[i] = c, end, run
	}
	return c
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
			e.lead, e.trail = uint(w.run[next].lead), uint(w.run[next].trail)
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
