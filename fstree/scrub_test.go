package fstree

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// damages are ways to hurt the file of a blob of 3 blocks and a bit.
var damages = []func(b []byte) []byte{
	func(b []byte) []byte { b[0] ^= 1; return b },
	func(b []byte) []byte { b[2*blockSize+5] ^= 1; return b },
	func(b []byte) []byte { b[3*blockSize+99] ^= 0x80; return b },
	func(b []byte) []byte { b[len(b)-footerSize-1] ^= 1; return b },  // the table's own checksum
	func(b []byte) []byte { b[len(b)-footerSize-20] ^= 1; return b }, // a block's checksum
	func(b []byte) []byte { b[len(b)-footerSize] ^= 1; return b },
	func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
	func(b []byte) []byte { return b[:len(b)-1] },
	func(b []byte) []byte { return b[:blockSize] },
	func([]byte) []byte { return nil },
	func(b []byte) []byte { return append(b, 0) },
	func(b []byte) []byte { return append(b[:100], b...) },
}

const scrubSize = 3*blockSize + 100

// hurt makes a store in which some blobs are damaged, two of which were swapped, and returns which.
func hurt(t *testing.T, o Options) (*Tree, map[blobstor.Address]int) {
	t.Helper()
	tree, bad := create(t, o), map[blobstor.Address]int{}
	for n := range 3 * len(damages) {
		put(t, tree, n, scrubSize)
	}
	for i, damage := range damages {
		mangle(t, tree, address(2*i), damage)
		bad[address(2*i)] = 2 * i
	}
	a, b := pathOf(tree, address(1)), pathOf(tree, address(3))
	check(t, os.Rename(a, a+".aside"))
	check(t, os.Rename(b, a))
	check(t, os.Rename(a+".aside", b))
	bad[address(1)], bad[address(3)] = 1, 3
	return tree, bad
}

func TestScrubFindsDamage(t *testing.T) {
	told := map[blobstor.Address]int{}
	o := Options{}
	o.Hooks.Corrupt = func(info blobstor.Info, err error) {
		checkIs(t, err, blobstor.ErrCorrupt)
		if info.Location == "" {
			t.Error("the hook got no location")
		}
		told[info.Address]++
	}
	tree, bad := hurt(t, o)
	for _, depth := range []int{1, 0} {
		clear(told)
		r, err := tree.Scrub(ctx, nil)
		check(t, err)
		want := int64(len(bad))
		if r.OK() || r.Corrupt != want || r.Failed != 0 || r.Blobs != int64(3*len(damages))-want || r.Next != "" {
			t.Fatalf("%+v", r)
		}
		for n := range maps.Values(bad) {
			if told[address(n)] != 1 {
				t.Errorf("blob %d: the hook was called %d times", n, told[address(n)])
			}
			_, err := tree.Get(ctx, address(n), "", nil)
			checkIs(t, err, blobstor.ErrCorrupt)
		}
		checkFlaws(t, r, bad)
		check(t, tree.Reshape(ctx, depth)) // A damaged blob moves as it is.
	}
	for n := range maps.Values(bad) {
		put(t, tree, n, scrubSize)
	}
	r, err := tree.Scrub(ctx, nil)
	check(t, err)
	if !r.OK() || r.Blobs != int64(3*len(damages)) || r.Bytes != r.Blobs*storedSize(scrubSize) {
		t.Fatalf("after healing: %+v", r)
	}
	if s := tree.Stats(); s.Scrubbed < uint64(r.Blobs) || s.ScrubbedBytes < uint64(r.Bytes) {
		t.Fatalf("%+v", s)
	}
}

func checkFlaws(t *testing.T, r *ScrubReport, bad map[blobstor.Address]int) {
	t.Helper()
	var last blobstor.Location
	for _, err := range r.Flaws {
		e, ok := errors.AsType[*blobstor.Error](err)
		if !ok || !errors.Is(err, blobstor.ErrCorrupt) || e.Location < last {
			t.Fatalf("flaw %v", err)
		}
		if _, ok := bad[e.Address]; !ok {
			t.Fatalf("blob %v is whole", e.Address)
		}
		last = e.Location
	}
	if len(r.Flaws) != len(bad) {
		t.Fatalf("%d flaws, want %d", len(r.Flaws), len(bad))
	}
}

