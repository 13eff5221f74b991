package bolt

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// failing makes commits fail with err, after or before bbolt does its part.
type failing struct {
	err    error
	before bool
}

func (f *failing) commit(commit func() error) error {
	if f.err == nil {
		return commit()
	}
	if f.before {
		return f.err
	}
	if err := commit(); err != nil {
		return err
	}
	return f.err
}

// TestCommitFails: after EIO nothing goes on until the store is opened again.
func TestCommitFails(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("before=%v", before), func(t *testing.T) {
			f := &failing{before: before}
			db := create(t, Options{Commit: f.commit})
			put(t, db, 0, 100, 10)
			f.err = syscall.EIO
			err := db.Update(putting(100, 101, 10))
			checkIs(t, err, blobstor.ErrUncertain, syscall.EIO)
			if !blobstor.IsFault(err) {
				t.Error("no fault")
			}
			f.err = nil
			checkIs(t, db.Update(putting(101, 102, 10)), blobstor.ErrFailed, syscall.EIO)
			checkIs(t, db.View(func(*Tx) error { return nil }), blobstor.ErrFailed, syscall.EIO)
			check(t, db.Close())
			wantNames(t, db.store.Dir.Path(), "DESCRIPTOR", "LOCK", fileName, markDirty)
			db = reopen(t, db.store.Dir.Path(), Options{})
			if got, want := len(contents(t, db, apples)), 101; got != want && !before {
				t.Errorf("%d keys, want %d", got, want)
			}
		})
	}
}

// TestReopenFails: what opens the file again after a full disk may be refused, and is tried again; a failed sync is not.
func TestReopenFails(t *testing.T) {
	f, tap := &failing{}, &failTap{}
	db := create(t, Options{Commit: f.commit, tap: tap})
	put(t, db, 0, 100, 10)
	nothing := func(*Tx) error { return nil }
	f.err = syscall.ENOSPC
	checkIs(t, db.Update(putting(100, 101, 10)), blobstor.ErrNoSpace)
	tap.fail(durable.OpOpen, syscall.EMFILE)
	for range 2 {
		checkIs(t, db.View(nothing), syscall.EMFILE)
	}
	tap.fail(durable.OpOpen, nil)
	check(t, db.View(nothing))
	checkIs(t, db.Update(putting(101, 102, 10)), blobstor.ErrNoSpace)
	tap.fail(durable.OpSync, syscall.ENOSPC)
	checkIs(t, db.View(nothing), blobstor.ErrFailed, syscall.ENOSPC)
	tap.fail(durable.OpSync, nil)
	checkIs(t, db.View(nothing), blobstor.ErrFailed, syscall.ENOSPC)
	check(t, db.Close())
	put(t, reopen(t, db.store.Dir.Path(), Options{}), 0, 1, 1)
}

// TestFullDisk: after ENOSPC the next call goes on with what is on disk.
func TestFullDisk(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("before=%v", before), func(t *testing.T) {
			f := &failing{before: before}
			db := create(t, Options{Commit: f.commit, Ballast: 1 << 20})
			put(t, db, 0, 100, 10)
			if db.Pressed() {
				t.Fatal("no ballast")
			}
			f.err = fmt.Errorf("file resize error: %s", syscall.ENOSPC) // as bbolt says it
			err := db.Update(putting(100, 101, 10))
			checkIs(t, err, blobstor.ErrUncertain, blobstor.ErrNoSpace)
			if blobstor.IsFault(err) {
				t.Errorf("a full disk is a fault: %v", err)
			}
			if !db.Pressed() {
				t.Error("the ballast is still there")
			}
			want := 101
			if before {
				want = 100
			}
			if got := len(contents(t, db, apples)); got != want {
				t.Errorf("%d keys, want %d", got, want)
			}
			f.err = nil
			put(t, db, 101, 102, 10)
			if db.Pressed() {
				t.Error("the ballast was not retaken")
			}
			check(t, db.Close())
		})
	}
}
