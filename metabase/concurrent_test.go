package metabase

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestReadersBesideRemoval: what was marked when a read began is never read, also not while the last mark of the
// container goes together with its record.
func TestReadersBesideRemoval(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	const rounds = 200
	var marked atomic.Int64 // the object that was marked last, and is not put again
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !done.Load() {
				n := int(marked.Load())
				if n == 0 {
					continue
				}
				for _, k := range []int{n, -n} {
					if _, err := w.Get(ctx, object(1, k)); !errors.Is(err, blobstor.ErrNotFound) {
						t.Errorf("object %d is read after it was removed: %v", k, err)
						return
					}
				}
			}
		})
	}
	for n := 1; n <= rounds && !t.Failed(); n++ {
		must(t, w.Put(ctx, Record{Address: object(1, n)}))
		must(t, w.Put(ctx, Record{Address: object(1, -n)}))
		must(t, w.Put(ctx, tombstone(1, 1_000_000+n, -n)))
		must(t, w.Mark(ctx, Garbage, object(1, n)))
		marked.Store(int64(n))
		for range 2 {
			_, err := w.Collect(ctx, 10, func(context.Context, []blobstor.Item) error { return nil })
			must(t, err)
			must(t, w.Mark(ctx, Garbage, object(1, 1_000_000+n)))
		}
	}
	done.Store(true)
	wg.Wait()
	w.check(t)
}

// TestCheckBesideWrites: Check finds nothing while containers come and go.
func TestCheckBesideWrites(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.epoch = 0
	var done atomic.Bool
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for n := 0; !done.Load() && !t.Failed(); n++ {
				c := 1 + g + 3*(n%4)
				must(t, w.Put(ctx, Record{Address: object(c, n%50), Expires: 90 + uint64(n%50), Attrs: []Attr{{"a", "1", Auto}}}, virtual(c, 1000)))
				if n%7 == 0 {
					must(t, w.Drop(ctx, id(c)))
				}
			}
		})
	}
	for range 100 {
		w.check(t)
		if _, err := w.List(ctx, blobstor.Address{}, 100); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	wg.Wait()
	w.check(t)
}
