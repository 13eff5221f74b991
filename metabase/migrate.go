package metabase

import (
	"bytes"
	"fmt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// version is that of the layout of keys and values.
const version = 1

// A migration brings the keys and values of one version to the next, by many small commits. It may be interrupted after
// any of them, by a crash too, and goes on at the next Open for writing.
type migration struct {
	from byte

	// step plans the changes of one commit, from behind a place that a step before returned, nil at the beginning. It
	// returns nil when it came to the end. What it cannot understand it leaves alone: Check reports it, and an old
	// database must open.
	step func(t *txn, behind []byte) (place []byte, err error)
}

// migrations are those that a release knows, oldest first. Version 1 is the first.
var migrations []migration

// keyMigrated is the place that a migration came to.
var keyMigrated = []byte("migrated")

// start brings the database to the version of this release and reads what is kept in memory.
func (db *DB) start(known []migration, now byte) error {
	found, err := db.foundVersion()
	if err != nil {
		return err
	}
	if found == nil && !db.opts.ReadOnly {
		if err := db.file.Update(db.initialize); err != nil {
			return err
		}
		found = []byte{now}
	}
	if len(found) != 1 || found[0] != now {
		if err := db.migrate(found, known, now); err != nil {
			return err
		}
	}
	return db.file.View(func(tx *bolt.Tx) error {
		t := &txn{db: db, tx: tx, known: &db.dict}
		if err := db.dict.load(t); err != nil {
			return err
		}
		db.loadBacklog(t)
		return nil
	})
}

// foundVersion returns the version that the file has, nil if it is a new file.
func (db *DB) foundVersion() (found []byte, err error) {
	err = db.file.View(func(tx *bolt.Tx) error {
		t := txn{db: db, tx: tx, known: &db.dict}
		v, err := t.get(settings, keyVersion)
		if err != nil || v != nil {
			found = append([]byte{}, v...)
			return err
		}
		if k, _ := t.bucket().Cursor().First(); k != nil {
			return corrupt("the version is missing")
		}
		return nil
	})
	return found, err
}

// migrate takes the database from one version to the next until it has the one of this release.
func (db *DB) migrate(found []byte, known []migration, now byte) error {
	for _, m := range known {
		if len(found) != 1 || m.from != found[0] || m.from >= now || db.opts.ReadOnly {
			continue
		}
		for done := false; !done; {
			err := db.file.Update(func(tx *bolt.Tx) (err error) {
				done, err = db.migrateStep(tx, &m)
				return err
			})
			if err != nil {
				return err
			}
		}
		found[0]++
	}
	if len(found) != 1 || found[0] != now {
		return fmt.Errorf("%w: metabase of version %x, this is %d", blobstor.ErrLayout, found, now)
	}
	return nil
}

// migrateStep takes one step, and the version with the last.
func (db *DB) migrateStep(tx *bolt.Tx, m *migration) (done bool, err error) {
	t := txn{db: db, tx: tx, known: &db.dict}
	behind, err := t.get(settings, keyMigrated)
	if err != nil {
		return false, err
	}
	place, err := m.step(&t, bytes.Clone(behind))
	if err != nil {
		return false, err
	}
	if done = place == nil; done {
		t.del(settings, keyMigrated)
		t.put(settings, keyVersion, func(b []byte) []byte { return append(b, m.from+1) })
	} else {
		t.put(settings, keyMigrated, func(b []byte) []byte { return append(b, place...) })
	}
	t.apply()
	return done, t.err
}

// initialize writes what an empty database has.
func (db *DB) initialize(tx *bolt.Tx) error {
	t := txn{db: db, tx: tx, known: &db.dict}
	t.put(settings, keyVersion, func(b []byte) []byte { return append(b, version) })
	t.apply()
	return t.err
}
