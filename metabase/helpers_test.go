package metabase

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

var ctx = context.Background()

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantIs(tb testing.TB, err error, want ...error) {
	tb.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			tb.Errorf("got %v, want %v", err, w)
		}
	}
}

// id returns the n-th ID.
func id(n int) (id blobstor.ID) {
	binary.BigEndian.PutUint32(id[:], uint32(n))
	id[31] = 1
	return id
}

// object returns the address of the n-th object in container c.
func object(c, n int) blobstor.Address { return blobstor.Address{Container: id(c), Object: id(n)} }

// world is a database under test, and the time in it.
type world struct {
	*DB
	dir   string
	epoch uint64
	opts  Options
}

func newWorld(tb testing.TB, opts Options) *world {
	tb.Helper()
	w := &world{dir: filepath.Join(tb.TempDir(), "meta"), epoch: 100}
	opts.Create = true
	opts.Epoch = func() uint64 { return w.epoch }
	opts.pending = cmp.Or(opts.pending, 6) // so that every test has both: what is in the index, and what is pending
	w.opts = opts
	w.reopen(tb)
	tb.Cleanup(func() {
		if w.DB != nil {
			w.Close()
		}
	})
	return w
}

func (w *world) reopen(tb testing.TB) {
	tb.Helper()
	if w.DB != nil {
		must(tb, w.Close())
	}
	db, err := Open(w.dir, &w.opts)
	must(tb, err)
	w.DB = db
}

// index writes all that is pending to the index of attributes.
func (w *world) index(tb testing.TB) {
	tb.Helper()
	for b := w.backlog.Load(); b.older != nil || b.now.count > 0; b = w.backlog.Load() {
		if b.older == nil {
			w.beginIndexing()
		}
		must(tb, w.doOne(ctx, 0, func(*txn) error { return nil }))
		must(tb, w.indexing.err)
	}
}

// put records regular objects with attributes given as key, value, key, value.
func (w *world) put(tb testing.TB, addr blobstor.Address, kv ...string) {
	tb.Helper()
	r := Record{Address: addr, Size: 10}
	for i := 0; i < len(kv); i += 2 {
		r.Attrs = append(r.Attrs, Attr{Key: kv[i], Value: kv[i+1]})
	}
	must(tb, w.Put(ctx, r))
}

func (w *world) state(tb testing.TB, addr blobstor.Address) Status {
	tb.Helper()
	s, err := w.Status(ctx, addr)
	must(tb, err)
	return s
}

func (w *world) wantState(tb testing.TB, addr blobstor.Address, want State) {
	tb.Helper()
	if s := w.state(tb, addr); s.State != want {
		tb.Errorf("object %x: %+v, want state %d", addr.Object[:4], s, want)
	}
}

func (w *world) check(tb testing.TB) {
	tb.Helper()
	must(tb, w.Check(ctx))
}

// removed collects everything there is to collect and returns the addresses whose blobs were removed.
func (w *world) removed(tb testing.TB) (addrs []blobstor.Address) {
	tb.Helper()
	for {
		n, err := w.Collect(ctx, 3, func(_ context.Context, items []blobstor.Item) error {
			for i := range items {
				addrs = append(addrs, items[i].Address)
			}
			return nil
		})
		must(tb, err)
		if n == 0 {
			return addrs
		}
	}
}
