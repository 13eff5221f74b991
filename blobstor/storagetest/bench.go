package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

const (
	benchSize  = 4 << 10  // of a blob in bytes: a small object
	benchRange = 512      // bytes that a range reads
	benchBlobs = 1 << 10  // blobs that are there to be read
	benchPool  = 64 << 10 // addresses drawn up front
)

// Bench measures a storage under the names that all storages share: Put, Get, Range, Exists, Delete and Iterate,
// of blobs of 4 KiB, with 1, 20 and 100 goroutines. One op is one call, of Iterate one blob. Inputs are drawn from
// a fixed seed before the clock runs.
func Bench(b *testing.B, open func(testing.TB) blobstor.Storage) {
	for _, m := range benchmarks {
		for _, threads := range []int{1, 20, 100} {
			b.Run(fmt.Sprintf("%s/size=4KiB/threads=%d", m.name, threads), func(b *testing.B) {
				m.run(newBench(b, open, threads))
			})
		}
	}
}

var benchmarks = []struct {
	name string
	run  func(*bench)
}{
	{"Put", func(b *bench) {
		b.SetBytes(benchSize)
		b.parallel(func(i int) error { return b.put(i) })
	}},
	{"Get", func(b *bench) {
		b.fill(benchBlobs)
		b.SetBytes(benchSize)
		bufs := sync.Pool{New: func() any { p := make([]byte, 0, benchSize); return &p }}
		b.parallel(func(i int) error {
			p := bufs.Get().(*[]byte)
			defer bufs.Put(p)
			i = b.pick(i)
			_, err := b.s.Get(b.ctx, b.addr(i), b.at[i], (*p)[:0])
			return err
		})
	}},
	{"Range", func(b *bench) {
		b.fill(benchBlobs)
		b.SetBytes(benchRange)
		b.parallel(func(i int) error {
			var p [benchRange]byte
			i = b.pick(i)
			_, _, err := blobstor.ReadRange(b.ctx, b.s, b.addr(i), b.at[i], p[:], benchSize/2)
			return err
		})
	}},
	{"Exists", func(b *bench) {
		b.fill(benchBlobs)
		b.parallel(func(i int) error {
			i = b.pick(i)
			_, err := b.s.Stat(b.ctx, b.addr(i), "")
			return err
		})
	}},
	{"Delete", func(b *bench) {
		b.fill(b.N)
		b.parallel(func(i int) error { return b.s.Delete(b.ctx, b.addr(i), b.at[i]) })
	}},
	{"Iterate", (*bench).iterate},
}

type bench struct {
	*testing.B
	ctx     context.Context
	s       blobstor.Storage
	threads int
	ids     []blobstor.ID
	order   []int // of reads
	data    []byte
	at      []blobstor.Location
}

func newBench(b *testing.B, open func(testing.TB) blobstor.Storage, threads int) *bench {
	b.ReportAllocs()
	x := &bench{B: b, ctx: context.Background(), s: open(b), threads: threads, data: make([]byte, benchSize)}
	src := rand.NewChaCha8([32]byte{1})
	src.Read(x.data)
	x.ids = make([]blobstor.ID, benchPool)
	for i := range x.ids {
		src.Read(x.ids[i][:])
	}
	x.order = rand.New(src).Perm(benchBlobs)
	return x
}

// addr is the i-th address: every pair of drawn IDs before one is repeated.
func (b *bench) addr(i int) blobstor.Address {
	return blobstor.Address{Container: b.ids[i/benchPool%benchPool], Object: b.ids[i%benchPool]}
}

func (b *bench) pick(i int) int { return b.order[i%benchBlobs] }

func (b *bench) put(i int) error {
	_, err := b.s.Put(b.ctx, b.addr(i), b.data)
	return err
}

// fill stores n blobs in batches.
func (b *bench) fill(n int) {
	b.Helper()
	for len(b.at) < n {
		items := make([]blobstor.Item, min(256, n-len(b.at)))
		for i := range items {
			items[i] = blobstor.Item{Address: b.addr(len(b.at) + i), Data: b.data}
		}
		if err := blobstor.PutBatch(b.ctx, b.s, items); err != nil {
			b.Fatal(err)
		}
		for i := range items {
			b.at = append(b.at, items[i].Location)
		}
	}
}

// parallel shares b.N calls among the threads.
func (b *bench) parallel(op func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, b.threads)
	b.ResetTimer()
	for t := range b.threads {
		all.Go(func() {
			for errs[t] == nil {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				errs[t] = op(i)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// iterate lets every thread run over All until b.N blobs were yielded.
func (b *bench) iterate() {
	b.fill(benchBlobs)
	var left atomic.Int64
	left.Store(int64(b.N))
	run := func() error {
		for left.Load() > 0 {
			for _, err := range b.s.All(b.ctx, "") {
				if err != nil {
					return err
				}
				if left.Add(-1) <= 0 {
					return nil
				}
			}
		}
		return nil
	}
	work := make([]func() error, b.threads)
	for i := range work {
		work[i] = run
	}
	b.ResetTimer()
	err := together(work...)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
}
