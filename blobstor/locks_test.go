package blobstor_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/granary-store/granary/blobstor"
)

func TestLocksExclude(t *testing.T) {
	locks := blobstor.NewLocks()
	var all sync.WaitGroup
	counters := make([]int, 3)
	for range 20 {
		for i := range counters {
			all.Go(func() {
				for range 50 {
					unlock := locks.Lock(address(i))
					counters[i]++ // the race detector watches
					unlock()
				}
			})
		}
	}
	all.Wait()
	for i, n := range counters {
		if n != 1000 {
			t.Errorf("counter %d: %d, want 1000", i, n)
		}
	}
}

func TestTryLock(t *testing.T) {
	locks := blobstor.NewLocks()
	unlock := locks.Lock(address(1))
	if u, ok := locks.TryLock(address(1)); ok || u != nil {
		t.Fatalf("TryLock of a held address succeeded")
	}
	unlock()
	unlock, ok := locks.TryLock(address(1))
	if !ok {
		t.Fatalf("TryLock of a free address failed")
	}
	unlock()
}

func TestLockWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := blobstor.NewLocks()
		unlock := locks.Lock(address(1))
		var got bool
		go func() {
			defer locks.Lock(address(1))()
			got = true
		}()
		// A mutex does not block durably in the bubble's sense, so give the other goroutine its chances instead.
		for range 100 {
			if u, ok := locks.TryLock(address(1)); ok {
				u()
				t.Fatal("a held stripe was free")
			}
		}
		unlock()
		synctest.Wait()
		if !got {
			t.Error("Lock did not return after unlock")
		}
	})
}

// TestFewStripesMeet: a program that holds one address must be able to take most others.
func TestFewStripesMeet(t *testing.T) {
	locks := blobstor.NewLocks()
	defer locks.Lock(address(0))()
	met := 0
	for i := 1; i <= 1000; i++ {
		if u, ok := locks.TryLock(address(i)); ok {
			u()
		} else {
			met++
		}
	}
	if met > 20 {
		t.Errorf("%d of 1000 addresses share a stripe with one, about 1 is expected", met)
	}
}
