package fstree

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestMixed lets many goroutines work on few blobs. What one reads is whole or not there.
func TestMixed(t *testing.T) {
	for _, o := range []Options{{Depth: -1}, {Depth: 2, rename: true}} {
		tree := create(t, o)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var all sync.WaitGroup
		for g := range uint64(16) {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, g))
				for range 120 {
					if err := mixedStep(tree, rng.IntN(8), rng.IntN(7)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		for info, err := range tree.All(ctx, "") {
			check(t, err)
			check(t, tree.Delete(ctx, info.Address, info.Location))
		}
		if n := files(t, tree); n != 0 {
			t.Errorf("%d files are left", n)
		}
		check(t, tree.Close())
	}
}

func mixedStep(tree *Tree, n, what int) error {
	size := n * 20_000
	var err error
	switch what {
	case 0, 1:
		_, err = tree.Put(ctx, address(n), content(n, size))
		return err
	case 2:
		err = streamedSize(tree, n, size)
		return err
	case 3:
		err = tree.Delete(ctx, address(n), "")
	case 4:
		_, err = tree.Stat(ctx, address(n), "")
	case 5:
		for _, err := range tree.All(ctx, "") {
			if err != nil {
				return err
			}
		}
	default:
		var got []byte
		got, err = tree.Get(ctx, address(n), "", nil)
		if err == nil && string(got) != string(content(n, size)) {
			return errors.New("wrong content")
		}
	}
	if errors.Is(err, blobstor.ErrNotFound) {
		return nil
	}
	return err
}

// TestOnePutWins puts one blob from many goroutines at once: all succeed, and one file is there.
func TestOnePutWins(t *testing.T) {
	for _, rename := range []bool{false, true} {
		tree := create(t, Options{rename: rename})
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				if _, err := tree.Put(ctx, address(1), content(1, 1000)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		has(t, tree, 1, 1000)
		if s := tree.Stats(); s.Puts != 1 || files(t, tree) != 1 {
			t.Errorf("%+v, %d files", s, files(t, tree))
		}
	}
}

// TestCloseBesideCalls closes a tree in full use: calls succeed or are closed, and what succeeded stays.
func TestCloseBesideCalls(t *testing.T) {
	for range 5 {
		dir := filepath.Join(memory(t), "store")
		tree := reopen(t, dir, Options{rename: true})
		var acked sync.Map
		var next atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					n := int(next.Add(1))
					_, err := tree.Put(ctx, address(n), content(n, n))
					if err != nil {
						checkClosed(t, err)
						return
					}
					acked.Store(n, n)
					if n == 50 {
						go tree.Close()
					}
				}
			})
		}
		all.Wait()
		check(t, tree.Close())
		tree = reopen(t, dir, Options{})
		acked.Range(func(n, size any) bool { has(t, tree, n.(int), size.(int)); return true })
		check(t, tree.Close())
	}
}

func checkClosed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, blobstor.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// TestCloseDiscardsWriters closes a tree whose writers are idle, with files that have names.
func TestCloseDiscardsWriters(t *testing.T) {
	dir := filepath.Join(memory(t), "store")
	tree := reopen(t, dir, Options{rename: true})
	w, err := tree.NewWriter(ctx, -1)
	check(t, err)
	_, err = w.Write(make([]byte, bufferSize+1))
	check(t, err)
	check(t, tree.Close())
	_, err = w.Write(nil)
	checkClosed(t, err)
	_, err = w.Commit(address(1))
	checkClosed(t, err)
	check(t, w.Close())
	if n := files(t, reopen(t, dir, Options{})); n != 0 {
		t.Fatalf("%d files are left", n)
	}
}

func TestSetReadOnly(t *testing.T) {
	tree := create(t, Options{})
	put(t, tree, 1, 1000)
	w, err := tree.NewWriter(ctx, -1)
	check(t, err)
	r, err := tree.NewReader(ctx, address(1), "")
	check(t, err)
	defer r.Close()
	for range 2 {
		check(t, tree.SetReadOnly(ctx, true))
	}
	_, err = tree.Put(ctx, address(2), nil)
	checkIs(t, err, blobstor.ErrReadOnly)
	checkIs(t, tree.Delete(ctx, address(1), ""), blobstor.ErrReadOnly)
	_, err = w.Commit(address(2))
	checkIs(t, err, blobstor.ErrReadOnly)
	has(t, tree, 1, 1000)
	_, err = r.Read(make([]byte, 10))
	check(t, err)
	check(t, tree.SetReadOnly(ctx, false))
	_, err = w.Commit(address(2))
	check(t, err)
	put(t, tree, 3, 10)

	// A call that is inside holds SetReadOnly up for as long as its context allows.
	check(t, tree.writes.enter())
	short, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- tree.SetReadOnly(short, true) }()
	cancel()
	checkIs(t, <-done, context.Canceled)
	tree.writes.leave()
	put(t, tree, 4, 10)
}

// TestNameLocks checks that a lock excludes only its own address.
func TestNameLocks(t *testing.T) {
	l := newNameLocks()
	l.lock(address(1))
	l.lock(address(2))
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			l.lock(address(1))
			defer l.unlock(address(1))
			if inside.Add(1) != 1 {
				t.Error("two holders of one lock")
			}
			inside.Add(-1)
		})
	}
	l.unlock(address(2))
	l.unlock(address(1))
	all.Wait()
	if len(l.busy) != 0 {
		t.Errorf("%d locks are left", len(l.busy))
	}
}

// TestDirsAreBounded uses more directories than may stay open.
func TestDirsAreBounded(t *testing.T) {
	tree := create(t, Options{Depth: 2, NoSync: true})
	for n := range maxDirs + 200 {
		put(t, tree, n, 10)
	}
	for n := range maxDirs + 200 {
		has(t, tree, n, 10)
	}
	if n := len(tree.dirs.open); n > maxDirs {
		t.Fatalf("%d directories are open", n)
	}
	for _, r := range tree.dirs.open {
		if r.users != 0 {
			t.Fatalf("directory %x has %d users", r.key, r.users)
		}
	}
}
