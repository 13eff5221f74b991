package metabase

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// damage changes one byte of an entry in a bucket.
func (w *world) damage(tb testing.TB, class byte, key []byte) {
	tb.Helper()
	must(tb, w.file.Update(func(tx *bolt.Tx) error {
		key := append([]byte{class}, key...)
		v := bytes.Clone(tx.Bucket(0).Get(key))
		if len(v) == 0 {
			tb.Fatalf("%s has no %x", classNames[class], key)
		}
		v[0] ^= 1
		return tx.Bucket(0).Put(key, v)
	}))
}

func (w *world) keyOf(addr blobstor.Address) []byte {
	n, _, _ := w.dict.get(addr.Container)
	return appendRecKey(nil, n.number, &addr.Object)
}

// TestUnreadableRecord: what one record, mark or entry that cannot be read is good for: nobody is told something else,
// and nothing else stops.
func TestUnreadableRecord(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 9; n++ {
		w.record(t, Record{Address: object(1, n), Expires: 100, Attrs: []Attr{{"a", "x", Auto}}})
		w.put(t, object(2, n))
	}
	w.damage(t, recs, w.keyOf(object(1, 3)))
	for _, err := range []error{
		func() error { _, err := w.Get(ctx, object(1, 3)); return err }(),
		func() error { _, err := w.Exists(ctx, object(1, 3)); return err }(),
		func() error { _, err := w.Status(ctx, object(1, 3)); return err }(),
		w.Put(ctx, Record{Address: object(1, 3)}),
		w.Mark(ctx, Garbage, object(1, 3)),
		w.Check(ctx),
	} {
		wantIs(t, err, blobstor.ErrCorrupt)
		if !blobstor.IsFault(err) {
			t.Errorf("%v is no fault", err)
		}
	}
	w.epoch++
	page, err := w.Expired(ctx, blobstor.Address{}, 100)
	if err != nil || len(page) != 8 {
		t.Errorf("%d expired, %v", len(page), err)
	}
	for _, f := range page {
		must(t, w.Mark(ctx, Garbage, f.Address))
	}
	w.damage(t, marks, w.keyOf(object(1, 5)))
	if gone := w.removed(t); len(gone) != 7 {
		t.Errorf("%d removed", len(gone))
	}
	w.damage(t, recs, w.keyOf(object(2, 1)))
	must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(2)}))
	if gone := w.removed(t); len(gone) != 8 {
		t.Errorf("%d removed of the marked container", len(gone))
	}
	must(t, w.Drop(ctx, id(1))) // whatever its keys say
	must(t, w.Drop(ctx, id(2)))
	w.wantState(t, object(2, 1), Missing)
	w.check(t)
}

// TestForeignEntry: an entry is bound to its key. Under another one it is damage, and no record of that object.
func TestForeignEntry(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1), "a", "x")
	w.put(t, object(1, 2), "a", "y")
	must(t, w.file.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(0)
		v := bytes.Clone(b.Get(append([]byte{recs}, w.keyOf(object(1, 1))...)))
		return b.Put(append([]byte{recs}, w.keyOf(object(1, 2))...), v)
	}))
	_, err := w.Get(ctx, object(1, 2))
	wantIs(t, err, blobstor.ErrCorrupt)
	w.wantFound(t, where("a", EQ, "x"), 1)
	q := where("a", EQ, "y")
	q.Container = id(1)
	_, err = w.Search(ctx, q)
	wantIs(t, err, blobstor.ErrCorrupt)
}

// TestStrayKeys: Check finds what belongs to nothing.
func TestStrayKeys(t *testing.T) {
	sealed := func(b *bolt.Bucket, key []byte, value ...byte) error { return b.Put(key, seal(key, value, 0)) }
	first := func(b *bolt.Bucket, class byte) []byte {
		k, _ := b.Cursor().Seek([]byte{class})
		return bytes.Clone(k)
	}
	for name, do := range map[string]func(b *bolt.Bucket, key []byte) error{
		"a mark that is not counted": func(b *bolt.Bucket, key []byte) error {
			return sealed(b, append([]byte{marks}, key...), byte(Garbage))
		},
		"an index entry is gone": func(b *bolt.Bucket, _ []byte) error { return b.Delete(first(b, attrs)) },
		"a record is gone":       func(b *bolt.Bucket, key []byte) error { return b.Delete(append([]byte{recs}, key...)) },
		"the counters are gone":  func(b *bolt.Bucket, _ []byte) error { return b.Delete(first(b, counts)) },
		"the expiry is gone":     func(b *bolt.Bucket, _ []byte) error { return b.Delete(first(b, expires)) },
		"a key of nobody": func(b *bolt.Bucket, key []byte) error {
			return sealed(b, append(container(99).append([]byte{marks}), key[prefix:]...), 1)
		},
		"a short key": func(b *bolt.Bucket, _ []byte) error { return sealed(b, []byte{marks, 1}, 1) },
		"an expiry of nobody": func(b *bolt.Bucket, key []byte) error {
			return sealed(b, append([]byte{expires, 7: 0, 8: 0}, key...))
		},
		"an entry under another key": func(b *bolt.Bucket, key []byte) error {
			key = append([]byte{recs}, key...)
			v := bytes.Clone(b.Get(key))
			key[len(key)-1]++
			return b.Put(key, v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{NoSync: true, Ballast: -1})
			w.record(t, Record{Address: object(1, 1), Expires: 200, Attrs: []Attr{{"a", "x", Auto}}})
			w.check(t)
			must(t, w.file.Update(func(tx *bolt.Tx) error { return do(tx.Bucket(0), w.keyOf(object(1, 1))) }))
			wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
			// Maintenance goes on, whatever it finds.
			_, err := w.Collect(ctx, 9, func(context.Context, []blobstor.Item) error { return nil })
			must(t, err)
			_, err = w.Expired(ctx, blobstor.Address{}, 9)
			must(t, err)
		})
	}
}

