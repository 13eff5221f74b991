package blobstor_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// FuzzParseID: what parses prints as it was, and what is printed parses.
func FuzzParseID(f *testing.F) {
	f.Add("")
	f.Add(blobstor.ID{}.String())
	f.Add(blobstor.ID{0: 0xff}.String())
	f.Fuzz(func(t *testing.T, s string) {
		id, err := blobstor.ParseID(s)
		if err != nil {
			if !id.IsZero() {
				t.Errorf("ParseID(%q): %v with an error", s, id)
			}
			return
		}
		if id.String() != s {
			t.Errorf("ParseID(%q) prints as %q", s, id)
		}
	})
}

// FuzzParseAddress likewise, and an address is 64 bytes in any form.
func FuzzParseAddress(f *testing.F) {
	f.Add("")
	f.Add("/")
	f.Add(address(1).String())
	f.Add(address(1).String() + "/")
	f.Fuzz(func(t *testing.T, s string) {
		addr, err := blobstor.ParseAddress(s)
		if err != nil {
			if !addr.IsZero() {
				t.Errorf("ParseAddress(%q): %v with an error", s, addr)
			}
			return
		}
		if addr.String() != s {
			t.Errorf("ParseAddress(%q) prints as %q", s, addr)
		}
		b, _ := addr.AppendBinary(nil)
		if back, err := blobstor.AddressFromBytes(b); err != nil || back != addr {
			t.Errorf("through bytes: %v, %v", back, err)
		}
	})
}

// FuzzRouterLocation: no location leads the router to a wrong answer, whatever it says.
func FuzzRouterLocation(f *testing.F) {
	f.Add("")
	f.Add("small/")
	f.Add("large/\x00\x00\x00\x00\x00\x00\x00\x01")
	f.Add("small/\x00\x00\x00\x00\x00\x00\x00\x01")
	f.Add("/small/")
	f.Add("nowhere/\xff\xff")
	r, _, _ := two(f)
	for i, size := range []int{10, 500} {
		mustPut(f, r, address(i), payload(size))
	}
	f.Fuzz(func(t *testing.T, s string) {
		at := blobstor.Location(s)
		for i, size := range []int{10, 500} {
			got, err := r.Get(ctx, address(i), at, nil)
			if err != nil || !bytes.Equal(got, payload(size)) {
				t.Errorf("Get with location %q: %d bytes, %v", at, len(got), err)
			}
			if info, err := r.Stat(ctx, address(i), at); err != nil || info.Size != int64(size) {
				t.Errorf("Stat with location %q: %+v, %v", at, info, err)
			}
		}
		if _, err := r.Get(ctx, address(9), at, nil); !errors.Is(err, blobstor.ErrNotFound) {
			t.Errorf("Get of a missing blob with location %q: %v", at, err)
		}
		if err := r.Delete(ctx, address(9), at); !errors.Is(err, blobstor.ErrNotFound) {
			t.Errorf("Delete of a missing blob with location %q: %v", at, err)
		}
		for info, err := range r.All(ctx, at) {
			if err != nil || info.Location == "" {
				t.Errorf("All behind %q: %+v, %v", at, info, err)
			}
		}
	})
}

// FuzzGetRange compares with a slice.
func FuzzGetRange(f *testing.F) {
	f.Add(100, int64(0), int64(100))
	f.Add(0, int64(0), int64(0))
	f.Add(100, int64(101), int64(0))
	f.Add(100, int64(1), int64(math.MaxInt64))
	f.Add(70_000, int64(65_536), int64(1))
	f.Fuzz(func(t *testing.T, size int, off, n int64) {
		size &= 1<<17 - 1
		m, data := storagetest.NewMemory(0), payload(size)
		mustPut(t, m, address(1), data)
		for _, s := range []blobstor.Storage{m, storagetest.Hide(m)} {
			got, err := blobstor.GetRange(ctx, s, address(1), "", off, n)
			if off < 0 || n < 0 || off > int64(size) || n > int64(size)-off {
				wantIs(t, err, blobstor.ErrOutOfRange)
			} else if err != nil || !bytes.Equal(got, data[off:off+n]) {
				t.Errorf("GetRange(%d, %d) of %d: %d bytes, %v", off, n, size, len(got), err)
			}
		}
	})
}
