package storagetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/granary-store/granary/blobstor"
)

// TestFaultIsTransparent: without a plan the wrapper is the storage.
func TestFaultIsTransparent(t *testing.T) {
	h := MemoryHarness(5000)
	memory := func(s blobstor.Storage) *Memory { return s.(*Fault).s.(*Memory) }
	h.New = func(testing.TB) blobstor.Storage { return NewFault(NewMemory(5000)) }
	h.Reopen = func(_ testing.TB, s blobstor.Storage) blobstor.Storage { return NewFault(memory(s).Reopen()) }
	h.PowerLoss = h.Reopen
	h.Damage = func(_ testing.TB, s blobstor.Storage, addr blobstor.Address) { memory(s).Damage(addr) }
	h.Full = func(_ testing.TB, s blobstor.Storage) func() { return memory(s).Full() }
	h.FailSync = func(_ testing.TB, s blobstor.Storage) func() { return memory(s).FailSync() }
	Test(t, h)
}

// calls does one call of each method and returns its error.
var calls = map[Method]func(context.Context, blobstor.Storage) error{
	Put: func(ctx context.Context, s blobstor.Storage) error {
		_, err := s.Put(ctx, blobstor.Address{}, []byte("data"))
		return err
	},
	Get: func(ctx context.Context, s blobstor.Storage) error {
		_, err := s.Get(ctx, blobstor.Address{}, "", nil)
		return err
	},
	Stat: func(ctx context.Context, s blobstor.Storage) error {
		_, err := s.Stat(ctx, blobstor.Address{}, "")
		return err
	},
	ReadRange: func(ctx context.Context, s blobstor.Storage) error {
		_, _, err := blobstor.ReadRange(ctx, s, blobstor.Address{}, "", nil, 0)
		return err
	},
	All: func(ctx context.Context, s blobstor.Storage) (err error) {
		for _, err = range s.All(ctx, "") {
		}
		return err
	},
	PutBatch: func(ctx context.Context, s blobstor.Storage) error {
		return blobstor.PutBatch(ctx, s, make([]blobstor.Item, 1))
	},
	Delete: func(ctx context.Context, s blobstor.Storage) error {
		return maybe(s.Delete(ctx, blobstor.Address{}, ""))
	},
	DeleteBatch: func(ctx context.Context, s blobstor.Storage) error {
		return maybe(blobstor.DeleteBatch(ctx, s, make([]blobstor.Item, 1)))
	},
	Close: func(_ context.Context, s blobstor.Storage) error { return s.Close() },
}

func TestFaultFails(t *testing.T) {
	broken := errors.New("broken")
	for m, call := range calls {
		f := NewFault(NewMemory(0))
		if _, err := f.Put(t.Context(), blobstor.Address{}, nil); err != nil {
			t.Fatal(err)
		}
		f.Fail(m, 2, broken)
		before := f.Calls(m)
		for i := 1; i <= 2; i++ {
			if err := call(t.Context(), f); errors.Is(err, broken) != (i == 2) {
				t.Errorf("%s, call %d: %v", m, i, err)
			}
		}
		f.Fail(m, 0, broken)
		for range 2 {
			if err := call(t.Context(), f); !errors.Is(err, broken) {
				t.Errorf("%s, every call: %v", m, err)
			}
		}
		if n := f.Calls(m) - before; n != 4 {
			t.Errorf("%s: %d calls counted, want 4", m, n)
		}
	}
}

func TestFaultStalls(t *testing.T) {
	for m, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			f := NewFault(NewMemory(0))
			if _, err := f.Put(t.Context(), blobstor.Address{}, nil); err != nil {
				t.Fatal(err)
			}
			reached, release := f.Stall(m, 1)
			done := make(chan error, 1)
			go func() { done <- call(t.Context(), f) }()
			<-reached
			synctest.Wait()
			if len(done) > 0 {
				t.Fatalf("%s did not stall", m)
			}
			release()
			release()
			if err := <-done; err != nil {
				t.Errorf("%s after its stall: %v", m, err)
			}
		})
	}
}

func TestFaultStallEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFault(NewMemory(0))
		reached, _ := f.Stall(Put, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- calls[Put](ctx, f) }()
		<-reached
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a stalled Put whose context ended: %v", err)
		}
		if err := calls[Get](t.Context(), f); !errors.Is(err, blobstor.ErrNotFound) {
			t.Errorf("then Get: %v", err)
		}
	})
}

func TestFaultFallsShort(t *testing.T) {
	ctx, addr := t.Context(), blobstor.Address{}
	f := NewFault(NewMemory(0))
	f.Short(Put, 1)
	if _, err := f.Put(ctx, addr, []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	f.Short(Get, 1)
	f.Short(ReadRange, 1)
	for i, want := range []string{"12", "1234"} {
		if got, err := f.Get(ctx, addr, "", []byte("x")); err != nil || string(got) != "x"+want {
			t.Errorf("Get %d: %q, %v", i, got, err)
		}
		p := make([]byte, 8)
		if n, size, err := f.ReadRange(ctx, addr, "", p, 0); err != nil || string(p[:n]) != want || size != 4 {
			t.Errorf("ReadRange %d: %q of %d, %v", i, p[:n], size, err)
		}
	}
	f.Short(PutBatch, 1)
	items := []blobstor.Item{{Address: blobstor.Address{Object: blobstor.ID{1}}}, {Address: blobstor.Address{Object: blobstor.ID{2}}}}
	if err := f.PutBatch(ctx, items); err != nil {
		t.Fatal(err)
	}
	f.Short(All, 2)
	for i, want := range []int{1, 2} {
		n := 0
		for range f.All(ctx, "") {
			n++
		}
		if n != want {
			t.Errorf("All %d: %d steps, want %d", i, n, want)
		}
	}
}

func TestHide(t *testing.T) {
	s := Hide(blobstor.Stream(NewMemory(0)))
	if _, ok := s.(blobstor.Streamer); ok {
		t.Error("a Streamer shows")
	}
	if _, ok := s.(blobstor.RangeReader); ok {
		t.Error("a RangeReader shows")
	}
	if _, ok := s.(blobstor.Batcher); ok {
		t.Error("a Batcher shows")
	}
}
