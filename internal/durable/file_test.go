package durable

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestReserve(t *testing.T) {
	for name, reserve := range map[string]func(f *File, size int64) error{
		"reserve": (*File).Reserve,
		"zeros":   func(f *File, size int64) error { return writeZeros(&f.f, size) },
	} {
		t.Run(name, func(t *testing.T) {
			f := temp(t, openDir(t, nil), "text")
			defer f.Discard()
			const most = 2<<20 + 5
			for _, size := range []int64{0, 2, 4, 4096, most, 10} {
				check(t, reserve(f.File, size))
			}
			_, err := f.Write([]byte("more"))
			check(t, err)
			want := append([]byte("textmore"), make([]byte, most-8)...)
			got := make([]byte, most+1)
			n, err := f.ReadAt(got, 0)
			if !bytes.Equal(got[:n], want) || err != io.EOF {
				t.Fatalf("read %d bytes, starting with %q: %v", n, got[:8], err)
			}
		})
	}
}

// TestAllocateTap: a veto keeps both ways of allocating from happening.
func TestAllocateTap(t *testing.T) {
	stop := errors.New("stop")
	veto := false
	f := temp(t, openDir(t, vetoes(func(op Op, _ string) error {
		if veto && op == OpWrite {
			return stop
		}
		return nil
	})), "x")
	defer f.Discard()
	veto = true
	checkIs(t, f.Preallocate(100), stop)
	checkIs(t, f.Reserve(100), stop)
	if size, err := f.Size(); size != 1 || err != nil {
		t.Fatalf("size %d, %v", size, err)
	}
}
