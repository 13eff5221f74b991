package main

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

var ctx = context.Background()

func Example() {
	main()
	// Output:
	// found bird.wav, 6 bytes
	// found cat.txt, 4 bytes
	// found dog.mp4, 500000 bytes
	// "purr" "woof" "rp!" were read; dog.mp4 expires after epoch 10
	// cat.txt is locked and cannot be deleted
	// dog.mp4 expired, cat.txt was deleted; with the lock on both disks there went blobs: 4
	// the index of a disk was lost and made again from the blobs
	// found bird.wav, 6 bytes
	// a disk is read-only after faults: 3
}

// withNode runs an example with a new node of two shards.
func withNode(example func(n *Node)) {
	dir := must(os.MkdirTemp("", "granary-node-"))
	defer os.RemoveAll(dir)
	n := must(Open(true, filepath.Join(dir, "0"), filepath.Join(dir, "1")))
	defer n.Close()
	example(n)
}

// must ends an example that cannot go on.
func must[T any](v T, err error) T {
	if err != nil {
		log.Panic(err)
	}
	return v
}

func newNode(tb testing.TB, disks int) *Node {
	tb.Helper()
	var dirs []string
	for range disks {
		dirs = append(dirs, tb.TempDir())
	}
	n, err := Open(true, dirs...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := n.Close(); err != nil {
			tb.Error(err)
		}
	})
	return n
}

// TestCouldNotLook: where one shard cannot be asked, what the other one does not have is not called not found.
func TestCouldNotLook(t *testing.T) {
	n := newNode(t, 2)
	if err := n.shards[1].db.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := n.Head(ctx, Address{container, ID{9}})
	if errors.Is(err, blobstor.ErrNotFound) || !errors.Is(err, blobstor.ErrClosed) {
		t.Error(err)
	}
}

// TestLocked: the address is locked while blob and record are written, so that nobody removes the one before the other.
func TestLocked(t *testing.T) {
	n := newNode(t, 1)
	s, addr := n.shards[0], Address{container, ID{9}}.blob()
	err := n.put(ctx, s, named("cat.txt").records(addr, 0), func() (blobstor.Location, error) {
		if _, free := n.locks.TryLock(addr); free {
			t.Error("not locked")
		}
		return s.blobs.Put(ctx, addr, nil)
	})
	if err != nil {
		t.Error(err)
	}
	if _, free := n.locks.TryLock(addr); !free {
		t.Error("still locked")
	}
}

// TestRefusedBlob: a blob whose record is refused does not stay, so that no rebuild records it.
func TestRefusedBlob(t *testing.T) {
	n := newNode(t, 1)
	s := n.shards[0]
	cat := must(n.Put(ctx, named("cat.txt"), nil))
	must(n.Lock(ctx, cat, 0))
	h := Header{Container: container, Kind: metabase.Tombstone, Target: cat.Object}
	addr := Address{container, ID{9}}.blob()
	if err := s.putOnce(ctx, h.records(addr, 0), []byte("blob")); !errors.Is(err, metabase.ErrHeld) {
		t.Error(err)
	}
	if _, err := s.blobs.Stat(ctx, addr, ""); !errors.Is(err, blobstor.ErrNotFound) {
		t.Error(err)
	}
}
