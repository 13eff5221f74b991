package pilorama

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// TestOpen: what is no database of trees, or another's, is refused and stays as it is.
func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trees")
	_, err := Open(dir, nil)
	wantIs(t, err, blobstor.ErrLayout)
	for _, o := range []Options{{Create: true, ReadOnly: true}, {NoSync: true, ReadOnly: true}, {Queue: -1}} {
		if _, err := Open(dir, &o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	db, err := Open(dir, &Options{Create: true, Ballast: -1, Owner: []byte("me")})
	must(t, err)
	_, err = Open(dir, nil)
	wantIs(t, err, blobstor.ErrInUse)
	must(t, db.Close())
	must(t, db.Close())
	_, err = Open(dir, &Options{Owner: []byte("you")})
	wantIs(t, err, blobstor.ErrLayout)
	file, err := bolt.Open(dir, &bolt.Options{Kind: "pilorama", Buckets: []string{bucketName}, Ballast: -1})
	must(t, err)
	must(t, file.Update(func(tx *bolt.Tx) error {
		return sealed(tx.Bucket(0), append([]byte{settings}, keyVersion...), []byte{2})
	}))
	must(t, file.Close())
	_, err = Open(dir, nil)
	wantIs(t, err, blobstor.ErrLayout)
	other := filepath.Join(t.TempDir(), "other")
	file, err = bolt.Open(other, &bolt.Options{Kind: "metabase", Create: true, Buckets: []string{bucketName}, Ballast: -1})
	must(t, err)
	must(t, file.Close())
	_, err = Open(other, &Options{Create: true})
	wantIs(t, err, blobstor.ErrLayout)
}

// TestContext: a context that ended before is an error, and nothing happened.
func TestContext(t *testing.T) {
	w := quick(t)
	a := w.addPath(t, "a")
	before := w.dump(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, add := w.Add(ended, tree, alone, Root, nil)
	_, meta := w.GetMeta(ended, tree, a)
	_, list := w.List(ended, tree.Container)
	var subtree, base error
	for _, subtree = range w.Subtree(ended, tree, Root, 0, "") {
		break
	}
	for _, base = range w.Base(ended, tree) {
		break
	}
	for _, err := range []error{
		add, meta, list, subtree, base, w.Apply(ended, tree, op(99, Root, 99)), w.Drop(ended, tree), w.Truncate(ended, tree, 1),
		w.Check(ended), w.SetReadOnly(ended, true),
	} {
		refused(t, err, context.Canceled)
	}
	if w.dump(t) != before {
		t.Error("it changed")
	}
}

// TestCloseBesideCalls: Close waits for the calls inside, and later ones are refused.
func TestCloseBesideCalls(t *testing.T) {
	w := quick(t)
	w.addPath(t, "a")
	var wg sync.WaitGroup
	acknowledged := make([]int, 8)
	for i := range acknowledged {
		wg.Go(func() {
			for {
				_, err := w.Add(ctx, tree, Clock{uint64(i), 8}, Root, nil)
				if err != nil {
					refused(t, err, blobstor.ErrClosed)
					return
				}
				acknowledged[i]++
				for _, err := range w.Subtree(ctx, tree, Root, 1, "") {
					if err != nil && !errors.Is(err, blobstor.ErrClosed) {
						t.Error(err)
					}
					break
				}
			}
		})
	}
	must(t, w.Close())
	wg.Wait()
	w.DB = nil
	w.reopen(t)
	log, err := w.OpLog(ctx, tree, 0, 1<<20)
	must(t, err)
	want := 1
	for _, n := range acknowledged {
		want += n
	}
	if len(log) != want {
		t.Errorf("%d operations, %d were acknowledged", len(log), want)
	}
}
