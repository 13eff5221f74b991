package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

var ctx = context.Background()

// The buckets of the tests.
const (
	apples = iota
	pears
)

// memory is a directory in memory if there is one.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bolt")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func options(o Options) *Options {
	o.Kind = "test"
	o.Create = !o.ReadOnly
	if o.Buckets == nil {
		o.Buckets = []string{"apples", "pears"}
	}
	if o.Ballast == 0 {
		o.Ballast = -1
	}
	return &o
}

// create makes a store in a fresh directory.
func create(t testing.TB, o Options) *DB {
	t.Helper()
	return reopen(t, filepath.Join(memory(t), "store"), o)
}

// reopen opens or makes a store. It is closed when the test ends.
func reopen(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, options(o))
	check(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkIs(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("got %v, want %v", err, w)
		}
	}
}

func key(n int) []byte { return fmt.Appendf(nil, "key %06d", n) }

// put commits keys first to last-1, each with a value of size bytes that names it.
func put(t testing.TB, db *DB, first, last, size int) {
	t.Helper()
	check(t, db.Update(putting(first, last, size)))
}

func putting(first, last, size int) func(*Tx) error {
	return func(tx *Tx) error {
		for n := first; n < last; n++ {
			if err := tx.Bucket(apples).Put(key(n), value(n, size)); err != nil {
				return err
			}
		}
		return nil
	}
}

func value(n, size int) []byte {
	v := make([]byte, size)
	copy(v, key(n))
	return v
}

// contents returns all of a bucket.
func contents(t testing.TB, db *DB, bucket int) map[string]string {
	t.Helper()
	m := map[string]string{}
	check(t, db.View(func(tx *Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			m[string(k)] = string(v)
			return nil
		})
	}))
	return m
}

// sizes returns the bytes of the file, and those of its free pages.
func sizes(t testing.TB, db *DB) (file, free int64) {
	t.Helper()
	f := db.cur.file
	file, err := f.Size()
	check(t, err)
	now, _, err := readMetas(f, file)
	check(t, err)
	p := pages{f, *now}
	_, err = p.eachFree(func(uint64) error { free += pageSize; return nil })
	check(t, err)
	return file, free
}

func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("%d keys, want %d, or other values", len(got), len(want))
	}
}
