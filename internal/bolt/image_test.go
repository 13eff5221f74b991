package bolt

import (
	"bytes"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
)

// image is a bbolt file in memory, for tests that damage it.
type image []byte

// sample is the file of a closed store: a branch, a long value, a small bucket, free pages.
func sample(t testing.TB) image { return sampleOf(t, 2000) }

func sampleOf(t testing.TB, keys int) image {
	t.Helper()
	return sampleAfter(t, func(db *DB) {
		put(t, db, 0, keys, 400)
		put(t, db, keys, keys+1, 20_000)
		check(t, db.Update(func(tx *Tx) error {
			for n := range keys * 3 / 20 {
				if err := tx.Bucket(apples).Delete(key(n)); err != nil {
					return err
				}
			}
			return tx.Bucket(pears).Put(key(1), []byte("pear"))
		}))
		put(t, db, keys/2, keys/2+1, 300) // the last commit: one path
	})
}

func sampleAfter(t testing.TB, fill func(*DB)) image {
	t.Helper()
	db := create(t, Options{})
	fill(db)
	check(t, db.Close())
	b, err := os.ReadFile(filepath.Join(db.store.Dir.Path(), fileName))
	check(t, err)
	m := image(b)
	return m[:m.meta(t).end*pageSize] // bbolt makes a file longer in large steps.
}

func (m image) clone() image { return bytes.Clone(m) }

func (m image) at(id uint64) []byte { return m[id*pageSize:] }

// meta is the meta that counts.
func (m image) meta(t testing.TB) *meta {
	t.Helper()
	now, _, err := readMetas(bytes.NewReader(m), int64(len(m)))
	check(t, err)
	return now
}

// metaAt is where its page begins.
func (m image) metaAt(t testing.TB) []byte { return m.at(m.meta(t).commit % 2) }

// seal makes the checksums of the metas right.
func (m image) seal() image {
	for id := range uint64(2) {
		h := fnv.New64a()
		h.Write(m.at(id)[headerSize:72])
		order.PutUint64(m.at(id)[72:], h.Sum64())
	}
	return m
}

// apples is the root page of the bucket, a branch.
func (m image) apples(t testing.TB) page {
	t.Helper()
	root := m.page(t, m.meta(t).root)
	return m.page(t, root.child(0))
}

// leaf is a leaf of the bucket, in the middle.
func (m image) leaf(t testing.TB) page {
	t.Helper()
	p := m.apples(t)
	for p.kind == typeBranch {
		p = m.page(t, p.child(p.len()/2))
	}
	return p
}

// page is a page of the image; what is written to its bytes changes the image.
func (m image) page(t testing.TB, id uint64) page {
	t.Helper()
	h := parseHeader(m.at(id))
	p, err := parsePage(m.at(id)[:(h.overflow+1)*pageSize])
	check(t, err)
	return p
}

// store makes a store of it, without a mark or with one.
func (m image) store(t testing.TB, mark string) string {
	t.Helper()
	db := create(t, Options{})
	check(t, db.Close())
	dir := db.store.Dir.Path()
	check(t, os.Remove(filepath.Join(dir, markClean)))
	if mark != "" {
		check(t, os.WriteFile(filepath.Join(dir, mark), nil, 0o600))
	}
	check(t, os.WriteFile(filepath.Join(dir, fileName), m, 0o600))
	return dir
}
