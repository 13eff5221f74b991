package blobstor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// openReaders counts the readers of a storage that are not closed.
type openReaders struct {
	blobstor.BlobStor
	open int
}

type countedReader struct {
	blobstor.Reader
	of *openReaders
}

func (o *openReaders) NewReader(c context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Reader, error) {
	r, err := o.BlobStor.NewReader(c, addr, at)
	if err != nil {
		return nil, err
	}
	o.open++
	return &countedReader{r, o}, nil
}

func (r *countedReader) Close() error {
	r.of.open--
	return r.Reader.Close()
}

// TestCompressOldBugs has what went wrong where storages compressed before, by the number of the report.
func TestCompressOldBugs(t *testing.T) {
	zeros := make([]byte, 3<<20) // its frame is far smaller than what is read at once, and it is far larger
	s, m := compressed(t, blobstor.CompressOptions{})
	mustPut(t, s, address(1), zeros)
	mustPut(t, s, address(2), text(300_000, 1))

	t.Run("3936 the frame fits a buffer and the blob does not", func(t *testing.T) {
		wantGet(t, s, address(1), zeros)
		p := make([]byte, 20<<10)
		if n, size, err := blobstor.ReadRange(ctx, s, address(1), "", p, 0); n != len(p) || size != int64(len(zeros)) || err != nil {
			t.Errorf("%d of %d bytes, %v", n, size, err)
		}
	})
	t.Run("4055 one buffer for input and output", func(t *testing.T) {
		prefix := []byte("what was there")
		for n := 1; n <= 2; n++ {
			want, err := s.Get(ctx, address(n), "", nil)
			must(t, err)
			buf := append(make([]byte, 0, 8<<20), prefix...) // there is room for the frame and for the blob
			got, err := s.Get(ctx, address(n), "", buf)
			if err != nil || !bytes.Equal(got[:len(prefix)], prefix) || !bytes.Equal(got[len(prefix):], want) {
				t.Errorf("blob %d: %d bytes, %v", n, len(got), err)
			}
		}
	})
	t.Run("4046 4051 never a byte more than asked", func(t *testing.T) {
		want := text(300_000, 1)
		for _, off := range []int{0, 1, 131_071, 131_072, 299_999} {
			for _, n := range []int{0, 1, 100, 131_072} {
				n := min(n, len(want)-off)
				p := bytes.Repeat([]byte{0xee}, n+64)
				if got, _, err := blobstor.ReadRange(ctx, s, address(2), "", p[:n], int64(off)); got != n || err != nil {
					t.Fatalf("range %d+%d: %d, %v", off, n, got, err)
				}
				if !bytes.Equal(p[:n], want[off:off+n]) || !bytes.Equal(p[n:], bytes.Repeat([]byte{0xee}, 64)) {
					t.Fatalf("range %d+%d: other bytes, or bytes behind the end", off, n)
				}
			}
		}
	})
	t.Run("2007 2024 2095 borders", func(t *testing.T) {
		for _, r := range [][2]int64{{300_001, 0}, {300_000, 1}, {-1, 1}, {0, -1}, {1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}} {
			_, err := blobstor.GetRange(ctx, s, address(2), "", r[0], r[1])
			wantIs(t, err, blobstor.ErrOutOfRange)
		}
		if got, err := blobstor.GetRange(ctx, s, address(2), "", 300_000, 0); len(got) != 0 || err != nil {
			t.Errorf("an empty range at the end: %d bytes, %v", len(got), err)
		}
		if _, err := blobstor.GetRange(ctx, s, address(9), "", 0, 0); !errors.Is(err, blobstor.ErrNotFound) {
			t.Errorf("an empty range of nothing: %v", err)
		}
	})
	t.Run("3802 readers left open", func(t *testing.T) {
		under := &openReaders{BlobStor: m}
		s := newCompressed(t, under, blobstor.CompressOptions{})
		mustPut(t, m, address(3), []byte("no frame"))
		for n := 1; n <= 3; n++ {
			r, err := s.NewReader(ctx, address(n), "")
			if n == 3 {
				wantIs(t, err, blobstor.ErrCorrupt)
				continue
			}
			must(t, err)
			_, err = io.Copy(io.Discard, r)
			must(t, err)
			must(t, r.Close())
		}
		if under.open != 0 {
			t.Errorf("%d readers are open", under.open)
		}
	})
	t.Run("3801 the end of a blob is the end", func(t *testing.T) {
		s := newCompressed(t, storagetest.Hide(m), blobstor.CompressOptions{})
		r, err := s.NewReader(ctx, address(2), "")
		must(t, err)
		defer r.Close()
		_, err = r.Seek(-5, io.SeekEnd)
		must(t, err)
		if got, err := io.ReadAll(r); len(got) != 5 || err != nil {
			t.Errorf("%d bytes at the end, %v", len(got), err)
		}
	})
}
