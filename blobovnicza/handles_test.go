package blobovnicza

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// Many files, few handles, and all kinds of calls at once: the number of open files is bounded by the budget and what
// the calls that run hold at the moment, and all answers are right.
func TestFewHandles(t *testing.T) {
	blobs, rounds := 4000, 60
	if testing.Short() {
		blobs, rounds = 2500, 15
	}
	dir := t.TempDir()
	opts := Options{Width: 2, Depth: 1, NoSync: true, MaxOpen: 8, FileSize: 16 << 10, Compact: CompactOptions{Off: true, DeadRatio: 0.05}}
	s := mustOpen(t, dir, opts)
	items := make([]blobstor.Item, blobs)
	for i := range items {
		n := 10_000 + i
		items[i] = blobstor.Item{Address: addrOf(n), Data: smallData(n)}
	}
	check(t, s.PutBatch(ctx, items))
	if n := s.Stats().Files; n < 60 {
		t.Fatalf("%d files", n)
	}
	const workers, own = 4, 30
	const most = 8 + 2 + 2*(workers+3) // the budget, active files, and one or two for each goroutine and the keeper
	stop, cancel := context.WithCancel(ctx)
	var wg, background sync.WaitGroup
	final := make([]map[int]bool, workers)
	for g := range workers {
		final[g] = map[int]bool{}
		wg.Go(func() { beside(t, s, g*own, own, rounds, final[g]) })
	}
	background.Go(func() { compactUntil(t, stop, s) })
	background.Go(func() {
		for i := 0; stop.Err() == nil; i = (i + 37) % blobs {
			expect(t, s, 10_000+i, items[i].Data)
			if open := s.handles.len(); open > most {
				t.Errorf("%d files are open", open)
			}
		}
	})
	wg.Wait()
	cancel()
	background.Wait()
	for i := range items {
		got, err := s.Get(ctx, items[i].Address, items[i].Location, nil)
		if err != nil || string(got) != string(items[i].Data) {
			t.Fatalf("blob %d: %v", i, err)
		}
	}
	if st := s.Stats(); st.Evictions == 0 {
		t.Errorf("stats %+v", st)
	}
	recount(t, s)
}

// An open that meets the process's limit is tried again.
func TestOpenTriesAgain(t *testing.T) {
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE} {
		dir, h := sparseStore(t)
		faults := &crashtest.Faults{}
		opts := smallFiles()
		opts.MaxOpen = 2
		faults.Add(crashtest.Fault{Op: durable.OpOpen, Path: suffixes, N: 3, Err: errno})
		for n := range 20 {
			faults.Add(crashtest.Fault{Op: durable.OpOpen, Path: dataSuffix, N: 5 * n, Err: errno})
			faults.Add(crashtest.Fault{Op: durable.OpOpen, Path: indexSuffix, N: 5 * n, Err: errno})
		}
		s, err := open(dir, &opts, faults)
		check(t, err)
		h.verify(t, s, errno.Error())
		check(t, s.Compact(ctx))
		h.verify(t, s, errno.Error())
		check(t, s.Close())
		if faults.Hits() < 10 {
			t.Errorf("only %d opens failed", faults.Hits())
		}
	}
}

const suffixes = "." // data and index files

// A leaf whose disk hangs, in an open or in a sync, holds up its own callers only; so does a damaged one.
func TestSlowLeafHoldsUpNobody(t *testing.T) {
	for _, op := range []durable.Op{durable.OpOpen, durable.OpSync} {
		t.Run(op.String(), func(t *testing.T) {
			dir := t.TempDir()
			opts := Options{Create: true, Width: 4, Depth: 1, MaxOpen: 4, Compact: CompactOptions{Off: true}}
			s := mustOpen(t, dir, opts)
			byLeaf := make([][]int, 4)
			for n := range 80 {
				_, err := s.Put(ctx, addrOf(n), smallData(n))
				check(t, err)
				leaf := s.sortKey(addrOf(n)) % 4
				byLeaf[leaf] = append(byLeaf[leaf], n)
			}
			check(t, s.Close())
			slow := filepath.Join(treeDir, "2")
			hold := newHoldUp(func(o durable.Op, path string) bool {
				return o == op && strings.Contains(path, slow) && strings.HasSuffix(path, dataSuffix)
			})
			s, err := open(dir, &opts, hold)
			check(t, err)
			check(t, s.upkeep(ctx))
			hold.armed.Store(true)
			held := make(chan error, 1)
			go func() { held <- s.Delete(ctx, addrOf(byLeaf[2][0]), "") }()
			hold.wait(t, held)
			for leaf, ns := range byLeaf {
				if leaf == 2 {
					continue
				}
				for _, n := range ns {
					expect(t, s, n, smallData(n))
				}
				remove(t, s, ns[0])
				expect(t, s, ns[0], nil)
				_, err := s.Put(ctx, addrOf(ns[0]), smallData(ns[0]))
				check(t, err)
			}
			select {
			case err := <-held:
				t.Errorf("the slow leaf did not hang: %v", err)
			default:
			}
			close(hold.release)
			check(t, <-held)
			check(t, s.Close())
		})
	}
}

const limitEnv = "GRANARY_LIMIT_DIR"

// A tree of 256 leaves and more than a thousand files works in a process that may open 256.
func TestFileLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 256 leaves")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFileLimitChild$", "-test.v")
	cmd.Env = append(os.Environ(), limitEnv+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestFileLimitChild") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestFileLimitChild is the child of TestFileLimit.
func TestFileLimitChild(t *testing.T) {
	dir := os.Getenv(limitEnv)
	if dir == "" {
		t.Skip("runs in a process of its own")
	}
	limitFiles(t, 256)
	opts := Options{Width: 4, Depth: 4, NoSync: true, FileSize: 4 << 10, Compact: CompactOptions{Off: true, DeadRatio: 0.3}}
	s := mustOpen(t, dir, opts)
	const blobs, gone, threads = 12_000, 1200, 40
	deleted := func(n int) bool { return n < gone && n%2 == 0 }
	each := func(what string, do func(n int) error) {
		t.Helper()
		begin := time.Now()
		var wg sync.WaitGroup
		for g := range threads {
			wg.Go(func() {
				for n := g; n < blobs; n += threads {
					if err := do(n); err != nil {
						t.Errorf("%s %d: %v", what, n, err)
						return
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%s: %v", what, time.Since(begin))
	}
	each("put", func(n int) error { _, err := s.Put(ctx, addrOf(n), smallData(n)); return err })
	each("delete", func(n int) error {
		if deleted(n) {
			return s.Delete(ctx, addrOf(n), "")
		}
		return nil
	})
	if st := s.Stats(); st.Files < 1000 || st.Open > 256 || st.Evictions == 0 {
		t.Errorf("stats %+v", st)
	}
	verify := func() {
		t.Helper()
		each("get", func(n int) error {
			got, err := s.Get(ctx, addrOf(n), "", nil)
			if deleted(n) && errors.Is(err, blobstor.ErrNotFound) || !deleted(n) && string(got) == string(smallData(n)) {
				return nil
			}
			return fmt.Errorf("%d bytes, %w", len(got), err)
		})
		count := 0
		for _, err := range s.All(ctx, "") {
			check(t, err)
			count++
		}
		if want := blobs - gone/2; count != want {
			t.Errorf("All yields %d, want %d", count, want)
		}
	}
	verify()
	check(t, s.Compact(ctx))
	if s.Stats().Compacted == 0 {
		t.Error("nothing was compacted")
	}
	check(t, s.Close())
	s = mustOpen(t, dir, opts)
	verify()
	recount(t, s)
}
