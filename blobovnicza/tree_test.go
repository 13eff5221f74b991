package blobovnicza

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

var ctx = context.Background()

// addrOf returns the n-th test address.
func addrOf(n int) (a blobstor.Address) {
	copy(a.Container[:], "container")
	copy(a.Object[:], fmt.Sprintf("object %d", n))
	return a
}

// dataOf returns n reproducible bytes for a test address.
func dataOf(seed, n int) []byte {
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	b := make([]byte, n)
	rng.Read(b)
	return b
}

// check fails the test on an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustOpen opens a store that is closed when the test ends.
func mustOpen(t testing.TB, dir string, opts Options) *Tree {
	t.Helper()
	opts.Create = !opts.ReadOnly
	s, err := Open(dir, &opts)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

func TestRoundTrip(t *testing.T) {
	for _, shape := range [][2]int{{1, 0}, {10, 0}, {2, 2}, {4, 1}} {
		t.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(t *testing.T) {
			dir := t.TempDir()
			off := CompactOptions{Off: true} // or what Stats says before Close and after it may differ
			opts := Options{Width: shape[0], Depth: shape[1], FileSize: 1 << 20, Compact: off}
			s := mustOpen(t, dir, opts)
			sizes := []int{0, 1, 7, 100, 4096, blockSize - 1, blockSize, blockSize + 1, 200 << 10, DefaultMaxBlob}
			locations := map[int]blobstor.Location{}
			for n := range 100 {
				at, err := s.Put(ctx, addrOf(n), dataOf(n, sizes[n%len(sizes)]))
				check(t, err)
				locations[n] = at
			}
			verify := func() {
				t.Helper()
				for n, at := range locations {
					for _, at := range []blobstor.Location{at, "", "garbage", at[:10]} {
						got, err := s.Get(ctx, addrOf(n), at, nil)
						check(t, err)
						if !bytes.Equal(got, dataOf(n, sizes[n%len(sizes)])) {
							t.Fatalf("object %d differs", n)
						}
					}
				}
				count := 0
				for info, err := range s.All(ctx, "") {
					check(t, err)
					if _, err := s.Stat(ctx, info.Address, info.Location); err != nil {
						t.Error(err)
					}
					count++
				}
				if count != len(locations) || s.Stats().Objects != int64(count) {
					t.Errorf("All yields %d, Stats says %+v, want %d", count, s.Stats(), len(locations))
				}
			}
			verify()
			for n := 0; n < 100; n += 7 {
				check(t, s.Delete(ctx, addrOf(n), locations[n]))
				if _, err := s.Get(ctx, addrOf(n), locations[n], nil); !errors.Is(err, blobstor.ErrNotFound) {
					t.Errorf("deleted: %v", err)
				}
				delete(locations, n)
			}
			verify()
			before := s.Stats()
			check(t, s.Close())
			s = mustOpen(t, dir, Options{FileSize: 1 << 20, Compact: off})
			verify()
			after := s.Stats()
			if before.Live != after.Live || before.Dead != after.Dead || before.Files != after.Files || before.Objects != after.Objects {
				t.Errorf("before reopen %+v, after %+v", before, after)
			}
		})
	}
}
