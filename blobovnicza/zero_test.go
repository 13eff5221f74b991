package blobovnicza

import (
	"os"
	"syscall"
	"testing"

	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// Small commits are written over space that was zeroed ahead; it is bounded, and Close gives it back.
func TestZeroAhead(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	most := int64(0)
	for n := range 300 {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, 4096))
		check(t, err)
		reserved := s.Stats().Reserved
		if reserved < zeroLow-recordSize(kindPut, 4096) || reserved > zeroSize+zeroLow {
			t.Fatalf("%d bytes reserved after put %d", reserved, n)
		}
		most = max(most, reserved)
	}
	if most < zeroSize {
		t.Errorf("at most %d bytes were zeroed ahead", most)
	}
	killed := copyStore(t, dir)
	check(t, s.Close())
	for _, dir := range []string{dir, killed} {
		s := mustOpen(t, dir, Options{})
		if st := s.Stats(); st.Objects != 300 || st.Torn+int64(st.Lost) != 0 {
			t.Errorf("stats %+v", st)
		}
		check(t, s.Close())
		if info, err := os.Stat(dataFiles(t, dir)[0]); err != nil || info.Size() > 300*recordSize(kindPut, 4096)+1000 {
			t.Errorf("after Close the file has %d bytes, %v", info.Size(), err)
		}
	}
}

// Large commits, and stores that do not sync, have no use for zeroed space.
func TestNoZeroAhead(t *testing.T) {
	for _, tc := range []struct {
		opts Options
		size int
	}{{Options{}, zeroBatch}, {Options{NoSync: true}, 100}, {Options{FileSize: 1 << 20}, 100}} {
		s := mustOpen(t, t.TempDir(), tc.opts)
		for n := range 3 {
			_, err := s.Put(ctx, addrOf(n), dataOf(n, tc.size))
			check(t, err)
		}
		if got := s.Stats().Reserved; got != 0 {
			t.Errorf("%+v, blobs of %d: %d bytes reserved", tc.opts, tc.size, got)
		}
	}
}

// A write that fails while zeroing ahead is no failure of anybody's; a sync that fails is one of the file.
func TestZeroAheadFails(t *testing.T) {
	for _, tc := range []struct {
		fault crashtest.Fault
		files int
	}{
		{crashtest.Fault{Op: durable.OpWrite, Path: dataSuffix, N: 1, Err: syscall.ENOSPC}, 1},
		{crashtest.Fault{Op: durable.OpSync, Path: dataSuffix, N: 1, Err: syscall.EIO}, 2},
	} {
		s, st := faulty(t, Options{})
		st.faults.Add(tc.fault)
		_, err := s.Put(ctx, addrOf(1), []byte("one"))
		check(t, err)
		st.faults.Clear()
		expect(t, s, 1, []byte("one"))
		_, err = s.Put(ctx, addrOf(2), []byte("two"))
		check(t, err)
		if got := s.Stats().Files; got != tc.files {
			t.Errorf("%v: %d files, want %d", tc.fault.Op, got, tc.files)
		}
		dir := t.TempDir()
		check(t, st.record.PowerLoss(dir))
		again := mustOpen(t, dir, Options{})
		expect(t, again, 1, []byte("one"))
		expect(t, again, 2, []byte("two"))
	}
}
