package bolt

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestConcurrent reads, commits, compacts, checks and fills the disk at once. Readers see whole commits.
func TestConcurrent(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	var full atomic.Int32
	db := create(t, Options{NoSync: true, Ballast: 1 << 16, Commit: func(commit func() error) error {
		switch full.Add(1) % 20 {
		case 7:
			return syscall.ENOSPC
		case 13:
			return errors.Join(commit(), syscall.ENOSPC)
		}
		return commit()
	}})
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !stop.Load() {
				readPair(t, db)
			}
		})
	}
	readers.Go(func() {
		for !stop.Load() {
			check(t, db.Check(ctx))
			db.Pressed()
		}
	})
	for w := range 2 {
		writers.Go(func() {
			for n := range rounds {
				writePair(t, db, w*rounds+n)
				if n%50 == 0 {
					check(t, db.Compact(ctx))
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	check(t, db.Close())
	readPair(t, reopen(t, db.store.Dir.Path(), Options{}))
}

// writePair writes the same into both buckets.
func writePair(t *testing.T, db *DB, n int) {
	v := fmt.Appendf(nil, "%d", n)
	err := db.Update(func(tx *Tx) error {
		return errors.Join(tx.Bucket(apples).Put(key(0), v), tx.Bucket(pears).Put(key(0), v), putting(n, n+5, 200)(tx))
	})
	if err != nil && (!errors.Is(err, blobstor.ErrUncertain) || !errors.Is(err, blobstor.ErrNoSpace)) {
		t.Error(err)
	}
}

func readPair(t *testing.T, db *DB) {
	err := db.View(func(tx *Tx) error {
		a, b := tx.Bucket(apples).Get(key(0)), tx.Bucket(pears).Get(key(0))
		if (a == nil) != (b == nil) {
			return fmt.Errorf("half a commit: %q and %q", a, b)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
