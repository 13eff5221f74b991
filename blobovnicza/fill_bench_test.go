package blobovnicza

import (
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/blobstor"
)

// fillSealed makes a store of n equal blobs in dir and closes it. All of them but the last lie in full files, so
// that a reader of it needs their index files.
func fillSealed(b *testing.B, dir string, opts Options, n int, data []byte) []blobstor.Location {
	b.Helper()
	opts.Create, opts.NoSync = true, true
	locations := fill(b, dir, opts, 0, n-1, data)
	opts.FileSize = 1 // what is put now is the first of a new file
	return append(locations, fill(b, dir, opts, n-1, n, data)...)
}

// fill opens the store in dir, puts the blobs from the first to before the last, and closes it.
func fill(b *testing.B, dir string, opts Options, first, last int, data []byte) []blobstor.Location {
	b.Helper()
	s, err := Open(dir, &opts)
	check(b, err)
	locations := make([]blobstor.Location, 0, last-first)
	for from := first; from < last; from += 1000 {
		items := make([]blobstor.Item, min(1000, last-from))
		for i := range items {
			items[i] = blobstor.Item{Address: benchAddr(from + i), Data: data}
		}
		check(b, s.PutBatch(ctx, items))
		for i := range items {
			locations = append(locations, items[i].Location)
		}
	}
	check(b, s.Close())
	return locations
}

// spreadSize is the FileSize with which n blobs of that size fill about that many files. The manifest at the start
// of a file lists all before it, so the files together hold half the square of their number in entries.
func spreadSize(n, size, files int) int64 {
	record := recordSize(kindPut, uint32(size))
	manifest := recordSize(kindManifest, manifestHead)
	return int64(n)*record/int64(files) + record/2 + manifest + int64(files)*manifestEntry/2
}

func fillBolt(b *testing.B, dir string) *bbolt.DB {
	db := openBoltDB(b, dir)
	data := dataOf(1, 4096)
	for from := 0; from < storeSize; from += 1000 {
		check(b, db.Update(func(tx *bbolt.Tx) error {
			for n := from; n < from+1000; n++ {
				addr := benchAddr(n)
				if err := tx.Bucket(boltBucket).Put(boltKey(&addr), data); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return db
}

// median of the values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
