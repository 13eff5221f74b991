package neofs

import (
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
	"github.com/granary-store/granary/metabase"
)

// TestRebuild: a database is made again from blobs in any order, and bad ones stop nothing (bugs 28, 60, 61 and 65).
func TestRebuild(t *testing.T) {
	blobs := blobstor.Stream(storagetest.NewMemory(1 << 20))
	good := append(splitV2(),
		object(2, header(1, 0).attr(Associate, id(5).String()), 0),
		object(3, header(3, 0).attr(Associate, id(4).String()), 0),
		object(4, header(0, 1).attr(Expiration, "1"), 1),
		object(5, header(0, 1), 1),
	)
	put := func(addr blobstor.Address, o msg) {
		_, err := blobs.Put(ctx, addr, o)
		must(t, err)
	}
	for _, o := range good {
		put(records(t, o)[0].Address, o)
	}
	bad := map[blobstor.Address]msg{
		address(50): object(50, header(0, 100), 100)[:200], // cut
		address(51): object(52, header(0, 1), 1),           // of another address
		address(53): {},
		address(54): msg("no protobuf"),
		address(55): object(55, header(3, 0), 0), // a lock of nothing
	}
	for addr, o := range bad {
		put(addr, o)
	}
	w := newWorld(t)
	_, err := metabase.Rebuild(ctx, w.DB, blobs, Parse, &metabase.RebuildOptions{Bad: func(info blobstor.Info, err error) {
		if _, ok := bad[info.Address]; !ok || !errors.Is(err, metabase.ErrRecord) {
			t.Errorf("%v: %v", info.Address, err)
		}
		delete(bad, info.Address)
	}})
	if err != nil || len(bad) != 0 {
		t.Errorf("%v, not reported: %v", err, bad)
	}
	for n, want := range map[int]metabase.State{
		4: metabase.Available, 5: metabase.Buried, 10: metabase.Available, 13: metabase.Available, 52: metabase.Missing, 55: metabase.Missing,
	} {
		if s, err := w.Status(ctx, address(n)); s.State != want || err != nil {
			t.Errorf("object %d: %+v, %v", n, s, err)
		}
	}
	must(t, w.Check(ctx))
}
