package blobstor_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// filled returns a storage with n small blobs and one that is large enough to be streamed.
func filled(t *testing.T, n int) *storagetest.Memory {
	m := storagetest.NewMemory(0)
	for i := range n {
		mustPut(t, m, address(i), payload(i))
	}
	mustPut(t, m, address(n), payload(500_000))
	return m
}

func TestCopy(t *testing.T) {
	src := filled(t, 600)
	for name, from := range map[string]blobstor.Storage{"shown": src, "hidden": storagetest.Hide(src), "sizes unknown": sizeless{src}} {
		dst := storagetest.NewMemory(0)
		for range 2 { // the second time it changes nothing
			n, err := blobstor.Copy(ctx, dst, from)
			if n != 601 || err != nil {
				t.Errorf("%s: Copy: %d, %v; want 601", name, n, err)
			}
		}
		if n := count(t, dst); n != 601 {
			t.Errorf("%s: copied %d blobs, want 601", name, n)
		}
		for _, i := range []int{0, 1, 255, 256, 599} {
			wantGet(t, dst, address(i), payload(i))
		}
		wantGet(t, dst, address(600), payload(500_000))
	}
}

// sizeless is a storage whose All does not know sizes, as a compressed one.
type sizeless struct{ *storagetest.Memory }

func (s sizeless) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		for info, err := range s.Memory.All(ctx, after) {
			info.Size = -1
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestCopyGoesPastDamage(t *testing.T) {
	src := filled(t, 50)
	for i := range 20 {
		src.Damage(address(i))
	}
	src.Damage(address(50)) // the streamed one
	dst := storagetest.NewMemory(0)
	n, err := blobstor.Copy(ctx, dst, src)
	wantIs(t, err, blobstor.ErrCorrupt)
	if n != 30 || count(t, dst) != 30 {
		t.Errorf("copied %d blobs, want 30", n)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 17 || !strings.Contains(err.Error(), "5 more") {
		t.Errorf("21 damaged blobs: %v", err)
	}
}

func TestCopySkipsWhatIsGone(t *testing.T) {
	src := filled(t, 3)
	f := storagetest.NewFault(src)
	f.Fail(storagetest.Get, 2, blobstor.ErrNotFound)
	n, err := blobstor.Copy(ctx, storagetest.NewMemory(0), f)
	if n != 3 || err != nil {
		t.Errorf("Copy beside a delete: %d, %v; want 3", n, err)
	}
	u := storagetest.NewFault(sizeless{src})
	u.Fail(storagetest.Stat, 1, blobstor.ErrNotFound)
	if n, err = blobstor.Copy(ctx, storagetest.NewMemory(0), u); n != 3 || err != nil {
		t.Errorf("Copy beside a delete: %d, %v; want 3", n, err)
	}
}

func TestCopyIntoLimits(t *testing.T) {
	for limit, want := range map[int64]int64{10: 11, 200_000: 50} {
		n, err := blobstor.Copy(ctx, storagetest.NewMemory(limit), filled(t, 50))
		wantIs(t, err, blobstor.ErrTooLarge)
		if n != want {
			t.Errorf("copied %d blobs to a storage for blobs up to %d bytes, want %d", n, limit, want)
		}
	}
}

func TestCopyEnds(t *testing.T) {
	t.Run("full", func(t *testing.T) {
		dst := storagetest.NewMemory(0)
		dst.Full()
		n, err := blobstor.Copy(ctx, dst, filled(t, 5))
		wantIs(t, err, blobstor.ErrNoSpace)
		if n != 0 {
			t.Errorf("copied %d blobs", n)
		}
	})
	t.Run("destination fails", func(t *testing.T) {
		src := storagetest.NewFault(filled(t, 2000))
		dst := storagetest.NewMemory(0)
		dst.FailSync()
		_, err := blobstor.Copy(ctx, dst, src)
		wantIs(t, err, blobstor.ErrFailed)
		if steps := src.Calls(storagetest.All); steps > 300 {
			t.Errorf("Copy went on for %d steps", steps)
		}
	})
	t.Run("All fails", func(t *testing.T) {
		src := storagetest.NewFault(filled(t, 10))
		src.Fail(storagetest.All, 4, syscall.EIO)
		dst := storagetest.NewMemory(0)
		_, err := blobstor.Copy(ctx, dst, src)
		wantIs(t, err, syscall.EIO)
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := blobstor.Copy(ctx, storagetest.NewMemory(0), filled(t, 3))
		wantIs(t, err, context.Canceled)
	})
	t.Run("source closed", func(t *testing.T) {
		src := storagetest.NewFault(filled(t, 3))
		src.Fail(storagetest.Get, 2, blobstor.ErrClosed)
		_, err := blobstor.Copy(ctx, storagetest.NewMemory(0), src)
		wantIs(t, err, blobstor.ErrClosed)
	})
}

// TestCopyStreamFaults tells the two sides of a streamed blob apart: the source's error is about one blob, the
// destination's is the end.
func TestCopyStreamFaults(t *testing.T) {
	src := storagetest.NewFault(filled(t, 0))
	mustPut(t, src, address(1), payload(10))
	src.Fail(storagetest.ReadRange, 1, syscall.EIO)
	n, err := blobstor.Copy(ctx, storagetest.NewMemory(0), src)
	wantIs(t, err, syscall.EIO)
	if n != 1 {
		t.Errorf("copied %d blobs past one that cannot be read, want 1", n)
	}
	full := errors.New("the writer's own error")
	n, err = blobstor.Copy(ctx, failingStreams{storagetest.NewMemory(0), full}, filled(t, 1))
	wantIs(t, err, full)
	if n != 0 {
		t.Errorf("copied %d blobs to a storage whose streams fail", n)
	}
}

type failingStreams struct {
	blobstor.Storage
	err error
}

func (s failingStreams) NewReader(context.Context, blobstor.Address, blobstor.Location) (blobstor.Reader, error) {
	return nil, s.err
}

func (s failingStreams) NewWriter(context.Context, int64) (blobstor.Writer, error) { return s, nil }
func (s failingStreams) Write([]byte) (int, error)                                 { return 0, s.err }
func (s failingStreams) Commit(blobstor.Address) (blobstor.Location, error)        { return "", s.err }
