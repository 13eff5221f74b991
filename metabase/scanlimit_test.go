package metabase

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/bolt"
)

// TestScanLimit: Expired and Collect find all that there is, however much of what they pass over lies before it, and no
// transaction of theirs looks at more than the limit.
func TestScanLimit(t *testing.T) {
	const n, scan = 60, 7
	views := map[string]int{}
	w := newWorld(t, Options{NoSync: true, Ballast: -1, ScanLimit: scan, watch: func(op string, _ int) { views[op]++ }})
	var want []blobstor.Address
	for i := 1; i <= n; i++ {
		w.record(t, Record{Address: object(1, i), Expires: 100, Size: 10})
		if i%20 > 0 {
			w.record(t, lock(1, 1000+i, i, 0))
		} else {
			want = append(want, object(1, i))
		}
		w.put(t, object(2, i))
	}
	w.epoch++
	var got []blobstor.Address
	clear(views)
	for after := (blobstor.Address{}); ; after = got[len(got)-1] {
		page, err := w.Expired(ctx, after, 2)
		must(t, err)
		for _, f := range page {
			got = append(got, f.Address)
		}
		if len(page) < 2 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("expired: %v, want %v", got, want)
	}
	if views["expired"] < n/scan {
		t.Errorf("%d transactions", views["expired"])
	}
	for i := 1; i <= n; i++ { // what is held is passed over
		es := []Entry{{Records: []Record{lock(2, 1000+i, i, 0)}}}
		must(t, w.Mark(ctx, Garbage, object(2, i)))
		if i%20 > 0 {
			must(t, w.putEntries(ctx, es, true))
		}
	}
	clear(views)
	gone, err := w.Collect(ctx, 100, func(context.Context, []blobstor.Item) error { return nil })
	if err != nil || gone != n/20 || views["collect"] < n/scan {
		t.Errorf("%d removed with %d transactions, %v", gone, views["collect"], err)
	}
	must(t, w.Mark(ctx, Garbage, blobstor.Address{Container: id(1)}))
	if gone := w.removed(t); len(gone) != n+n-n/20 {
		t.Errorf("%d removed", len(gone))
	}
	w.check(t)
}

// TestExpiredPassesOver: entries of the index of expiry that are damaged, of a wrong length or of another epoch than
// their object's hide nothing that comes behind them, and lead to no object twice.
func TestExpiredPassesOver(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	w.epoch = 50
	for i := 1; i <= 3; i++ {
		w.record(t, Record{Address: object(1, i), Expires: uint64(50 + i)})
	}
	w.epoch = 100
	first := object(1, 1).Object
	w.damage(t, expires, appendExpiry(nil, 51, 1, &first))
	must(t, w.file.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(0)
		short := append([]byte{expires}, appendUint64(nil, 10)...)
		other := append([]byte{expires}, appendExpiry(nil, 20, 1, &first)...)
		return errors.Join(b.Put(short, seal(short, nil, 0)), b.Put([]byte{expires, 0}, nil), b.Put(other, seal(other, nil, 0)))
	}))
	page, err := w.Expired(ctx, blobstor.Address{}, 9)
	must(t, err)
	if len(page) != 3 || page[0].Address != object(1, 1) || page[2].Address != object(1, 3) {
		t.Errorf("%+v", page)
	}
	wantIs(t, w.Check(ctx), blobstor.ErrCorrupt)
}
