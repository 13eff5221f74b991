package bolt

import (
	"go.etcd.io/bbolt"
)

// Tx is a transaction. It is for one goroutine, and only until the function that got it returns.
type Tx struct {
	b       *bbolt.Tx
	names   [][]byte
	buckets [maxBuckets]*Bucket
}

// Bucket returns the i-th static bucket, which is looked up once in a transaction. If the file lacks it the
// transaction ends here: View or Update returns an error that matches blobstor.ErrCorrupt. It never makes one.
func (tx *Tx) Bucket(i int) *Bucket {
	if b := tx.buckets[i]; b != nil {
		return b
	}
	b := tx.b.Bucket(tx.names[i])
	if b == nil {
		panic(missing{corrupt("bucket %q is missing", tx.names[i])})
	}
	tx.buckets[i] = b
	return b
}

// Cursors returns how many cursors bbolt has made in this transaction: one for each look-up, write and iteration.
func (tx *Tx) Cursors() int {
	stats := tx.b.Stats()
	return int(stats.GetCursorCount())
}
