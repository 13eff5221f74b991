package bolt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"
)

var update = flag.Bool("update", false, "write the golden store of the current format anew")

const goldenDir = "testdata/golden/v1"

// writeGolden makes the store: a branch, a long value, a small bucket, free pages, a sequence.
func writeGolden(t *testing.T) {
	t.Helper()
	check(t, os.RemoveAll(goldenDir))
	db := reopen(t, goldenDir, Options{Owner: []byte("golden")})
	put(t, db, 0, 30, 200)
	put(t, db, 30, 31, 5000)
	check(t, db.Update(func(tx *Tx) error {
		if err := tx.Bucket(pears).SetSequence(7); err != nil {
			return err
		}
		return tx.Bucket(pears).Put(key(1), []byte("pear"))
	}))
	check(t, db.Close())
	path := filepath.Join(goldenDir, fileName)
	b, err := os.ReadFile(path)
	check(t, err)
	m := image(b)
	check(t, os.Truncate(path, int64(m.meta(t).end)*pageSize))
}

// Every store of version 1 is read by every later release, on a machine of the same byte order.
func TestGoldenStore(t *testing.T) {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) != 1 {
		t.Skip("the golden store is little-endian")
	}
	if *update {
		writeGolden(t)
	}
	dir := filepath.Join(t.TempDir(), "store")
	check(t, os.CopyFS(dir, os.DirFS(goldenDir)))
	for _, o := range []Options{{ReadOnly: true}, {Owner: []byte("golden")}} {
		db := reopen(t, dir, o)
		check(t, db.Check(ctx))
		want := map[string]string{}
		for n := range 31 {
			want[string(key(n))] = string(value(n, 200))
		}
		want[string(key(30))] = string(value(30, 5000))
		same(t, contents(t, db, apples), want)
		same(t, contents(t, db, pears), map[string]string{string(key(1)): "pear"})
		check(t, db.View(func(tx *Tx) error {
			if n := tx.Bucket(pears).Sequence(); n != 7 {
				return fmt.Errorf("sequence %d", n)
			}
			return nil
		}))
		check(t, db.Close())
	}
}
