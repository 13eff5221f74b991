package bolt

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestModel compares a store with maps, through commits, rollbacks and reopens.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(memory(t), "store")
	db := reopen(t, dir, Options{})
	model := [2]map[string]string{{}, {}}
	undo := errors.New("undo")
	rounds := 200
	if testing.Short() {
		rounds = 50
	}
	for range rounds {
		next := [2]map[string]string{clone(model[0]), clone(model[1])}
		keep := rng.IntN(4) > 0
		err := db.Update(func(tx *Tx) error {
			for range rng.IntN(100) {
				change(t, rng, tx, next)
			}
			if !keep {
				return undo
			}
			return nil
		})
		switch {
		case keep:
			check(t, err)
			model = next
		case err != undo: //nolint:errorlint // as it is
			t.Fatalf("got %v, want the function's own error", err)
		}
		if rng.IntN(20) == 0 {
			check(t, db.Close())
			db = reopen(t, dir, Options{})
		}
		if rng.IntN(50) == 0 {
			check(t, db.Compact(ctx))
		}
		check(t, db.Check(ctx))
		same(t, contents(t, db, apples), model[apples])
		same(t, contents(t, db, pears), model[pears])
	}
}

func clone(m map[string]string) map[string]string {
	c := make(map[string]string, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// change does one thing to a bucket and its model.
func change(t *testing.T, rng *rand.Rand, tx *Tx, model [2]map[string]string) {
	t.Helper()
	b, k := rng.IntN(2), key(rng.IntN(2000))
	if rng.IntN(3) == 0 {
		check(t, tx.Bucket(b).Delete(k))
		delete(model[b], string(k))
		return
	}
	v := make([]byte, rng.IntN(300))
	if rng.IntN(100) == 0 {
		v = make([]byte, rng.IntN(20_000)) // It needs several pages.
	}
	check(t, tx.Bucket(b).Put(k, v))
	model[b][string(k)] = string(v)
}

func TestOptions(t *testing.T) {
	dir := memory(t)
	for name, o := range map[string]Options{
		"no kind":    {Buckets: []string{"a"}, Create: true},
		"no buckets": {Kind: "test", Create: true},
		"too many":   {Kind: "test", Buckets: strings.Fields("a b c d e f g h i"), Create: true},
		"twice":      {Kind: "test", Buckets: []string{"a", "a"}, Create: true},
		"no sync":    {Kind: "test", Buckets: []string{"a"}, ReadOnly: true, NoSync: true},
		"read only":  {Kind: "test", Buckets: []string{"a"}, ReadOnly: true, Create: true},
	} {
		if _, err := Open(filepath.Join(dir, name), &o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func TestNoStore(t *testing.T) {
	dir := memory(t)
	o := options(Options{})
	o.Create = false
	_, err := Open(dir, o)
	checkIs(t, err, blobstor.ErrLayout)
	_, err = Open(filepath.Join(dir, "none"), o)
	checkIs(t, err, blobstor.ErrLayout)
	reopen(t, filepath.Join(dir, "store"), Options{})
	_, err = Open(filepath.Join(dir, "store"), o)
	checkIs(t, err, blobstor.ErrInUse)
}

func TestReadOnly(t *testing.T) {
	db := create(t, Options{})
	put(t, db, 0, 100, 10)
	dir := db.store.Dir.Path()
	want := contents(t, db, apples)
	check(t, db.Close())
	a, b := reopen(t, dir, Options{ReadOnly: true}), reopen(t, dir, Options{ReadOnly: true})
	for _, db := range []*DB{a, b} {
		same(t, contents(t, db, apples), want)
		checkIs(t, db.Update(putting(0, 1, 1)), blobstor.ErrReadOnly)
		checkIs(t, db.Compact(ctx), blobstor.ErrReadOnly)
	}
}

func TestClosed(t *testing.T) {
	db := create(t, Options{})
	check(t, db.Close())
	check(t, db.Close())
	checkIs(t, db.View(func(*Tx) error { return nil }), blobstor.ErrClosed)
	checkIs(t, db.Update(func(*Tx) error { return nil }), blobstor.ErrClosed)
}

// TestCloseWaits closes a store while a transaction reads it.
func TestCloseWaits(t *testing.T) {
	db := create(t, Options{})
	put(t, db, 0, 100, 10)
	closed := make(chan error)
	check(t, db.View(func(tx *Tx) error {
		go func() { closed <- db.Close() }()
		for h, err := db.begin(); err == nil; h, err = db.begin() { // until Close has begun
			db.end(h)
			runtime.Gosched()
		}
		select {
		case <-closed:
			t.Error("closed before the transaction ended")
		default:
		}
		if v := tx.Bucket(apples).Get(key(99)); len(v) != 10 {
			t.Errorf("%d bytes", len(v))
		}
		return nil
	}))
	check(t, <-closed)
}

// TestCloseRefusesTheQueue: what waits for a commit while Close begins has not begun.
func TestCloseRefusesTheQueue(t *testing.T) {
	db := create(t, Options{})
	queued, closed := make(chan error), make(chan error)
	check(t, db.Update(func(*Tx) error {
		go func() { queued <- db.Update(putting(0, 1, 1)) }()
		go func() { closed <- db.Close() }()
		for h, err := db.begin(); err == nil; h, err = db.begin() {
			db.end(h)
			runtime.Gosched()
		}
		return nil
	}))
	checkIs(t, <-queued, blobstor.ErrClosed)
	check(t, <-closed)
}

// TestMissingBucket asks for a bucket that the file lacks: at Open, and in a transaction.
func TestMissingBucket(t *testing.T) {
	db := create(t, Options{})
	db.cur.names = append(db.cur.names, []byte("plums"))
	lacking := func(tx *Tx) error {
		tx.Bucket(2)
		t.Error("there is such a bucket")
		return nil
	}
	checkIs(t, db.View(lacking), blobstor.ErrCorrupt)
	checkIs(t, db.Update(lacking), blobstor.ErrCorrupt)
	put(t, db, 0, 1, 1) // It harms nothing else.
	check(t, db.Close())
	_, err := Open(db.store.Dir.Path(), options(Options{Buckets: []string{"apples", "plums"}}))
	checkIs(t, err, blobstor.ErrCorrupt)
}

// TestCachedBucket counts look-ups: one a bucket and transaction.
func TestCachedBucket(t *testing.T) {
	db := create(t, Options{})
	looks := func(tx *Tx) error {
		for range 10 {
			tx.Bucket(apples)
			tx.Bucket(pears)
		}
		if n := tx.Cursors(); n != 2 {
			t.Errorf("%d cursors, want 2", n)
		}
		return nil
	}
	check(t, db.View(looks))
	check(t, db.Update(looks))
}

// TestNoBucketIsMade looks at what bbolt logs.
func TestNoBucketIsMade(t *testing.T) {
	made := 0
	log := &discard{debug: func(format string) {
		if strings.Contains(format, "Creating bucket") {
			made++
		}
	}}
	db := create(t, Options{BoltLog: log})
	put(t, db, 0, 100, 100)
	check(t, db.Compact(ctx))
	put(t, db, 0, 100, 100)
	if made != 0 {
		t.Errorf("%d buckets made after Open", made)
	}
	check(t, db.Update(func(tx *Tx) error {
		_, err := tx.b.CreateBucketIfNotExists([]byte("apples"))
		return err
	}))
	if made == 0 {
		t.Error("the log is blind")
	}
}

type discard struct{ debug func(format string) }

func (d *discard) Debug(...any)                   {}
func (d *discard) Debugf(format string, _ ...any) { d.debug(format) }
func (d *discard) Error(...any)                   {}
func (d *discard) Errorf(string, ...any)          {}
func (d *discard) Info(...any)                    {}
func (d *discard) Infof(string, ...any)           {}
func (d *discard) Warning(...any)                 {}
func (d *discard) Warningf(string, ...any)        {}
func (d *discard) Fatal(...any)                   {}
func (d *discard) Fatalf(string, ...any)          {}
func (d *discard) Panic(...any)                   {}
func (d *discard) Panicf(string, ...any)          {}
