package torture

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// TestPowerLoss cuts the power of real file systems right after an acknowledgement, again and again, and verifies what
// they have when they are mounted the next time. The disk under them loses nothing and keeps the order of writes; only
// what the file system had not yet sent there is gone.
func TestPowerLoss(t *testing.T) {
	if !isolated(t) {
		return
	}
	s := seed(t)
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			t.Parallel()
			var left, acked atomic.Int64
			left.Store(int64(amount(4, 200, 5_000)))
			cuts := left.Load()
			report(t, "T2", func() string {
				return fmt.Sprintf("%d power losses on %s, %d acknowledgements", cuts-max(left.Load(), 0), fs, acked.Load())
			})
			for i := range uint64(2) {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					cutLane(t, fs, s+i<<32, &left, &acked)
				})
			}
		})
	}
}

// cutLane makes one file system after the other, as long as there are lives left and nothing is wrong.
func cutLane(t *testing.T, fs string, seed uint64, left, acked *atomic.Int64) {
	for stack := uint64(0); left.Load() > 0; stack++ {
		good := false
		t.Run(fmt.Sprint(stack), func(t *testing.T) {
			acked.Add(cutLives(t, fs, seed+stack, left))
			good = true
		})
		if !good {
			left.Store(0) // One failure is enough, and to look into it takes longer than this test.
			return
		}
	}
}

// cutLives makes a file system and leads lives on it that a power loss ends, while there are any left.
func cutLives(t *testing.T, fs string, seed uint64, left *atomic.Int64) int64 {
	options := ""
	if fs == "ext4" && seed%2 == 0 {
		options = "data=writeback" // which keeps no order between data and names
	}
	d := newDisk(t, fs, options, diskSizes[fs])
	l := newLane(t, d.mount, seed)
	for l.lives < livesPerStack && left.Add(-1) >= 0 {
		life := Life{Workers: 1, Old: l.old(100)}
		if l.rng.IntN(2) == 0 { // With others about, some sync comes soon after every promise and hides one that is missing.
			life.Workers, life.Chores = 2+l.rng.IntN(6), l.chores(l.rng.IntN(3))
		}
		life.Cut = &Cut{Mount: d.mount, After: 1 + l.rng.IntN(1+l.rng.IntN(80)), Flush: l.rng.IntN(4) == 0}
		l.lead(life, func(string, func()) {})
		must(t, d.detach())
		must(t, d.attach())
		l.verify()
	}
	return int64(l.ledger.Acked())
}
