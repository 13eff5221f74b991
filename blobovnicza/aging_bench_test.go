//go:build unix

package blobovnicza

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// The engine of the benchmarks in age_bench_test.go. Its own test:
//
//	go test -run TestAging ./blobovnicza

const (
	agingWriters = 20
	agingReaders = 4
	agingSize    = 4096
	agingParts   = 10
)

// aging is a store that is overwritten while it is read. An object is one slot with a version; each writer has the
// slots of its own residue, so only readers need the sign: a negative version is being replaced.
type aging struct {
	dir   string
	s     *Tree
	slots []atomic.Int64
	noise []byte // what contents are cut from

	parts   [agingParts]agingPart
	refused atomic.Int64 // puts that found no space and were repeated
	reads   atomic.Int64
	peak    int64 // most bytes that the directory took
}

// agingPart is what is measured of one tenth of a run.
type agingPart struct {
	took time.Duration
	puts latencies
}

// newAging opens a store in dir with opts and fills it with n objects.
func newAging(tb testing.TB, dir string, opts Options, n int) *aging {
	a := &aging{dir: dir, s: mustOpen(tb, dir, opts), slots: make([]atomic.Int64, n), noise: dataOf(1, 2*agingSize)}
	items := make([]blobstor.Item, min(n, 1000))
	for i := range items {
		items[i].Data = make([]byte, agingSize)
	}
	for from := 0; from < n; from += len(items) {
		batch := items[:min(len(items), n-from)]
		for i := range batch {
			batch[i] = blobstor.Item{Address: a.addr(from+i, 1), Data: a.data(batch[i].Data, from+i, 1)}
			a.slots[from+i].Store(1)
		}
		check(tb, a.s.PutBatch(ctx, batch))
	}
	return a
}

func (a *aging) addr(slot int, version int64) blobstor.Address {
	return benchAddr(slot + int(version)*len(a.slots))
}

// data fills b with the content of an object.
func (a *aging) data(b []byte, slot int, version int64) []byte {
	id := uint64(slot + int(version)*len(a.slots))
	copy(b, a.noise[id%agingSize:])
	binary.BigEndian.PutUint64(b, id)
	return b
}

// run replaces puts objects while readers verify others and the disk is watched, a tenth after the other.
func (a *aging) run(puts, readers int) error {
	var stop atomic.Bool
	var watchers sync.WaitGroup
	errs := make(chan error, readers+1)
	for range readers {
		watchers.Go(func() { errs <- a.read(&stop) })
	}
	watchers.Go(func() { errs <- a.watch(&stop) })
	var err error
	for i := range a.parts {
		if err == nil {
			err = a.parts[i].run(a, puts/agingParts)
		}
	}
	stop.Store(true)
	watchers.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

func (p *agingPart) run(a *aging, puts int) error {
	var left atomic.Int64
	left.Store(int64(puts))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	begin := time.Now()
	for w := range agingWriters {
		wg.Go(func() {
			var own latencies
			err := a.write(w, &left, &own)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			p.puts.merge(&own)
		})
	}
	wg.Wait()
	p.took = time.Since(begin)
	return failed
}

// write is a writer: it replaces random ones of its objects as long as there is work left.
func (a *aging) write(writer int, left *atomic.Int64, own *latencies) error {
	buf := make([]byte, agingSize)
	mine := (len(a.slots) - writer + agingWriters - 1) / agingWriters
	for left.Add(-1) >= 0 {
		slot := writer + agingWriters*rand.IntN(mine)
		version := a.slots[slot].Load()
		a.slots[slot].Store(-version)
		if err := a.s.Delete(ctx, a.addr(slot, version), ""); err != nil {
			return err
		}
		begin := time.Now()
		if err := a.put(a.addr(slot, version+1), a.data(buf, slot, version+1)); err != nil {
			return err
		}
		own.add(time.Since(begin))
		a.slots[slot].Store(version + 1)
	}
	return nil
}

// put repeats a put until there is space: a store at its limit must have made some by compaction.
func (a *aging) put(addr blobstor.Address, data []byte) error {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		_, err := a.s.Put(ctx, addr, data)
		if !errors.Is(err, blobstor.ErrNoSpace) || time.Since(begin) > time.Minute {
			return err
		}
		a.refused.Add(1)
	}
}

// read is a reader of random objects. It yields after each, as one that serves a network does: readers that never
// block keep every processor for 10 ms at a time, and a commit waits for a processor several times. Without it 20
// writers were measured at 200 puts a second, with it at 2,000 to 19,000.
func (a *aging) read(stop *atomic.Bool) error {
	got, want := make([]byte, 0, agingSize), make([]byte, agingSize)
	for !stop.Load() {
		if err := a.verify(rand.IntN(len(a.slots)), got, want); err != nil {
			return err
		}
		a.reads.Add(1)
		runtime.Gosched()
	}
	return nil
}

// verify gets an object. That it is not there is no error if it was replaced meanwhile.
func (a *aging) verify(slot int, got, want []byte) error {
	version := a.slots[slot].Load()
	if version < 0 {
		return nil
	}
	got, err := a.s.Get(ctx, a.addr(slot, version), "", got[:0])
	switch {
	case errors.Is(err, blobstor.ErrNotFound) && a.slots[slot].Load() != version:
		return nil
	case err != nil:
		return err
	case !bytes.Equal(got, a.data(want, slot, version)):
		return fmt.Errorf("object %d has the content of another", slot)
	}
	return nil
}

// verifyAll gets every object.
func (a *aging) verifyAll() error {
	got, want := make([]byte, 0, agingSize), make([]byte, agingSize)
	for slot := range a.slots {
		if err := a.verify(slot, got, want); err != nil {
			return err
		}
	}
	return nil
}

// watch notes the most disk that the store takes, once a second and at the end.
func (a *aging) watch(stop *atomic.Bool) error {
	for last := false; ; {
		use, err := diskUse(a.dir)
		a.peak = max(a.peak, use)
		if err != nil || last {
			return err
		}
		for i := 0; i < 50 && !last; i++ {
			time.Sleep(20 * time.Millisecond)
			last = stop.Load()
		}
	}
}

// TestAging runs the benchmarks' engine on a small store: it must count what it did, and notice a lost object.
func TestAging(t *testing.T) {
	const n, puts = 500, 1000
	a := newAging(t, t.TempDir(), Options{FileSize: 256 << 10}, n)
	check(t, a.run(puts, agingReaders))
	check(t, a.verifyAll())
	var all latencies
	for i := range a.parts {
		if a.parts[i].took <= 0 {
			t.Errorf("part %d took no time", i)
		}
		all.merge(&a.parts[i].puts)
	}
	if st := a.s.Stats(); all.count() != puts || st.Objects != n || a.peak < st.Live+st.Dead {
		t.Errorf("%d puts counted, want %d; at most %d bytes on disk; %+v", all.count(), puts, a.peak, st)
	}
	check(t, a.s.Delete(ctx, a.addr(7, a.slots[7].Load()), ""))
	if err := a.verifyAll(); !errors.Is(err, blobstor.ErrNotFound) {
		t.Errorf("a lost object was not noticed: %v", err)
	}
}
