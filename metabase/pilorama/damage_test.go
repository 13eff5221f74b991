package pilorama

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// change edits the file's entries behind the package's back.
func (w *world) change(tb testing.TB, fn func(b *bolt.Bucket) error) {
	tb.Helper()
	must(tb, w.file.Update(func(tx *bolt.Tx) error { return fn(tx.Bucket(0)) }))
}

func sealed(b *bolt.Bucket, key []byte, value []byte) error {
	return b.Put(key, seal(key, bytes.Clone(value)))
}

// TestDamagedEntries: an entry that is damaged, missing or too many is ErrCorrupt where it is used, or found by Check,
// and spoils nothing else: another tree of the same group is written.
func TestDamagedEntries(t *testing.T) {
	one := number(1)
	flip := func(key []byte) func(b *bolt.Bucket) error {
		return func(b *bolt.Bucket) error {
			v := bytes.Clone(b.Get(key))
			v[0] ^= 1
			return b.Put(key, v)
		}
	}
	gone := func(key []byte) func(b *bolt.Bucket) error {
		return func(b *bolt.Bucket) error {
			if b.Get(key) == nil {
				return fmt.Errorf("no key %x", key)
			}
			return b.Delete(key)
		}
	}
	rec := record{place{Root, 3, appendMeta(nil, named("c"))}, 3}
	for name, do := range map[string]func(b *bolt.Bucket) error{
		"a flipped record":     flip(one.wordKey(nil, nodes, 1)),
		"a flipped log entry":  flip(one.wordKey(nil, logs, 2)),
		"a flipped last entry": flip(one.wordKey(nil, logs, 4)),
		"a flipped child":      flip(one.childKey(nil, 3, &rec)),
		"a flipped parent":     flip(one.wordKey(nil, parents, 1)),
		"a flipped tree":       flip(dictKey(nil, tree)),
		"a record is gone":     gone(one.wordKey(nil, nodes, 1)),
		"a log entry is gone":  gone(one.wordKey(nil, logs, 2)),
		"a child is gone":      gone(one.childKey(nil, 3, &rec)),
		"a parent is gone":     gone(one.wordKey(nil, parents, 1)),
		"a redo is gone":       gone(one.wordKey(nil, redos, 4)),
		"a redo too many":      func(b *bolt.Bucket) error { return sealed(b, one.wordKey(nil, redos, 3), nil) },
		"a tree is gone":       gone(dictKey(nil, tree)),
		"a log entry too many": func(b *bolt.Bucket) error {
			return sealed(b, one.wordKey(nil, logs, 9), (&entry{move: move{9, Root, 7, nil}, done: true}).appendTo(nil))
		},
		"it is said to be done": func(b *bolt.Bucket) error {
			return sealed(b, one.wordKey(nil, logs, 4), (&entry{move: move{4, 2, 1, nil}, done: true}).appendTo(nil))
		},
		"a record of nobody": func(b *bolt.Bucket) error { return sealed(b, one.wordKey(nil, nodes, 99), rec.appendTo(nil)) },
		"a wrong birth": func(b *bolt.Bucket) error {
			r := rec
			r.birth = 2
			return sealed(b, one.wordKey(nil, nodes, 3), r.appendTo(nil))
		},
		"a key of no tree":  func(b *bolt.Bucket) error { return sealed(b, number(99).wordKey(nil, nodes, 1), rec.appendTo(nil)) },
		"a short key":       func(b *bolt.Bucket) error { return sealed(b, []byte{nodes, 0}, nil) },
		"a key of no class": func(b *bolt.Bucket) error { return sealed(b, []byte{99}, nil) },
		"an entry elsewhere": func(b *bolt.Bucket) error {
			return b.Put(one.wordKey(nil, nodes, 2), bytes.Clone(b.Get(one.wordKey(nil, nodes, 1))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := quick(t)
			must(t, w.ApplyBatch(ctx, tree, []Operation{op(1, Root, 1, FileName, "a"), op(2, 1, 2, FileName, "b"), op(3, Root, 3, FileName, "c"), op(4, 2, 1)}))
			w.check(t)
			w.change(t, do)
			wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
			for _, err := range []error{w.Apply(ctx, tree, op(1<<20, 1, 4)), w.Apply(ctx, tree, op(5, 3, 1)), w.Truncate(ctx, tree, 2)} {
				if err != nil && !errors.Is(err, blobstor.ErrCorrupt) && name != "a tree is gone" {
					t.Error(err)
				}
			}
			must(t, w.Apply(ctx, doomed, op(1, Root, 1)))
			if name != "a flipped tree" {
				must(t, w.Drop(ctx, tree)) // whatever its keys say
				must(t, w.Apply(ctx, tree, op(1, Root, 1)))
			}
		})
	}
}

// TestDamageSpoilsNoOther: one of a group that meets damage fails alone.
func TestDamageSpoilsNoOther(t *testing.T) {
	w, g := gated(t, 0)
	must(t, w.Apply(ctx, tree, op(1, Root, 1)))
	w.change(t, func(b *bolt.Bucket) error { return b.Put(number(1).wordKey(nil, nodes, 1), []byte("damaged")) })
	arrived, open := g.hold()
	errs := make(chan error, 3)
	go func() { errs <- w.Apply(ctx, doomed, op(1, Root, 1)) }()
	<-arrived
	bad := make(chan error, 1)
	go func() { bad <- w.Apply(ctx, tree, op(2, Root, 1)) }()
	go func() { errs <- w.Apply(ctx, tree, op(3, Root, 3)) }()
	go func() { errs <- w.Apply(ctx, doomed, op(4, Root, 4)) }()
	for w.queues.users(tree)+w.queues.users(doomed) < 4 {
	}
	close(open)
	wantIs(t, <-bad, blobstor.ErrCorrupt)
	for range 3 {
		must(t, <-errs)
	}
}

// TestFlippedBytes flips bytes everywhere in a small file. A read tells the truth, or that something is damaged; what
// it cannot know is found by Check.
func TestFlippedBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	w := quick(t)
	must(t, w.ApplyBatch(ctx, tree, randomOps(rng, 150, 30)))
	want := w.tell()
	must(t, w.Close())
	path := filepath.Join(w.dir, "bolt")
	whole, err := os.ReadFile(path)
	must(t, err)
	used := len(bytes.TrimRight(whole, "\x00"))
	flips := 500
	if testing.Short() {
		flips = 80
	}
	for range flips {
		at, bit := rng.IntN(used), byte(1)<<rng.IntN(8)
		put(t, path, int64(at), whole[at]^bit)
		w.readDamaged(t, want, at, bit)
		put(t, path, int64(at), whole[at])
	}
	w.reopen(t)
	w.check(t)
}

