package torture

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// lanes is how many stacks suffer at the same time: most of a life is waiting for a disk.
const lanes = 3

// TestKill kills drivers at random moments, a third of them while they open what the last one left, and verifies what is
// left. It shows what the death of a process does; the page cache survives that.
func TestKill(t *testing.T) {
	kills := amount(12, 500, 10_000)
	var acked, nested atomic.Int64
	report(t, "T1", func() string { return fmt.Sprintf("%d kills, %d acknowledgements", kills, acked.Load()) })
	report(t, "T19", func() string { return fmt.Sprintf("%d kills during the open after a kill", nested.Load()) })
	s := seed(t)
	var left atomic.Int64
	left.Store(int64(kills))
	t.Run("lanes", func(t *testing.T) {
		for i := range uint64(lanes) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				t.Cleanup(func() {
					if t.Failed() {
						left.Store(0) // One failure is enough, and to look into it takes longer than this test.
					}
				})
				top := fastDir(t)
				if i == 0 {
					top = t.TempDir()
				}
				for stack := uint64(0); left.Load() > 0; stack++ {
					dir, err := os.MkdirTemp(top, "")
					must(t, err)
					l := newLane(t, dir, s+i<<32+stack)
					for l.lives < livesPerStack && left.Add(-1) >= 0 {
						nested.Add(l.liveAndDie())
					}
					l.verify()
					acked.Add(int64(l.ledger.Acked()))
					must(t, os.RemoveAll(dir))
				}
			})
		}
	})
}

// liveAndDie leads a life that is killed soon after the stack was opened, or before that: then nothing is verified, and
// the next life has to cope. It returns how many such lives there were.
func (l *lane) liveAndDie() (early int64) {
	l.t.Helper()
	life := Life{Workers: 1 + l.rng.IntN(8), Chores: l.chores(l.rng.IntN(4)), Old: l.old(100)}
	if l.lives > 0 && l.rng.IntN(3) == 0 {
		delay := time.Duration(l.rng.IntN(25)) * time.Millisecond
		l.lead(life, func(line string, kill func()) {
			if line == "" {
				time.AfterFunc(delay, kill)
			}
		})
		return 1
	}
	delay := time.Duration(l.rng.IntN(80)) * time.Millisecond
	l.lead(life, func(line string, kill func()) {
		if line == wordOpen {
			time.AfterFunc(delay, kill)
		}
	})
	l.verify()
	return 0
}
