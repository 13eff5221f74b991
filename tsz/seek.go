package tsz

// SeekTo goes on to the first point whose time is not before t, and reports whether there is one; if not, the series
// has ended, as after Next. It never goes back: a point that d is at already, and that is not before t, stays.
// Blocks that end before t are passed by on what their headers say, and within a packed block nothing that lies
// before t is decoded, where times and values allow that.
func (d *Decoder) SeekTo(t int64) bool {
	if d.i >= 0 && d.i < d.n && d.ts[d.i] >= t {
		return true
	}
	for {
		for d.i++; d.i < d.n; d.i++ {
			if d.ts[d.i] >= t {
				return true
			}
		}
		d.pass(t)
		if !d.fill() {
			return false
		}
		d.i = -1
	}
}

// pass goes past what lies before t and can be told to do so without being read.
func (d *Decoder) pass(t int64) {
	if d.kind != blocks || d.err != nil {
		return
	}
	for d.left == 0 || d.h.Last < t {
		d.left = 0
		if !d.nextBlock() {
			return
		}
	}
	if d.h.codec != codecPacked {
		return
	}
	if !d.open {
		if _, d.err = d.begin(); d.err != nil {
			return
		}
	}
	d.p.seek(t)
	if d.left = uint32(d.p.count - d.p.row); d.left == 0 {
		d.err = ErrCorrupt // the header states a point that is not before t
	}
}
