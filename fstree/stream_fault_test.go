package fstree

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// fillings are the ways to fill a writer.
var fillings = map[string]func(w blobstor.Writer, data []byte) error{
	"Write": func(w blobstor.Writer, data []byte) error { return second(w.Write(data)) },
	"small writes": func(w blobstor.Writer, data []byte) error {
		return second(io.CopyBuffer(struct{ io.Writer }{w}, only{bytes.NewReader(data)}, make([]byte, 10_000)))
	},
	"ReadFrom": func(w blobstor.Writer, data []byte) error { return second(io.Copy(w, only{bytes.NewReader(data)})) },
}

// TestStreamMeetsFault fails each write of a stream in turn. What comes after the failure fails too, nothing is
// left, and the blob can be stored when the fault is gone.
func TestStreamMeetsFault(t *testing.T) {
	const size = 2*bufferSize + 5
	for name, fill := range fillings {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
			t.Run(fmt.Sprintf("%s/%v", name, errno), func(t *testing.T) {
				r := watched(t, memory(t))
				tree := reopen(t, r.dir, Options{rename: true, tap: r.faults})
				met := 0
				for ; ; met++ {
					before := r.faults.Hits()
					r.faults.Add(crashtest.Fault{Op: durable.OpWrite, N: met, Err: errno})
					w, err := tree.NewWriter(ctx, size)
					check(t, err)
					filled := fill(w, content(1, size))
					_, committed := w.Commit(address(1))
					if r.faults.Hits() == before {
						check(t, filled)
						check(t, committed)
						break
					}
					checkIs(t, committed, errno)
					if filled != nil {
						checkIs(t, filled, errno)
						checkIs(t, second(w.Write([]byte{1})), errno)
					}
					if full := errno == syscall.ENOSPC; full == blobstor.IsFault(committed) {
						t.Fatalf("fault: %v", committed)
					}
					check(t, w.Close())
					lacks(t, tree, 1)
					if n := files(t, tree); n != 0 {
						t.Fatalf("%d files are left", n)
					}
				}
				if met < 4 { // Two buffers, the rest, the trailer.
					t.Fatalf("%d writes met a fault", met)
				}
				has(t, tree, 1, size)
			})
		}
	}
}

// TestNoRoomToReserve: a known size for which there is no room is refused before a byte of it was sent.
func TestNoRoomToReserve(t *testing.T) {
	r := watched(t, memory(t))
	tree := reopen(t, r.dir, Options{rename: true, tap: r.faults})
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		for name, call := range map[string]func() error{
			"NewWriter": func() error { return second(tree.NewWriter(ctx, reserveLimit)) },
			"Put":       func() error { return second(tree.Put(ctx, address(1), make([]byte, reserveLimit))) },
		} {
			r.faults.Add(crashtest.Fault{Op: durable.OpWrite, Err: errno})
			err := call()
			checkIs(t, err, blobstor.ErrNoSpace, errno)
			if blobstor.IsFault(err) {
				t.Errorf("%s: a full disk is a fault", name)
			}
			if n := files(t, tree); n != 0 {
				t.Fatalf("%s: %d files are left", name, n)
			}
			r.faults.Clear()
		}
	}
	put(t, tree, 1, reserveLimit)
	has(t, tree, 1, reserveLimit)
}

// TestStreamLasts: a stream whose writing was begun early is synced like any other.
func TestStreamLasts(t *testing.T) {
	const size = 2*hintSize + 3
	r := watched(t, memory(t))
	o := Options{tap: r.faults}
	tree := reopen(t, r.dir, o)
	stream(t, tree, 1, size, true)
	put(t, tree, 2, size)
	after := reopen(t, filepath.Join(lose(t, r.power), "store"), Options{})
	has(t, after, 1, size)
	has(t, after, 2, size)

	r.faults.Add(crashtest.Fault{Op: durable.OpSync, Err: syscall.EIO})
	checkIs(t, streamedSize(tree, 3, size), blobstor.ErrFailed, syscall.EIO)
	lacks(t, tree, 3)
}
