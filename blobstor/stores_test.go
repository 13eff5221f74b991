package blobstor_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
	"github.com/granary-store/granary/fstree"
)

// onDisk is the router as a program wires it: small blobs in a blobovnicza tree, large ones in an fstree. Loss of
// power, damage and faults are proven by the storages themselves and, for the router, over memory storages.
type onDisk struct {
	*blobstor.Router
	dir string
}

func openOnDisk(tb testing.TB, dir string, readOnly bool) *onDisk {
	tb.Helper()
	small, err := blobovnicza.Open(filepath.Join(dir, "small"), &blobovnicza.Options{
		Create: !readOnly, ReadOnly: readOnly, MaxBlob: 3000,
	})
	must(tb, err)
	large, err := fstree.Open(filepath.Join(dir, "large"), &fstree.Options{
		Create: !readOnly, ReadOnly: readOnly, MaxSize: 1 << 20,
		Depth: -1, // the suite makes a hundred stores, and directories cost more than blobs
	})
	must(tb, err)
	r, err := blobstor.New(
		// The storage's own limit is below the route's, so that some blobs fall through.
		blobstor.Route{Name: "small", MaxSize: 4096, Storage: small},
		blobstor.Route{Name: "large", Storage: large},
	)
	must(tb, err)
	tb.Cleanup(func() { r.Close() })
	return &onDisk{r, dir}
}

func TestStoresConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("real syncs take time")
	}
	again := func(readOnly bool) func(testing.TB, blobstor.Storage) blobstor.Storage {
		return func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			must(tb, s.Close())
			return openOnDisk(tb, s.(*onDisk).dir, readOnly)
		}
	}
	storagetest.Test(t, storagetest.Harness{
		Limit:    1 << 20,
		New:      func(tb testing.TB) blobstor.Storage { return openOnDisk(tb, tb.TempDir(), false) },
		Reopen:   again(false),
		ReadOnly: again(true),
	})
}

// TestCompressStores runs the suite on compression over the storages of this module, alone and behind a router. They
// sync nothing, for that is none of compression's business.
func TestCompressStores(t *testing.T) {
	if testing.Short() {
		t.Skip("makes hundreds of stores")
	}
	stores := map[string]func(tb testing.TB, dir string, readOnly bool) blobstor.Storage{
		"blobovnicza": func(tb testing.TB, dir string, readOnly bool) blobstor.Storage {
			s, err := blobovnicza.Open(dir, &blobovnicza.Options{Create: !readOnly, ReadOnly: readOnly, NoSync: !readOnly})
			must(tb, err)
			return s
		},
		"fstree": func(tb testing.TB, dir string, readOnly bool) blobstor.Storage {
			s, err := fstree.Open(dir, &fstree.Options{Create: !readOnly, ReadOnly: readOnly, NoSync: !readOnly, Depth: -1})
			must(tb, err)
			return s
		},
	}
	stores["router"] = func(tb testing.TB, dir string, readOnly bool) blobstor.Storage {
		r, err := blobstor.New(
			blobstor.Route{Name: "small", MaxSize: 4096, Storage: stores["blobovnicza"](tb, filepath.Join(dir, "small"), readOnly)},
			blobstor.Route{Name: "large", Storage: stores["fstree"](tb, filepath.Join(dir, "large"), readOnly)})
		must(tb, err)
		return r
	}
	for name, open := range stores {
		for _, level := range []int{-1, 1, 3, 7, 22} {
			t.Run(fmt.Sprintf("%s/level=%d", name, level), func(t *testing.T) {
				t.Parallel()
				storagetest.Test(t, compressHarness(blobstor.CompressOptions{Level: level}, diskHarness(open)))
			})
		}
	}
}

// inDir is a storage that knows its directory. It has the optional interfaces, or the suite would see only their
// fallbacks.
type inDir struct {
	blobstor.BlobStor
	dir string
}

func (s *inDir) ReadRange(ctx context.Context, addr blobstor.Address, at blobstor.Location, p []byte, off int64) (int, int64, error) {
	return blobstor.ReadRange(ctx, s.BlobStor, addr, at, p, off)
}

func (s *inDir) PutBatch(ctx context.Context, items []blobstor.Item) error {
	return blobstor.PutBatch(ctx, s.BlobStor, items)
}

func (s *inDir) DeleteBatch(ctx context.Context, items []blobstor.Item) error {
	return blobstor.DeleteBatch(ctx, s.BlobStor, items)
}

// diskHarness opens storages in directories.
func diskHarness(open func(tb testing.TB, dir string, readOnly bool) blobstor.Storage) storagetest.Harness {
	at := func(tb testing.TB, dir string, readOnly bool) blobstor.Storage {
		s := open(tb, dir, readOnly)
		tb.Cleanup(func() { s.Close() })
		return &inDir{blobstor.Stream(s), dir}
	}
	again := func(readOnly bool) func(testing.TB, blobstor.Storage) blobstor.Storage {
		return func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			must(tb, s.Close())
			return at(tb, s.(*inDir).dir, readOnly)
		}
	}
	return storagetest.Harness{
		New:      func(tb testing.TB) blobstor.Storage { return at(tb, tb.TempDir(), false) },
		Reopen:   again(false),
		ReadOnly: again(true),
	}
}