// TestFlippedBytes flips bytes everywhere in a small file. A read tells the truth, or that something is damaged; what
// it cannot know is found by Check.
func TestFlippedBytes(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	var addrs []blobstor.Address
	for n := 1; n <= 40; n++ {
		r := Record{Address: object(1+n%2, n), Size: int64(n), Attrs: []Attr{{"name", string(rune('a' + n)), Auto}, {"n", "5", Auto}}}
		if n%4 == 0 {
			r.Parent, r.Chain = id(99), "chain"
		}
		w.record(t, r)
		addrs = append(addrs, r.Address)
	}
	must(t, w.Mark(ctx, Garbage, addrs[:5]...))
	want := truth(t, w.DB, addrs)
	must(t, w.Close())
	path := filepath.Join(w.dir, "bolt")
	whole, err := os.ReadFile(path)
	must(t, err)
	used := len(bytes.TrimRight(whole, "\x00"))
	flips := 600
	if testing.Short() {
		flips = 100
	}
	for range flips {
		at, bit := rng.IntN(used), byte(1)<<rng.IntN(8)
		flip(t, path, int64(at), whole[at]^bit)
		w.readDamaged(t, addrs, want, at, bit)
		flip(t, path, int64(at), whole[at])
	}
	w.reopen(t)
	w.check(t)
}

func flip(tb testing.TB, path string, at int64, to byte) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(tb, err)
	_, err = f.WriteAt([]byte{to}, at)
	must(tb, errors.Join(err, f.Close()))
}

// answer is what a database says of an object.
type answer struct {
	Record
	missing bool // for whatever reason
	corrupt bool
}

func truth(tb testing.TB, db *DB, addrs []blobstor.Address) (as []answer) {
	tb.Helper()
	for _, addr := range addrs {
		r, err := db.Get(ctx, addr)
		a := answer{Record: r, missing: errors.Is(err, blobstor.ErrNotFound), corrupt: errors.Is(err, blobstor.ErrCorrupt)}
		if err != nil && !a.missing && !a.corrupt {
			tb.Errorf("%v", err)
		}
		as = append(as, a)
	}
	return as
}

// readDamaged opens the damaged file for reading and compares.
func (w *world) readDamaged(tb testing.TB, addrs []blobstor.Address, want []answer, at int, bit byte) {
	tb.Helper()
	db, err := Open(w.dir, &Options{ReadOnly: true, Epoch: w.opts.Epoch})
	if err != nil {
		if !errors.Is(err, blobstor.ErrCorrupt) && !errors.Is(err, blobstor.ErrLayout) {
			tb.Errorf("byte %d, bit %x: open: %v", at, bit, err)
		}
		return
	}
	defer db.Close()
	found := db.Check(ctx)
	if found != nil && !errors.Is(found, blobstor.ErrCorrupt) {
		tb.Errorf("byte %d, bit %x: check: %v", at, bit, found)
	}
	for i, a := range truth(tb, db, addrs) {
		switch {
		case a.corrupt, a.missing && found != nil:
		case a.missing != want[i].missing && found != nil: // a lost mark or container mark
		case !reflect.DeepEqual(a, want[i]):
			tb.Errorf("byte %d, bit %x: object %d is %+v, want %+v, check says %v", at, bit, i, a, want[i], found)
		}
	}
	for _, q := range []Query{where("n", GE, "0"), where("name", NE, ""), {}} {
		for c := 1; c <= 2; c++ {
			q.Container, q.Limit = id(c), 100
			if p, err := db.Search(ctx, q); err != nil && !errors.Is(err, blobstor.ErrCorrupt) || err == nil && found == nil && len(p.Found) == 0 {
				tb.Errorf("byte %d, bit %x: search: %d, %v", at, bit, len(p.Found), err)
			}
		}
	}
	if _, err := db.List(ctx, blobstor.Address{}, 100); err != nil && !errors.Is(err, blobstor.ErrCorrupt) {
		tb.Errorf("byte %d, bit %x: list: %v", at, bit, err)
	}
}

// TestWritesOnDamage flips bytes and goes on writing: every error is typed, and the process lives.
func TestWritesOnDamage(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := 1; n <= 20; n++ {
		w.put(t, object(1+n%2, n), "name", string(rune('a'+n)))
	}
	must(t, w.Close())
	path := filepath.Join(w.dir, "bolt")
	whole, err := os.ReadFile(path)
	must(t, err)
	used := len(bytes.TrimRight(whole, "\x00"))
	for range 30 {
		at, bit := rng.IntN(used), byte(1)<<rng.IntN(8)
		flip(t, path, int64(at), whole[at]^bit)
		if db, err := Open(w.dir, &w.opts); err == nil {
			for i, err := range []error{
				db.Put(ctx, Record{Address: object(1, 50), Attrs: []Attr{{"name", "x", Auto}}}),
				db.Mark(ctx, Garbage, object(1, 2), object(2, 3)),
				func() error {
					_, err := db.Collect(ctx, 5, func(context.Context, []blobstor.Item) error { return nil })
					return err
				}(),
				db.Drop(ctx, id(2)), db.Compact(ctx), db.Reset(ctx),
			} {
				if err != nil && !errors.Is(err, blobstor.ErrCorrupt) {
					t.Errorf("byte %d, bit %x: operation %d: %v", at, bit, i, err)
				}
			}
			db.Close()
		}
		must(t, os.WriteFile(path, whole, 0o600))
	}
}
