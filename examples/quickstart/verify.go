package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/granary-store/granary/blobstor"
)

// verify reads the whole object and compares its hash.
func (o *object) verify(ctx context.Context, s blobstor.BlobStor) error {
	if o.deleted {
		return o.verifyGone(ctx, s)
	}
	r, err := s.NewReader(ctx, o.addr, o.at)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	n, err := r.WriteTo(sum)
	if err != nil {
		return err
	}
	if n != o.size || !bytes.Equal(sum.Sum(nil), o.sum[:]) {
		return fmt.Errorf("content differs: %d bytes, were %d", n, o.size)
	}
	return nil
}

var errNotGone = errors.New("deleted, but the store does not say so")

// verifyGone looks for a deleted object, with its old location and without.
func (o *object) verifyGone(ctx context.Context, s blobstor.BlobStor) error {
	for _, at := range []blobstor.Location{o.at, ""} {
		if _, err := s.Stat(ctx, o.addr, at); !errors.Is(err, blobstor.ErrNotFound) {
			return errors.Join(errNotGone, err)
		}
		if _, err := s.Get(ctx, o.addr, at, nil); !errors.Is(err, blobstor.ErrNotFound) {
			return errors.Join(errNotGone, err)
		}
	}
	return nil
}

// maxRange bounds a range, and so the memory that checking it takes.
const maxRange = 64 << 10 // 64 KiB

// verifyRanges compares ranges with the same bytes of the source: one at random, the last byte, nothing.
func (o *object) verifyRanges(ctx context.Context, s blobstor.BlobStor) error {
	f, err := os.Open(o.file)
	if err != nil {
		return err
	}
	defer f.Close()
	random := rand.New(rand.NewChaCha8(o.addr.Object)) // by object, so that a failure comes again
	off := random.Int64N(o.size + 1)
	length := random.Int64N(min(o.size-off, maxRange) + 1)
	last := min(o.size, 1)
	for _, r := range [][2]int64{{off, length}, {o.size - last, last}, {o.size, 0}} {
		want := make([]byte, r[1])
		if _, err := f.ReadAt(want, r[0]); err != nil {
			return err
		}
		got, err := blobstor.GetRange(ctx, s, o.addr, o.at, r[0], r[1])
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%d bytes at %d differ", r[1], r[0])
		}
	}
	return nil
}

// verifyListing compares the store's own listing with the objects: each live one once, and no other.
func verifyListing(ctx context.Context, s blobstor.BlobStor, objects []*object) error {
	missing := make(map[blobstor.Address]int64)
	for _, o := range objects {
		if !o.deleted {
			missing[o.addr] = o.size
		}
	}
	for info, err := range s.All(ctx, "") {
		if err != nil {
			return err
		}
		if size, ok := missing[info.Address]; !ok || size != info.Size {
			return fmt.Errorf("the listing has %v of %d bytes, which should not be there", info.Address, info.Size)
		}
		delete(missing, info.Address)
	}
	if len(missing) > 0 {
		return fmt.Errorf("the listing lacks %d objects", len(missing))
	}
	return nil
}
