package bolt

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

const sector = 512 // what a disk writes whole or not at all

// power models what a loss of power leaves of a file: all that was synced, and of what was written since any sectors.
type power struct {
	synced  []byte
	pending []write
	each    func() // called after each write
}

type write struct {
	off uint64
	b   []byte
}

// watch records bbolt's writes. A commit syncs before it writes its meta page, and at its end.
func (p *power) watch(db *DB) {
	db.hookWrites(func(_ int, b []byte, off int64, to func([]byte) (int, error)) (int, error) {
		if off < 2*pageSize {
			p.sync()
		}
		p.pending = append(p.pending, write{uint64(off), bytes.Clone(b)})
		p.each()
		return to(b)
	})
}

func (p *power) sync() {
	for _, w := range p.pending {
		p.synced = apply(p.synced, w.off, w.b)
	}
	p.pending = nil
}

// loss is a file as a loss of power may leave it.
func (p *power) loss(rng *rand.Rand) image {
	m := append([]byte(nil), p.synced...)
	share := rng.IntN(4)
	for _, w := range p.pending {
		for off := 0; off < len(w.b); off += sector {
			if rng.IntN(3) < share {
				m = apply(m, w.off+uint64(off), w.b[off:min(off+sector, len(w.b))])
			}
		}
	}
	return m
}

func apply(m []byte, off uint64, b []byte) []byte {
	if end := off + uint64(len(b)); end > uint64(len(m)) {
		m = append(m, make([]byte, end-uint64(len(m)))...)
	}
	copy(m[off:], b)
	return m
}

// TestPowerLoss cuts the power at every write of every commit: Open takes what is left, finds no damage in it, and has
// all commits that had ended, and the one under way as a whole or not at all.
func TestPowerLoss(t *testing.T) {
	commits := 60
	if testing.Short() {
		commits = 8
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	db := create(t, Options{})
	put(t, db, 0, 500, 100)
	synced, err := os.ReadFile(filepath.Join(db.store.Dir.Path(), fileName))
	check(t, err)
	p := &power{synced: synced[:256*pageSize]} // All that is needed: the rest is a hole.
	p.watch(db)
	dir := image(synced).store(t, markDirty)
	there := map[bool]int{}
	before := contents(t, db, apples)
	for range commits {
		var left []image
		p.each = func() { left = append(left, p.loss(rng)) }
		check(t, db.Update(scatter(rng)))
		p.sync()
		after := contents(t, db, apples)
		for _, m := range left {
			there[openLost(t, dir, m, before, after)]++
		}
		before = after
	}
	t.Logf("the commit under way was there, or not: %v", there)
	if there[true] == 0 || there[false] == 0 {
		t.Error("want both")
	}
}

// scatter writes and deletes keys all over.
func scatter(rng *rand.Rand) func(*Tx) error {
	return func(tx *Tx) error {
		for range rng.IntN(20) + 1 {
			if err := tx.Bucket(apples).Put(key(rng.IntN(1000)), value(rng.Int(), 20+rng.IntN(200))); err != nil {
				return err
			}
		}
		return tx.Bucket(apples).Delete(key(rng.IntN(1000)))
	}
}

// openLost opens what a loss of power left, and reports whether it has the commit that was under way.
func openLost(t *testing.T, dir string, m image, before, after map[string]string) bool {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(dir, fileName), m, 0o600))
	if err := os.Rename(filepath.Join(dir, markClean), filepath.Join(dir, markDirty)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	db := reopen(t, dir, Options{})
	check(t, db.Check(ctx))
	got := contents(t, db, apples)
	check(t, db.Close())
	if maps.Equal(got, after) {
		return true
	}
	same(t, got, before)
	return false
}