func put(tb testing.TB, path string, at int64, to byte) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(tb, err)
	_, err = f.WriteAt([]byte{to}, at)
	must(tb, errors.Join(err, f.Close()))
}

// tell returns what the database says of each node, and where it says that it cannot.
func (w *world) tell() (answers []string) {
	add := func(v any, err error) {
		switch {
		case errors.Is(err, blobstor.ErrCorrupt), errors.Is(err, blobstor.ErrFailed):
			answers = append(answers, "")
		default:
			answers = append(answers, fmt.Sprint(v, errors.Is(err, blobstor.ErrNotFound)))
		}
	}
	for id := range NodeID(31) {
		add(w.GetMeta(ctx, tree, id+1))
		add(w.Children(ctx, tree, id, "", 99))
	}
	add(w.OpLog(ctx, tree, 0, 999))
	return answers
}

func (w *world) readDamaged(tb testing.TB, want []string, at int, bit byte) {
	tb.Helper()
	db, err := Open(w.dir, &Options{ReadOnly: true})
	if err != nil {
		if !errors.Is(err, blobstor.ErrCorrupt) && !errors.Is(err, blobstor.ErrLayout) {
			tb.Errorf("byte %d, bit %x: %v", at, bit, err)
		}
		return
	}
	damaged := &world{DB: db}
	got, checked := damaged.tell(), db.Check(ctx)
	must(tb, db.Close())
	for i := range got {
		if got[i] != want[i] && got[i] != "" && checked == nil {
			tb.Errorf("byte %d, bit %x: %q, want %q, and Check finds nothing", at, bit, got[i], want[i])
		}
	}
}
