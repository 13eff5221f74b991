package blobovnicza

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// fullDisk fills a store again and again, and compares it with what it acknowledged.
type fullDisk struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	opts    Options
	s       *Tree
	largest int // blob
	stored  map[int]blobstor.Location
	next    int

	take func() (release func()) // another program takes all that is free, until released; may be nil
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 0)) }

// fullRounds runs the rounds of a test of a full disk. Dir is on it.
func fullRounds(t *testing.T, d *fullDisk, rounds int) {
	if testing.Short() {
		rounds = 5
	}
	d.t, d.stored = t, map[int]blobstor.Location{}
	d.rng = newRand()
	d.s = mustOpen(t, d.dir, d.opts)
	for round := range rounds {
		d.round(round)
		if t.Failed() {
			t.Fatalf("round %d, stats %+v", round, d.s.Stats())
		}
	}
	d.sameUse()
	check(t, d.s.Close())
}

func (d *fullDisk) round(round int) {
	d.fill()
	d.verify()
	if round%4 == 1 {
		d.reopen()
	}
	var release func()
	if d.take != nil && round%3 == 2 {
		release = d.take()
	}
	before := d.use()
	deleted := d.deleteHalf(release != nil)
	if round%4 == 3 {
		d.reopen()
	}
	if release != nil { // who loses all that comes back cannot always go on
		if err := d.s.Compact(ctx); err != nil && (!errors.Is(err, blobstor.ErrNoSpace) || blobstor.IsFault(err)) {
			d.t.Errorf("Compact: %v", err)
		}
		release()
	}
	if err := d.s.Compact(ctx); err != nil {
		d.t.Errorf("Compact: %v", err)
	}
	if gain := before - d.use(); gain < deleted/2-1<<20 {
		d.t.Errorf("%d bytes came back of %d that were deleted", gain, deleted)
	}
	d.verify()
	d.putsGoOn()
}

// fill puts until puts are refused.
func (d *fullDisk) fill() {
	for refused := 0; refused < 5; d.next++ {
		size := 1 + d.rng.IntN(d.largest)
		if d.next%4 == 0 {
			size = d.rng.IntN(2000)
		}
		at, err := d.s.Put(ctx, addrOf(d.next), dataOf(d.next, size))
		switch {
		case err == nil:
			d.stored[d.next] = at
		case errors.Is(err, blobstor.ErrNoSpace) && !blobstor.IsFault(err):
			refused++
			expect(d.t, d.s, d.next, nil)
		default:
			d.t.Fatalf("put %d: %v", d.next, err)
		}
		if len(d.stored) > 10_000 {
			d.t.Fatal("the disk is never full")
		}
	}
}

// delete deletes a blob. If another program takes whatever comes back, what was set aside may be gone before it can be
// replaced; then compaction, or the end of it in the background, must make deletes possible again.
func (d *fullDisk) delete(n int, at blobstor.Location, greedy bool) error {
	err := d.s.Delete(ctx, addrOf(n), at)
	for try := 0; greedy && errors.Is(err, blobstor.ErrNoSpace) && try < 100; try++ {
		d.s.Compact(ctx)
		time.Sleep(time.Millisecond)
		err = d.s.Delete(ctx, addrOf(n), at)
	}
	return err
}

// deleteHalf deletes about half of the blobs and returns their size.
func (d *fullDisk) deleteHalf(greedy bool) (size int64) {
	for n, at := range d.stored {
		if d.rng.IntN(2) == 0 {
			continue
		}
		info, err := d.s.Stat(ctx, addrOf(n), "")
		check(d.t, err)
		if err := d.delete(n, at, greedy); err != nil {
			d.t.Errorf("delete of %d after %d bytes: %v", n, size, err)
			return size
		}
		size += info.Stored
		delete(d.stored, n)
		expect(d.t, d.s, n, nil)
	}
	return size
}

// putsGoOn waits until puts are taken again.
func (d *fullDisk) putsGoOn() {
	deadline := time.Now().Add(5 * time.Second)
	for ; ; d.next++ {
		at, err := d.s.Put(ctx, addrOf(d.next), dataOf(d.next, 1000))
		if err == nil {
			d.stored[d.next] = at
			return
		}
		if !errors.Is(err, blobstor.ErrNoSpace) || time.Now().After(deadline) {
			d.t.Fatalf("no put after Compact: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

func (d *fullDisk) reopen() {
	check(d.t, d.s.Close())
	d.s = mustOpen(d.t, d.dir, d.opts)
	d.verify()
}

// verify reads all that was acknowledged, with location and without, and nothing else may be there.
func (d *fullDisk) verify() {
	d.t.Helper()
	for n, at := range d.stored {
		for _, at := range []blobstor.Location{at, ""} {
			got, err := d.s.Get(ctx, addrOf(n), at, nil)
			if err != nil || !bytes.Equal(got, dataOf(n, len(got))) {
				d.t.Fatalf("blob %d at %q: %d bytes, %v", n, at, len(got), err)
			}
		}
	}
	count := 0
	for _, err := range d.s.All(ctx, "") {
		check(d.t, err)
		count++
	}
	if count != len(d.stored) {
		d.t.Fatalf("%d blobs, want %d", count, len(d.stored))
	}
}

func (d *fullDisk) use() int64 {
	size, err := sizeOf(d.dir)
	check(d.t, err)
	return size
}

// sizeOf returns the size of all files in dir. Those that vanish meanwhile do not count.
func sizeOf(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreMissing(err)
	})
	return sum, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sameUse compares what the store says that it uses with the sizes of its files, once nothing changes any more.
func (d *fullDisk) sameUse() {
	const others = 512 // descriptor and lock
	var st Stats
	var use int64
	for range 100 {
		st, use = d.s.Stats(), d.use()
		if diff := use - st.Used - st.Reserved; diff >= 0 && diff <= others {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.t.Errorf("%d bytes used and %d reserved, but files have %d", st.Used, st.Reserved, use)
}

// A store with a size limit never takes more than that, whatever is put, deleted and compacted.
func TestQuota(t *testing.T) {
	for name, opts := range map[string]Options{
		"one leaf":    {MaxSize: 4 << 20},
		"four":        {MaxSize: 4 << 20, Width: 4, Depth: 1},
		"large files": {MaxSize: 4 << 20, FileSize: 2 << 20},
		"no sync":     {MaxSize: 4 << 20, NoSync: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			done := make(chan struct{})
			watched := watchUse(t, dir, opts, done)
			fullRounds(t, &fullDisk{dir: dir, opts: opts, largest: 64 << 10}, 20)
			close(done)
			<-watched
		})
	}
}

// memoryDir is a directory where syncs cost little, if the system has one.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "granary-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// watchUse fails the test if a store in dir takes more than its limit and what it zeroes ahead.
func watchUse(t *testing.T, dir string, opts Options, done chan struct{}) (ended chan struct{}) {
	ended = make(chan struct{})
	most := opts.MaxSize + zeroSize*int64(leafCount(opts.Width, opts.Depth))
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			if size, err := sizeOf(dir); err == nil && size > most {
				t.Errorf("files of %d bytes, the limit is %d", size, most)
				return
			} else if err != nil {
				t.Error(err)
			}
		}
	}()
	return ended
}