// TestScrubGoesOn scrubs a store in pieces, with reopens, and once ended by its context at a random blob: each damaged
// blob is found.
func TestScrubGoesOn(t *testing.T) {
	tree, bad := hurt(t, Options{})
	found := map[blobstor.Address]bool{}
	collect := func(r *ScrubReport) {
		for _, err := range r.Flaws {
			e, _ := errors.AsType[*blobstor.Error](err)
			found[e.Address] = true
		}
	}
	var at blobstor.Location
	calls, blobs := 0, int64(0)
	for {
		r, err := tree.Scrub(ctx, &ScrubOptions{After: at, Limit: 1})
		check(t, err)
		collect(r)
		calls, blobs = calls+1, blobs+r.Blobs
		if r.Next == "" {
			break
		}
		if r.Next <= at {
			t.Fatalf("from %x to %x", at, r.Next)
		}
		at = r.Next
		if calls == 10 {
			check(t, tree.Close())
			tree = reopen(t, tree.store.Dir.Path(), Options{})
		}
	}
	if len(found) != len(bad) || blobs != int64(3*len(damages)-len(bad)) || calls < 20 {
		t.Fatalf("%d calls found %d of %d and passed %d", calls, len(found), len(bad), blobs)
	}

	clear(found)
	short, cancel := context.WithCancel(ctx)
	tree.opts.Hooks.Corrupt = func(blobstor.Info, error) {
		if len(found) == 0 {
			cancel()
		}
	}
	r, err := tree.Scrub(short, nil)
	checkIs(t, err, context.Canceled)
	if r.Corrupt != 1 || r.Next == "" {
		t.Fatalf("%+v", r)
	}
	collect(r)
	r, err = tree.Scrub(ctx, &ScrubOptions{After: r.Next})
	check(t, err)
	collect(r)
	if len(found) != len(bad) {
		t.Fatalf("found %d of %d", len(found), len(bad))
	}
	r, err = tree.Scrub(ctx, &ScrubOptions{After: "garbage", Limit: 1})
	check(t, err)
	if r.Blobs > 1 || r.Bytes == 0 { // Of damaged blobs at the beginning perhaps no byte was read.
		t.Fatalf("%+v", r)
	}
	_, err = tree.Scrub(ctx, &ScrubOptions{Rate: -1})
	refusedUse(t, err)
}

// TestScrubRate: in the time of the test's own clock, bytes over time is the rate, but for the first read, and idle time
// gives no credit.
func TestScrubRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := create(t, Options{})
		for n := range 10 {
			put(t, tree, n, 500_000)
		}
		start := time.Now()
		r, err := tree.Scrub(ctx, &ScrubOptions{Rate: 100_000})
		check(t, err)
		took := time.Since(start)
		whole := time.Duration(r.Bytes) * 10 * time.Microsecond
		if took > whole || took < whole-bufferSize*10*time.Microsecond {
			t.Fatalf("%d bytes took %v", r.Bytes, took)
		}
		start = time.Now()
		_, err = tree.Scrub(ctx, nil)
		check(t, err)
		if took := time.Since(start); took != 0 {
			t.Fatalf("without a rate it slept %v", took)
		}
		s := scrub{t: tree, ctx: ctx, opts: ScrubOptions{Rate: 1000}}
		for range 3 {
			start = time.Now()
			check(t, s.wait(1000))
			check(t, s.wait(1000))
			if took := time.Since(start); took != time.Second {
				t.Fatalf("two reads took %v", took)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestScrubReadsAhead: the disk is told to read ahead only where that exceeds no rate.
func TestScrubReadsAhead(t *testing.T) {
	tree := create(t, Options{})
	const size = 3 * bufferSize
	put(t, tree, 1, size)
	r, err := tree.newReader(ctx, tree.place(address(1)))
	check(t, err)
	defer r.Close()
	for _, rate := range []int64{0, 1000} {
		var n notes
		s := scrub{t: tree, ctx: ctx, opts: ScrubOptions{Rate: rate}}
		trail := s.trail(r.b)
		trail.f = &n
		for off := int64(0); off < size; off += bufferSize {
			trail.reading(off, size)
		}
		if want := rate == 0; want != (len(n.ahead) > 0) {
			t.Errorf("rate %d: it reads ahead %v", rate, n.ahead)
		}
	}
}

// TestScrubEnds ends a Scrub that sleeps: ctx and Close wake it.
func TestScrubEnds(t *testing.T) {
	for _, want := range []error{context.DeadlineExceeded, blobstor.ErrClosed} {
		synctest.Test(t, func(t *testing.T) {
			tree := create(t, Options{})
			put(t, tree, 1, 2*bufferSize)
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if want == blobstor.ErrClosed {
				go func() {
					time.Sleep(time.Second)
					check(t, tree.Close())
				}()
			}
			start := time.Now()
			r, err := tree.Scrub(short, &ScrubOptions{Rate: 1})
			checkIs(t, err, want)
			if took := time.Since(start); took > time.Minute || r.Next != location(tree.place(address(1)).key) || r.Blobs != 0 {
				t.Fatalf("%+v after %v", r, took)
			}
			if want == blobstor.ErrClosed {
				_, err := tree.Scrub(ctx, nil)
				checkIs(t, err, want)
			}
		})
	}
}

// TestScrubHoldsNobodyUp changes a blob whose Scrub sleeps in its middle.
func TestScrubHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := create(t, Options{})
		put(t, tree, 1, 2*bufferSize)
		go func() { _, _ = tree.Scrub(ctx, &ScrubOptions{Rate: 1}) }()
		synctest.Wait()
		start := time.Now()
		has(t, tree, 1, 2*bufferSize)
		put(t, tree, 1, 2*bufferSize)
		check(t, tree.Reshape(ctx, 2))
		check(t, tree.Delete(ctx, address(1), ""))
		check(t, tree.SetReadOnly(ctx, true))
		check(t, tree.Close())
		if took := time.Since(start); took != 0 {
			t.Fatalf("it took %v", took)
		}
	})
}

