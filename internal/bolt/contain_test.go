package bolt

import (
	"errors"
	"runtime"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestOwnPanic: a panic of the caller's goes on, after a rollback, and the store with it.
func TestOwnPanic(t *testing.T) {
	var none *int
	for name, f := range map[string]func(){
		"value": func() { panic("mine") },
		"nil":   func() { *none = 1 },
		"index": func() { _ = make([]int, 0)[len(name(none))] },
	} {
		t.Run(name, func(t *testing.T) {
			db := create(t, Options{})
			for _, run := range []func(func(*Tx) error) error{db.View, db.Update} {
				panicked := func() (p any) {
					defer func() { p = recover() }()
					err := run(func(tx *Tx) error {
						tx.Bucket(apples)
						f()
						return nil
					})
					t.Errorf("returned %v", err)
					return nil
				}()
				if panicked == nil {
					t.Error("no panic")
				}
				put(t, db, 0, 1, 1)
			}
			check(t, db.Close())
		})
	}
}

func name(*int) string { return "a" }

func TestGoexit(t *testing.T) {
	db := create(t, Options{})
	for _, run := range []func(func(*Tx) error) error{db.View, db.Update} {
		done := make(chan bool)
		go func() {
			defer close(done)
			run(func(tx *Tx) error {
				tx.Bucket(apples).Put(key(1), nil)
				runtime.Goexit()
				return nil
			})
			t.Error("returned")
		}()
		<-done
		put(t, db, 0, 1, 1)
	}
	if len(contents(t, db, apples)) != 1 {
		t.Error("what Goexit left was committed")
	}
}

// TestCrashInView: bbolt's panic ends the transaction alone.
func TestCrashInView(t *testing.T) {
	db := create(t, Options{})
	put(t, db, 0, 1, 1)
	err := db.View(func(tx *Tx) error {
		tx.b.Commit() // bbolt refuses it by an error
		var gone *Bucket
		gone.Get(nil) // and this by a panic of its own
		return nil
	})
	checkIs(t, err, blobstor.ErrCorrupt)
	put(t, db, 1, 2, 1)
	if len(contents(t, db, apples)) != 2 {
		t.Error("not two keys")
	}
}

// TestCrashInUpdate: bbolt's panic ends all, and Close does not hang.
func TestCrashInUpdate(t *testing.T) {
	for _, inCommit := range []bool{false, true} {
		crash := func() {
			var gone *Bucket
			gone.Get(nil)
		}
		o := Options{}
		if inCommit {
			o.Commit = func(func() error) error {
				crash()
				return nil
			}
		}
		db := create(t, o)
		err := db.Update(func(*Tx) error {
			if !inCommit {
				crash()
			}
			return nil
		})
		checkIs(t, err, blobstor.ErrCorrupt)
		if got := errors.Is(err, blobstor.ErrUncertain); got != inCommit {
			t.Errorf("uncertain %v: %v", got, err)
		}
		nothing := func(*Tx) error { return nil }
		checkIs(t, db.View(nothing), blobstor.ErrFailed, blobstor.ErrCorrupt)
		checkIs(t, db.Update(nothing), blobstor.ErrFailed, blobstor.ErrCorrupt)
		check(t, db.Close())
		put(t, reopen(t, db.store.Dir.Path(), Options{}), 0, 1, 1)
	}
}
