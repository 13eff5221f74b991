package metabase

import (
	"bytes"
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// A version that never was: in version 0 the records had no checksum of their own. It proves that there is a way.

// toVersion0 makes a database one of version 0.
func (w *world) toVersion0(tb testing.TB) {
	tb.Helper()
	must(tb, w.file.Update(func(tx *bolt.Tx) error {
		t := txn{tx: tx}
		old := map[string][]byte{}
		for c := t.cursor(recs, nil, nil); c.next(); {
			old[string(c.full)] = bytes.Clone(c.value[:len(c.value)-crcSize])
		}
		for key, value := range old {
			if err := t.bucket().Put([]byte(key), value); err != nil {
				return err
			}
		}
		t.put(settings, keyVersion, func(b []byte) []byte { return append(b, 0) })
		t.apply()
		return t.err
	}))
}

// fromVersion0 seals a few records in each step.
func fromVersion0(steps *int) migration {
	return migration{0, func(t *txn, behind []byte) (place []byte, err error) {
		*steps++
		c := t.cursor(recs, append(behind, 0), nil)
		if behind == nil {
			c = t.cursor(recs, nil, nil)
		}
		for range 3 {
			if !c.next() {
				return nil, nil
			}
			key, value := bytes.Clone(c.key), bytes.Clone(c.value)
			t.put(recs, key, func(b []byte) []byte { return append(b, value...) })
			place = key
		}
		return place, nil
	}}
}

// openWith opens the database file with other migrations than those of this release.
func (w *world) openWith(known []migration, now byte, readOnly bool) (*DB, error) {
	file, err := bolt.Open(w.dir, &bolt.Options{Kind: "metabase", ReadOnly: readOnly, Buckets: []string{bucketName}, Ballast: -1})
	if err != nil {
		return nil, err
	}
	db := &DB{opts: Options{ReadOnly: readOnly}, file: file, readOnly: readOnly}
	if err := db.start(known, now); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return db, nil
}

func TestMigration(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	for n := range 10 {
		w.put(t, object(1, n+1), "a", "1")
	}
	w.toVersion0(t)
	must(t, w.Close())
	_, err := Open(w.dir, &w.opts)
	wantIs(t, err, blobstor.ErrLayout) // no release knows the way
	steps := 0
	_, err = w.openWith([]migration{fromVersion0(&steps)}, 1, true)
	wantIs(t, err, blobstor.ErrLayout) // it would have to write

	// Interrupted after every step, it goes on where it was.
	stop := errors.New("stop")
	for range 3 {
		m := fromVersion0(&steps)
		whole, once := m.step, false
		m.step = func(t *txn, behind []byte) ([]byte, error) {
			if once {
				return nil, stop
			}
			once = true
			return whole(t, behind)
		}
		_, err := w.openWith([]migration{m}, 1, false)
		wantIs(t, err, stop)
		_, err = Open(w.dir, &w.opts)
		wantIs(t, err, blobstor.ErrLayout)
	}
	db, err := w.openWith([]migration{fromVersion0(&steps)}, 1, false)
	must(t, err)
	must(t, db.file.Close())
	if steps != 4 {
		t.Errorf("%d steps", steps)
	}
	w.DB = nil
	w.reopen(t)
	w.check(t)
	for n := range 10 {
		w.wantState(t, object(1, n+1), Available)
	}
}

// TestVersion: a later version, and a file whose version is lost, are not opened.
func TestVersion(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.put(t, object(1, 1))
	must(t, w.file.Update(func(tx *bolt.Tx) error {
		t := txn{tx: tx}
		t.del(settings, keyVersion)
		t.apply()
		return t.err
	}))
	must(t, w.Close())
	_, err := Open(w.dir, &w.opts)
	wantIs(t, err, blobstor.ErrCorrupt)
}
