package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// TestReplaceUnderReaders: a reader keeps the old file, later calls see the new one, and nothing is left behind.
func TestReplaceUnderReaders(t *testing.T) {
	db := create(t, Options{})
	put(t, db, 0, 100, 10)
	reading, go1, read := make(chan bool), make(chan bool), make(chan error)
	go func() {
		read <- db.View(func(tx *Tx) error {
			close(reading)
			<-go1
			if tx.Bucket(apples).Get(key(99)) == nil {
				return errors.New("the old file is gone")
			}
			return nil
		})
	}()
	<-reading
	check(t, db.Replace(ctx, func(_ context.Context, from *Tx, to func(func(*Tx) error) error) error {
		if from.Bucket(apples).Get(key(50)) == nil {
			t.Error("the old file is not to be read")
		}
		return to(putting(1000, 1001, 10))
	}))
	if n := len(contents(t, db, apples)); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
	put(t, db, 1001, 1002, 10)
	close(go1)
	check(t, <-read)
	dir := db.store.Dir.Path()
	check(t, db.Check(ctx))
	check(t, db.Close())
	wantNames(t, dir, "DESCRIPTOR", "LOCK", fileName, markClean)
	db = reopen(t, dir, Options{})
	if n := len(contents(t, db, apples)); n != 2 {
		t.Errorf("%d keys, want 2", n)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

// TestCompact: the file shrinks, and what it holds, sequences included, stays.
func TestCompact(t *testing.T) {
	db := create(t, Options{})
	put(t, db, 0, 20_000, 500)
	check(t, db.Update(func(tx *Tx) error {
		for n := range 19_000 {
			if err := tx.Bucket(apples).Delete(key(n)); err != nil {
				return err
			}
		}
		return tx.Bucket(pears).SetSequence(7)
	}))
	put(t, db, 0, 1, 1)
	want := contents(t, db, apples)
	file, free := sizes(t, db)
	if free < file/2 {
		t.Errorf("%d of %d bytes are free", free, file)
	}
	check(t, db.Compact(ctx))
	same(t, contents(t, db, apples), want)
	check(t, db.View(func(tx *Tx) error {
		if n := tx.Bucket(pears).Sequence(); n != 7 {
			t.Errorf("sequence %d", n)
		}
		return nil
	}))
	check(t, db.Check(ctx))
	after, free := sizes(t, db)
	if after >= file || free > 100*pageSize {
		t.Errorf("%d bytes, %d of them free; it was %d", after, free, file)
	}
	check(t, db.Close())
	same(t, contents(t, reopen(t, db.store.Dir.Path(), Options{}), apples), want)
}

// TestReplaceCloseFirst replaces as Windows needs it: readers end, then the file gets its name. A call that begins
// meanwhile waits for that.
func TestReplaceCloseFirst(t *testing.T) {
	tap := &failTap{}
	db := create(t, Options{tap: tap})
	db.closeFirst = true
	put(t, db, 0, 1000, 100)
	want := contents(t, db, apples)
	reading, replaced := make(chan bool), make(chan error)
	go db.View(func(*Tx) error {
		close(reading)
		for { // until Replace has given up the file
			db.mu.Lock()
			stale := db.stale
			db.mu.Unlock()
			if stale {
				return nil
			}
			runtime.Gosched()
		}
	})
	<-reading
	go func() { replaced <- db.Compact(ctx) }()
	check(t, <-replaced)
	same(t, contents(t, db, apples), want)
	tap.fail(durable.OpRename, syscall.EIO)
	checkIs(t, db.Compact(ctx), syscall.EIO)
	tap.fail(durable.OpRename, nil)
	same(t, contents(t, db, apples), want)
	put(t, db, 0, 1000, 100)
	check(t, db.Check(ctx))
}

// TestReplaceFails: whatever goes wrong before the rename, the old file stays; after it the disk decides.
func TestReplaceFails(t *testing.T) {
	mine := errors.New("mine")
	done, cancel := context.WithCancel(ctx)
	cancel()
	tap := &failTap{}
	db := create(t, Options{tap: tap})
	put(t, db, 0, 100, 10)
	want := contents(t, db, apples)
	if err := db.Replace(ctx, func(context.Context, *Tx, func(func(*Tx) error) error) error { return mine }); err != mine {
		t.Errorf("got %v, want fill's own error", err)
	}
	checkIs(t, db.Compact(done), context.Canceled)
	for _, op := range []durable.Op{durable.OpCreate, durable.OpSync, durable.OpRename} {
		tap.fail(op, syscall.ENOSPC)
		checkIs(t, db.Compact(ctx), blobstor.ErrNoSpace)
		tap.fail(op, nil)
		put(t, db, 0, 1, 10)
		same(t, contents(t, db, apples), want)
	}
	func() {
		defer func() { recover() }()
		db.Replace(ctx, func(context.Context, *Tx, func(func(*Tx) error) error) error { panic("mine") })
	}()
	put(t, db, 0, 1, 10)
	tap.fail(durable.OpSyncDir, syscall.EIO)
	checkIs(t, db.Compact(ctx), blobstor.ErrFailed, syscall.EIO)
	checkIs(t, db.View(func(*Tx) error { return nil }), blobstor.ErrFailed)
	tap.fail(durable.OpSyncDir, nil)
	check(t, db.Close())
	db = reopen(t, db.store.Dir.Path(), Options{})
	same(t, contents(t, db, apples), want)
	check(t, db.Close())
	wantNames(t, db.store.Dir.Path(), "DESCRIPTOR", "LOCK", fileName, markClean)
}

// failTap lets operations of one kind fail.
type failTap struct{ errs [durable.OpSyncAll + 1]error }

func (f *failTap) fail(op durable.Op, err error)                         { f.errs[op] = err }
func (f *failTap) Before(op durable.Op, _ string, _ *durable.File) error { return f.errs[op] }
func (f *failTap) After(durable.Op, string, *durable.File)               {}

// TestCreateCrashes stops making a store at each step: the next try makes it, or finds it whole.
func TestCreateCrashes(t *testing.T) {
	for n := 0; ; n++ {
		dir := filepath.Join(memory(t), "store")
		o := options(Options{Ballast: 1 << 16, tap: &stopTap{left: n}})
		db, err := Open(dir, o)
		if err == nil {
			db.Close() // Its steps come too late.
			if n < 10 {
				t.Errorf("only %d steps", n)
			}
			break
		}
		if !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		o.tap, o.Create = nil, false
		if db, err := Open(dir, o); err == nil {
			put(t, db, 0, 1, 1)
			check(t, db.Close())
		} else {
			checkIs(t, err, blobstor.ErrLayout)
		}
		db = reopen(t, dir, Options{})
		put(t, db, 0, 1, 1)
		check(t, db.Check(ctx))
	}
}

var errStopped = errors.New("stopped")

// stopTap lets so many changes pass and no more, as if the process had died.
type stopTap struct{ left int }

func (s *stopTap) Before(op durable.Op, path string, _ *durable.File) error {
	if op == durable.OpRead || op == durable.OpOpen || strings.HasSuffix(path, ballastName) {
		return nil
	}
	if s.left--; s.left < 0 {
		return errStopped
	}
	return nil
}

func (s *stopTap) After(durable.Op, string, *durable.File) {}
