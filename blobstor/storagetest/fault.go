package storagetest

import (
	"context"
	"iter"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// A Method names a method of a storage for [Fault].
type Method string

// The methods that can be given a fault. Streams are not among them: those that [blobstor.Stream] adds to a Fault
// use the methods below.
const (
	Put         Method = "Put"
	Get         Method = "Get"
	Stat        Method = "Stat"
	Delete      Method = "Delete"
	All         Method = "All" // a step of the loop is a call
	ReadRange   Method = "ReadRange"
	PutBatch    Method = "PutBatch"
	DeleteBatch Method = "DeleteBatch"
	Close       Method = "Close"
)

// Fault wraps a storage and lets the n-th call of a method fail, stall, or fall short. All else goes through. It
// shows what a program, a router or a decorator makes of it.
type Fault struct {
	s blobstor.Storage

	mu    sync.Mutex
	calls map[Method]int
	plans map[Method]map[int]plan
}

// plan is what happens in place of, or before, a call.
type plan struct {
	err     error
	reached chan struct{} // closed when a stalled call arrives
	release chan struct{} // closed when it may go on
	short   bool
}

var (
	_ blobstor.Storage     = (*Fault)(nil)
	_ blobstor.RangeReader = (*Fault)(nil)
	_ blobstor.Batcher     = (*Fault)(nil)
)

// NewFault returns s without faults. Close closes s.
func NewFault(s blobstor.Storage) *Fault {
	return &Fault{s: s, calls: map[Method]int{}, plans: map[Method]map[int]plan{}}
}

// Fail lets the n-th call of m from now on, 1 the next, return err and do nothing; n == 0 means every call.
func (f *Fault) Fail(m Method, n int, err error) { f.plan(m, n, plan{err: err}) }

// Stall lets the n-th call of m from now on wait until release is called, or its context ends. The channel is
// closed when the call has arrived.
func (f *Fault) Stall(m Method, n int) (reached <-chan struct{}, release func()) {
	p := plan{reached: make(chan struct{}), release: make(chan struct{})}
	f.plan(m, n, p)
	return p.reached, sync.OnceFunc(func() { close(p.release) })
}

// Short lets the n-th call of m from now on do half its work and not say so, as no storage may: Get, ReadRange
// return half of the bytes, Put stores half of them, a batch handles half of its items, All ends.
func (f *Fault) Short(m Method, n int) { f.plan(m, n, plan{short: true}) }

// Calls returns how many calls of m there were.
func (f *Fault) Calls(m Method) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[m]
}

func (f *Fault) plan(m Method, n int, p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plans[m] == nil {
		f.plans[m] = map[int]plan{}
	}
	if n > 0 {
		n += f.calls[m]
	}
	f.plans[m][n] = p
}

// enter counts a call and does what is planned for it.
func (f *Fault) enter(ctx context.Context, m Method) (short bool, err error) {
	f.mu.Lock()
	f.calls[m]++
	p, ok := f.plans[m][f.calls[m]]
	if !ok {
		p = f.plans[m][0]
	}
	f.mu.Unlock()
	if p.release != nil {
		close(p.reached)
		select {
		case <-p.release:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return p.short, p.err
}

// half is what is left of n when a call falls short.
func half(n int, short bool) int {
	if short {
		return n / 2
	}
	return n
}

// Put implements [blobstor.Storage], as do the methods below.
func (f *Fault) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	short, err := f.enter(ctx, Put)
	if err != nil {
		return "", blobstor.Wrap("put", addr, "", err)
	}
	return f.s.Put(ctx, addr, data[:half(len(data), short)])
}

// Get appends the blob, or half of it.
func (f *Fault) Get(ctx context.Context, addr blobstor.Address, at blobstor.Location, dst []byte) ([]byte, error) {
	short, err := f.enter(ctx, Get)
	if err != nil {
		return dst, blobstor.Wrap("get", addr, at, err)
	}
	got, err := f.s.Get(ctx, addr, at, dst)
	return got[:len(dst)+half(len(got)-len(dst), short)], err
}

// Stat describes the blob.
func (f *Fault) Stat(ctx context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Info, error) {
	if _, err := f.enter(ctx, Stat); err != nil {
		return blobstor.Info{}, blobstor.Wrap("stat", addr, at, err)
	}
	return f.s.Stat(ctx, addr, at)
}

// Delete removes the blob.
func (f *Fault) Delete(ctx context.Context, addr blobstor.Address, at blobstor.Location) error {
	if _, err := f.enter(ctx, Delete); err != nil {
		return blobstor.Wrap("delete", addr, at, err)
	}
	return f.s.Delete(ctx, addr, at)
}

// All asks for a fault before every step.
func (f *Fault) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		for info, err := range f.s.All(ctx, after) {
			short, fault := f.enter(ctx, All)
			if fault != nil {
				yield(blobstor.Info{}, blobstor.Wrap("all", blobstor.Address{}, "", fault))
			}
			if short || fault != nil || !yield(info, err) {
				return
			}
		}
	}
}

// ReadRange reads, or reads half.
func (f *Fault) ReadRange(ctx context.Context, addr blobstor.Address, at blobstor.Location, p []byte, off int64) (int, int64, error) {
	short, err := f.enter(ctx, ReadRange)
	if err != nil {
		return 0, 0, blobstor.Wrap("read range", addr, at, err)
	}
	n, size, err := blobstor.ReadRange(ctx, f.s, addr, at, p, off)
	return half(n, short), size, err
}

// PutBatch puts the items, or half of them.
func (f *Fault) PutBatch(ctx context.Context, items []blobstor.Item) error {
	return f.batch(ctx, PutBatch, items, blobstor.PutBatch)
}

// DeleteBatch deletes the items, or half of them.
func (f *Fault) DeleteBatch(ctx context.Context, items []blobstor.Item) error {
	return f.batch(ctx, DeleteBatch, items, blobstor.DeleteBatch)
}

func (f *Fault) batch(ctx context.Context, m Method, items []blobstor.Item, do func(context.Context, blobstor.Storage, []blobstor.Item) error) error {
	short, err := f.enter(ctx, m)
	if err == nil {
		return do(ctx, f.s, items[:half(len(items), short)])
	}
	for i := range items {
		items[i].Err = blobstor.Wrap(string(m), items[i].Address, items[i].Location, err)
	}
	return blobstor.Wrap(string(m), blobstor.Address{}, "", err)
}

// Close closes the storage.
func (f *Fault) Close() error {
	if _, err := f.enter(context.Background(), Close); err != nil {
		return blobstor.Wrap("close", blobstor.Address{}, "", err)
	}
	return f.s.Close()
}
