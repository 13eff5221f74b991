package blobstor_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

var ctx = context.Background()

// address returns the n-th address.
func address(n int) (a blobstor.Address) {
	a.Container[0], a.Object[0], a.Object[31] = 1, byte(n), byte(n>>8)
	return a
}

// payload returns n bytes that differ from place to place.
func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("got %v, want %v", err, w)
		}
	}
}

func wantNot(t testing.TB, err, not error) {
	t.Helper()
	if err == nil || errors.Is(err, not) {
		t.Errorf("got %v, want an error that is not %v", err, not)
	}
}

func mustPut(t testing.TB, s blobstor.Storage, addr blobstor.Address, data []byte) blobstor.Location {
	t.Helper()
	at, err := s.Put(ctx, addr, data)
	must(t, err)
	return at
}

func wantGet(t testing.TB, s blobstor.Storage, addr blobstor.Address, want []byte) {
	t.Helper()
	got, err := s.Get(ctx, addr, "", nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get: %d bytes, %v; want %d bytes", len(got), err, len(want))
	}
}

// count runs over All.
func count(t testing.TB, s blobstor.Storage) (n int) {
	t.Helper()
	for _, err := range s.All(ctx, "") {
		must(t, err)
		n++
	}
	return n
}

func newRouter(t testing.TB, routes ...blobstor.Route) *blobstor.Router {
	t.Helper()
	r, err := blobstor.New(routes...)
	must(t, err)
	return r
}

// two returns a router over two memory storages, the small one for at most 100 bytes.
func two(t testing.TB) (r *blobstor.Router, small, large *storagetest.Memory) {
	t.Helper()
	small, large = storagetest.NewMemory(0), storagetest.NewMemory(0)
	r = newRouter(t,
		blobstor.Route{Name: "large", Storage: large},
		blobstor.Route{Name: "small", MaxSize: 100, Storage: small})
	return r, small, large
}
