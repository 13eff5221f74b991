package blobstor_test

import (
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// The suite runs every reading clause and the refusals on ReadOnly, see TestMemory in storagetest and
// TestRouterConformance; here is the rest.
func TestReadOnly(t *testing.T) {
	m := storagetest.NewMemory(0)
	mustPut(t, m, address(1), payload(10))
	r := blobstor.ReadOnly(m)
	if blobstor.Stream(r) != r {
		t.Error("ReadOnly is no BlobStor")
	}
	wantIs(t, blobstor.PutBatch(ctx, r, nil), blobstor.ErrReadOnly)
	mustPut(t, m, address(2), payload(20)) // whoever holds the storage itself may write
	wantGet(t, r, address(2), payload(20))
	if n := count(t, r); n != 2 {
		t.Errorf("All yielded %d blobs, want 2", n)
	}
	must(t, r.Close())
	_, err := m.Stat(ctx, address(1), "")
	wantIs(t, err, blobstor.ErrClosed)
	_, err = r.Put(ctx, address(3), nil)
	wantIs(t, err, blobstor.ErrClosed)
	_, err = r.NewWriter(ctx, -1)
	wantIs(t, err, blobstor.ErrClosed)
	wantIs(t, blobstor.DeleteBatch(ctx, r, nil), blobstor.ErrClosed)
}
