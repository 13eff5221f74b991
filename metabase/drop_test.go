package metabase

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/granary-store/granary/internal/bolt"
)

// TestDropOutOfOrder: a container whose index was damaged in the leaves of the file has many keys that are seen and not
// found. Each step of a Drop plans what can be done, or it would be planned again for ever.
func TestDropOutOfOrder(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	es := make([]Entry, 2*dropKeys)
	for i := range es {
		es[i].Records = []Record{{Address: object(1, i), Attrs: []Attr{{"k", fmt.Sprintf("value%06d", i), Opaque}}}}
	}
	must(t, w.PutBatch(ctx, es))
	must(t, w.doOne(ctx, 0, func(t *txn) error { return t.planUnknown(id(1)) }))
	must(t, w.Close())
	path := filepath.Join(w.dir, "bolt")
	b, err := os.ReadFile(path)
	must(t, err)
	for page := range slices.Chunk(b, bolted) {
		if page[8] == 2 { // a leaf
			copy(page, bytes.ReplaceAll(page, []byte("value"), []byte("valve")))
		}
	}
	must(t, os.WriteFile(path, b, 0o600))
	w.DB, err = Open(w.dir, &Options{ReadOnly: true})
	must(t, err)
	must(t, w.file.View(func(tx *bolt.Tx) error {
		p := txn{db: w.DB, tx: tx, known: &w.dict}
		must(t, p.planDrop(1))
		for _, c := range p.changes {
			if v, err := p.get(c.class, c.key); v == nil && err == nil {
				t.Fatalf("%s %x is to be removed and cannot be found", classNames[c.class], c.key)
			}
		}
		if len(p.changes) == 0 {
			t.Error("nothing is to be removed")
		}
		return nil
	}))
}

// TestDropBesideReset: a Drop that looked before a Reset takes nothing of the container that has its number since.
func TestDropBesideReset(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1))
	c, _, _ := w.dict.get(id(1))
	must(t, w.Reset(ctx))
	w.put(t, object(2, 1), "a", "x")
	must(t, w.doOne(ctx, 0, func(t *txn) error { return t.planDrop(c.number) }))
	w.wantState(t, object(2, 1), Available)
	w.check(t)
}