// TestScrubGoesOverErrors: what cannot be read is not called whole, and all else is read.
func TestScrubGoesOverErrors(t *testing.T) {
	for _, op := range []durable.Op{durable.OpOpen, durable.OpRead} {
		r := watched(t, memory(t))
		var faults int
		o := Options{tap: r.faults}
		o.Hooks.Fault = func(op string, _ error) {
			if op == "scrub" {
				faults++
			}
		}
		tree := reopen(t, r.dir, o)
		for n := range 10 {
			put(t, tree, n, scrubSize)
		}
		name := filepath.Base(pathOf(tree, address(4)))
		r.faults.Add(crashtest.Fault{Op: op, Path: name, Forever: true, Err: syscall.EIO})
		report, err := tree.Scrub(ctx, nil)
		check(t, err)
		if report.OK() || report.Failed != 1 || report.Corrupt != 0 || report.Blobs != 9 || faults != 1 {
			t.Fatalf("%+v, %d faults", report, faults)
		}
		e, _ := errors.AsType[*blobstor.Error](report.Flaws[0])
		if e.Address != address(4) || !errors.Is(e, syscall.EIO) {
			t.Fatalf("flaw %v", e)
		}
	}
}

// TestScrubMissingDirectory: blobs that nobody can list are not whole.
func TestScrubMissingDirectory(t *testing.T) {
	tree := create(t, Options{})
	put(t, tree, 1, 10)
	put(t, tree, 2, 10)
	check(t, tree.Close())
	check(t, os.RemoveAll(filepath.Dir(pathOf(tree, address(1)))))
	tree = reopen(t, tree.store.Dir.Path(), Options{})
	r, err := tree.Scrub(ctx, nil)
	check(t, err)
	if r.OK() || r.Corrupt != 1 || r.Blobs != 1 || len(r.Flaws) != 1 || !strings.Contains(r.Flaws[0].Error(), "missing") {
		t.Fatalf("%+v", r)
	}
}

// TestScrubReportIsBounded meets more damage than it lists.
func TestScrubReportIsBounded(t *testing.T) {
	tree := create(t, Options{Depth: -1, NoSync: true})
	for n := range maxFlaws + 5 {
		check(t, os.WriteFile(pathOf(tree, address(n)), nil, 0o600))
	}
	r, err := tree.Scrub(ctx, nil)
	check(t, err)
	if r.Corrupt != maxFlaws+5 || len(r.Flaws) != maxFlaws {
		t.Fatalf("%d damaged, %d listed", r.Corrupt, len(r.Flaws))
	}
}

// TestScrubBesideChanges deletes and heals blobs, damaged and whole, while they are read: that is no damage.
func TestScrubBesideChanges(t *testing.T) {
	for name, change := range map[string]func(tree *Tree, n int) error{
		"delete": func(tree *Tree, n int) error { return tree.Delete(ctx, address(n), "") },
		"heal": func(tree *Tree, n int) error {
			_, err := tree.Put(ctx, address(n), content(n, scrubSize))
			return err
		},
	} {
		for _, damaged := range []bool{false, true} {
			var tree *Tree
			armed := false
			o := Options{tap: &tap{before: func(op durable.Op, path string) error {
				if !armed || op != durable.OpRead || filepath.Base(path) != (place{addr: address(1)}).name() {
					return nil
				}
				armed = false
				return change(tree, 1)
			}}}
			tree = create(t, o)
			put(t, tree, 1, scrubSize)
			put(t, tree, 2, scrubSize)
			if damaged {
				mangle(t, tree, address(1), func(b []byte) []byte { b[blockSize] ^= 1; return b })
			}
			armed = true
			r, err := tree.Scrub(ctx, nil)
			check(t, err)
			if !r.OK() || r.Blobs == 0 || name == "heal" && r.Blobs != 2 {
				t.Fatalf("%s, damaged=%v: %+v", name, damaged, r)
			}
		}
	}
}

// TestScrubOrder: Scrub goes in the order of All.
func TestScrubOrder(t *testing.T) {
	var opened []string
	o := Options{Depth: 2, tap: &tap{before: func(op durable.Op, path string) error {
		if _, ok := parseName(filepath.Base(path)); ok && op == durable.OpOpen {
			opened = append(opened, filepath.Base(path))
		}
		return nil
	}}}
	tree, _ := filled(t, o, 30)
	opened = nil
	_, err := tree.Scrub(ctx, nil)
	check(t, err)
	scrubbed := slices.Clone(opened)
	opened = nil
	for _, err := range tree.All(ctx, "") {
		check(t, err)
	}
	if len(opened) != 30 || !slices.Equal(scrubbed, opened) {
		t.Fatalf("scrubbed %d, listed %d", len(scrubbed), len(opened))
	}
}
