package durable

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sharedSync
		var started, running atomic.Int32
		slow := func() error {
			started.Add(1)
			if running.Add(1) != 1 {
				t.Error("two syncs at once")
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		}
		// The first runs alone; the nine that come meanwhile may not join it, and share the second.
		var seen [10]int32
		for i := range seen {
			go func() {
				if err := s.do(slow); err != nil {
					t.Error(err)
				}
				seen[i] = started.Load()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if started.Load() != 2 {
			t.Errorf("%d syncs for ten callers, want 2", started.Load())
		}
		for i, n := range seen {
			if i > 0 && n < 2 {
				t.Errorf("caller %d returned after a sync that began before its call", i)
			}
		}
	})
}

func TestSharedSyncFailureStays(t *testing.T) {
	var s sharedSync
	broken := errors.New("broken")
	calls := 0
	for range 3 {
		err := s.do(func() error { calls++; return broken })
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if calls != 1 || !errors.Is(s.err(), broken) {
		t.Fatalf("%d calls, %v", calls, s.err())
	}
}
