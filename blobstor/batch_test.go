package blobstor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// batch returns items for the addresses 0 to n-1, with n bytes each and an error from a former use.
func batch(n int) []blobstor.Item {
	items := make([]blobstor.Item, n)
	for i := range items {
		items[i] = blobstor.Item{Address: address(i), Data: payload(n), Err: errors.New("from before")}
	}
	return items
}

func TestBatchFallsBack(t *testing.T) {
	broken := errors.New("broken")
	f := storagetest.NewFault(storagetest.NewMemory(0))
	f.Fail(storagetest.Put, 2, broken)
	s := storagetest.Hide(f)
	items := batch(4)
	wantIs(t, blobstor.PutBatch(ctx, s, items), broken)
	for i, it := range items {
		if want := i == 1; errors.Is(it.Err, broken) != want || (it.Err == nil) == want || (it.Location == "") != want {
			t.Errorf("item %d: location %q, %v", i, it.Location, it.Err)
		}
	}
	err := blobstor.DeleteBatch(ctx, s, items)
	wantIs(t, err, blobstor.ErrNotFound)
	for i, it := range items {
		if errors.Is(it.Err, blobstor.ErrNotFound) != (i == 1) {
			t.Errorf("delete of item %d: %v", i, it.Err)
		}
	}
}

func TestBatchUsesBatcher(t *testing.T) {
	f := storagetest.NewFault(storagetest.NewMemory(0))
	must(t, blobstor.PutBatch(ctx, f, batch(3)))
	must(t, blobstor.DeleteBatch(ctx, f, batch(3)))
	if f.Calls(storagetest.PutBatch) != 1 || f.Calls(storagetest.DeleteBatch) != 1 || f.Calls(storagetest.Put) != 0 {
		t.Errorf("a Batcher was not used")
	}
}

// cancelling ends a context with its n-th put.
type cancelling struct {
	blobstor.Storage
	n      int
	cancel func()
}

func (c *cancelling) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	if c.n--; c.n == 0 {
		defer c.cancel()
	}
	return c.Storage.Put(ctx, addr, data)
}

func TestBatchCancelledMidway(t *testing.T) {
	ctx, cancel := context.WithCancel(ctx)
	m := storagetest.NewMemory(0)
	items := batch(5)
	err := blobstor.PutBatch(ctx, &cancelling{storagetest.Hide(m), 2, cancel}, items)
	wantIs(t, err, context.Canceled)
	for i, it := range items {
		_, stat := m.Stat(context.Background(), it.Address, "")
		if i < 2 && (it.Err != nil || stat != nil) || i >= 2 && !errors.Is(it.Err, context.Canceled) || i >= 2 && stat == nil {
			t.Errorf("item %d: %v, and then Stat %v", i, it.Err, stat)
		}
	}
}
