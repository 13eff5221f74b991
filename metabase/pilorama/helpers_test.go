package pilorama

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
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

// refused wants an error that is no fault.
func refused(tb testing.TB, err error, want ...error) {
	tb.Helper()
	wantIs(tb, err, want...)
	if blobstor.IsFault(err) {
		tb.Errorf("%v is a fault", err)
	}
}

var (
	tree  = Tree{blobstor.ID{1}, "version"}
	alone = Clock{0, 1}
)

// world is a database under test.
type world struct {
	*DB
	dir  string
	opts Options
}

func newWorld(tb testing.TB, opts Options) *world {
	tb.Helper()
	opts.Create = true
	w := &world{dir: filepath.Join(tb.TempDir(), "trees"), opts: opts}
	w.reopen(tb)
	tb.Cleanup(func() {
		if w.DB != nil {
			w.Close()
		}
	})
	return w
}

// quick is for tests that are not about durability.
func quick(tb testing.TB) *world {
	tb.Helper()
	return newWorld(tb, Options{NoSync: true, Ballast: -1})
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

func named(name string, kv ...string) []Attr {
	meta := []Attr{{FileName, name}}
	for i := 0; i < len(kv); i += 2 {
		meta = append(meta, Attr{kv[i], kv[i+1]})
	}
	return meta
}

func (w *world) addPath(tb testing.TB, path string, kv ...string) NodeID {
	tb.Helper()
	parts := strings.Split(path, "/")
	ops, err := w.AddByPath(ctx, tree, alone, parts[:len(parts)-1], named(parts[len(parts)-1], kv...))
	must(tb, err)
	return ops[len(ops)-1].Child
}

func (w *world) check(tb testing.TB) {
	tb.Helper()
	must(tb, w.Check(ctx))
}

// state lists what replicas must agree about: every node of a tree, in the order of IDs, and its children.
func (w *world) state(tb testing.TB, tree Tree) string {
	tb.Helper()
	var text strings.Builder
	must(tb, w.view(ctx, "dump", tree, func(b *branch) error {
		prefix := b.n.key(nil, nodes)
		return b.t.scan(prefix, prefix, func(key, value []byte) (bool, error) {
			r, err := parseRecord(value)
			fmt.Fprintf(&text, "%d: %d at %d, born %d, %q\n", timeOf(key), r.parent, r.time, r.birth, r.meta)
			return true, err
		})
	}))
	return text.String()
}

// dump lists all keys of the file with their values, in their order.
func (w *world) dump(tb testing.TB) string {
	tb.Helper()
	var text strings.Builder
	must(tb, w.file.View(func(tx *bolt.Tx) error {
		return tx.Bucket(0).ForEach(func(k, v []byte) error {
			fmt.Fprintf(&text, "%d %s %x: %x\n", k[0], classNames[k[0]], k[1:], v)
			return nil
		})
	}))
	return text.String()
}

// names lists the names of children.
func names(nodes []Node) string {
	var all []string
	for i := range nodes {
		all = append(all, nodes[i].Name())
	}
	return strings.Join(all, " ")
}

func (w *world) children(tb testing.TB, parent NodeID) string {
	tb.Helper()
	page, err := w.Children(ctx, tree, parent, "", 1000)
	must(tb, err)
	return names(page)
}
