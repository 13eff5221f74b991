package blobstor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// TestGetRange compares with a slice, over both ways to read and across the size up to which GetRange reads in one.
func TestGetRange(t *testing.T) {
	const mib = 1 << 20
	m := storagetest.NewMemory(0)
	for i, size := range []int{0, 1, 1000, mib - 1, mib, mib + 1, 3*mib + 7} {
		data, addr := payload(size), address(i)
		mustPut(t, m, addr, data)
		lengths := []int64{-1, 0, 1, 999, mib - 1, mib, mib + 1, int64(size) - 1, int64(size), int64(size) + 1,
			math.MaxInt64 - int64(size), math.MaxInt64, math.MinInt64}
		for name, s := range map[string]blobstor.Storage{"ranges": m, "hidden": storagetest.Hide(m)} {
			for _, off := range lengths {
				for _, n := range lengths {
					got, err := blobstor.GetRange(ctx, s, addr, "", off, n)
					if off < 0 || n < 0 || off > int64(size) || n > int64(size)-off {
						if !errors.Is(err, blobstor.ErrOutOfRange) || got != nil {
							t.Fatalf("%s: GetRange(%d, %d) of %d: %d bytes, %v", name, off, n, size, len(got), err)
						}
					} else if err != nil || !bytes.Equal(got, data[off:off+n]) {
						t.Fatalf("%s: GetRange(%d, %d) of %d: %d bytes, %v", name, off, n, size, len(got), err)
					}
				}
			}
		}
	}
}

// TestHugeRangeAllocatesLittle: the length is a stranger's word until the size is known.
func TestHugeRangeAllocatesLittle(t *testing.T) {
	m := storagetest.NewMemory(0)
	mustPut(t, m, address(1), payload(10))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := blobstor.GetRange(ctx, m, address(1), "", 0, math.MaxInt64)
	runtime.ReadMemStats(&after)
	wantIs(t, err, blobstor.ErrOutOfRange)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("a huge range allocates %d bytes", got)
	}
}

func TestGetRangeOfMissing(t *testing.T) {
	_, err := blobstor.GetRange(ctx, storagetest.NewMemory(0), address(1), "", 0, 10)
	wantIs(t, err, blobstor.ErrNotFound)
}

// TestGetRangeOfBrokenStorage: a storage that falls short is no reason to return zeros.
func TestGetRangeOfBrokenStorage(t *testing.T) {
	f := storagetest.NewFault(storagetest.NewMemory(0))
	mustPut(t, f, address(1), payload(3<<20))
	for _, n := range []int64{100, 2 << 20} {
		f.Short(storagetest.ReadRange, 0)
		_, err := blobstor.GetRange(ctx, f, address(1), "", 0, n)
		wantIs(t, err, io.ErrUnexpectedEOF)
	}
	g := storagetest.NewFault(storagetest.NewMemory(0))
	mustPut(t, g, address(1), payload(3<<20))
	g.Fail(storagetest.ReadRange, 2, blobstor.ErrCorrupt)
	_, err := blobstor.GetRange(ctx, g, address(1), "", 0, 2<<20)
	wantIs(t, err, blobstor.ErrCorrupt)
}

// TestReadRangeIntoTheBuffer: a pooled read of a whole blob needs no second buffer and stays inside its own.
func TestReadRangeIntoTheBuffer(t *testing.T) {
	m := storagetest.NewMemory(0)
	mustPut(t, m, address(1), payload(100))
	s := storagetest.Hide(m)
	for _, n := range []int{0, 1, 99, 100, 101, 500} {
		buf := bytes.Repeat([]byte{0xee}, 600)
		got, size, err := blobstor.ReadRange(ctx, s, address(1), "", buf[:n], 0)
		must(t, err)
		if got != min(n, 100) || size != 100 || !bytes.Equal(buf[:got], payload(100)[:got]) {
			t.Errorf("ReadRange into %d bytes: %d, size %d", n, got, size)
		}
		if bytes.Count(buf[n:], []byte{0xee}) != 600-n {
			t.Errorf("ReadRange into %d bytes wrote behind them", n)
		}
	}
	p := make([]byte, 100)
	allocs := testing.AllocsPerRun(100, func() { blobstor.ReadRange(ctx, s, address(1), "", p, 0) })
	if allocs > 1 {
		t.Errorf("ReadRange into a buffer that is large enough: %v allocations", allocs)
	}
}

func TestReadRangeErrors(t *testing.T) {
	m := storagetest.NewMemory(0)
	mustPut(t, m, address(1), payload(100))
	for name, s := range map[string]blobstor.Storage{"ranges": m, "hidden": storagetest.Hide(m)} {
		_, _, err := blobstor.ReadRange(ctx, s, address(1), "", nil, -1)
		wantIs(t, err, blobstor.ErrOutOfRange)
		_, size, err := blobstor.ReadRange(ctx, s, address(1), "", nil, 101)
		wantIs(t, err, blobstor.ErrOutOfRange)
		if size != 100 {
			t.Errorf("%s: size %d comes with ErrOutOfRange, want 100", name, size)
		}
		_, _, err = blobstor.ReadRange(ctx, s, address(2), "", nil, 0)
		wantIs(t, err, blobstor.ErrNotFound)
		done, cancel := context.WithCancel(ctx)
		cancel()
		_, _, err = blobstor.ReadRange(done, s, address(1), "", nil, 0)
		wantIs(t, err, context.Canceled)
	}
}
