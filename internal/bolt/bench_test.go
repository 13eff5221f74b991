package bolt

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// BenchmarkView reads one key in a transaction, here and with bbolt alone.
func BenchmarkView(b *testing.B) {
	db := create(b, Options{NoSync: true})
	put(b, db, 0, 10_000, 100)
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			check(b, db.View(func(tx *Tx) error {
				if tx.Bucket(apples).Get(key(n%10_000)) == nil {
					b.Error("missing")
				}
				return nil
			}))
		}
	})
	b.Run("bbolt", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			check(b, db.cur.db.View(func(tx *bbolt.Tx) error {
				if tx.Bucket([]byte("apples")).Get(key(n%10_000)) == nil {
					b.Error("missing")
				}
				return nil
			}))
		}
	})
	check(b, db.Close())
}

// BenchmarkUpdate commits one key, with syncs.
func BenchmarkUpdate(b *testing.B) {
	db := reopen(b, filepath.Join(b.TempDir(), "store"), Options{})
	put(b, db, 0, 10_000, 100)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		put(b, db, n%10_000, n%10_000+1, 100)
	}
	check(b, db.Close())
}

// BenchmarkCheck walks a file of about a hundred thousand pages, which the system has in its cache.
func BenchmarkCheck(b *testing.B) {
	db := create(b, Options{NoSync: true})
	for n := range 100 {
		put(b, db, n*10_000, (n+1)*10_000, 250)
	}
	file, _ := sizes(b, db)
	b.SetBytes(file)
	for b.Loop() {
		check(b, db.Check(ctx))
	}
	check(b, db.Close())
}
