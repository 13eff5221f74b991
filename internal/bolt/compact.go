package bolt

import (
	"context"
)

const (
	compactBytes = 4 << 20 // of keys and values in one transaction of Compact
	compactFill  = 0.9     // of a page: full ones would all split at the first writes
)

// Compact writes the file anew without its free pages: see Replace. It walks all pages first, as Check does, for a file
// that lacks a part must not become one that is whole.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.Check(ctx); err != nil {
		return err
	}
	return db.Replace(ctx, func(ctx context.Context, from *Tx, to func(func(*Tx) error) error) error {
		for i := range db.opts.Buckets {
			if err := copyBucket(ctx, i, from, to); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyBucket(ctx context.Context, i int, from *Tx, to func(func(*Tx) error) error) error {
	c := from.Bucket(i).Cursor()
	k, v := c.First()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := to(func(tx *Tx) error {
			b := tx.Bucket(i)
			b.FillPercent = compactFill
			for n := 0; k != nil && n < compactBytes; k, v = c.Next() {
				if v == nil {
					return corrupt("bucket %q has another inside", from.names[i])
				}
				if err := b.Put(k, v); err != nil {
					return corrupt("an entry that cannot be: %v", err)
				}
				n += len(k) + len(v)
			}
			done = k == nil
			if done {
				return b.SetSequence(from.Bucket(i).Sequence())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
