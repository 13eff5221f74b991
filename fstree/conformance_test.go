package fstree

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// stand keeps what belongs to the stores of one conformance run: the options, and for each open store its
// directory and its taps.
type stand struct {
	opts Options
	old  int // stores are in the middle of a Reshape from this depth; noDepth for none

	mu   sync.Mutex
	rigs map[blobstor.Storage]rig
}

type rig struct {
	dir    string
	power  *crashtest.Recorder
	faults *crashtest.Faults
}

func (s *stand) open(tb testing.TB, r rig, readOnly bool) blobstor.Storage {
	tb.Helper()
	o := s.opts
	o.tap, o.ReadOnly = r.faults, readOnly
	var st blobstor.Storage
	if tree := reopen(tb, r.dir, o); tree.layout.Load().between() {
		st = scattered{tree}
	} else {
		st = tree
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rigs[st] = r
	return st
}

func (s *stand) of(st blobstor.Storage) rig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rigs[st]
}

// watched returns the rig for a store in a directory below root.
func watched(tb testing.TB, root string) rig {
	tb.Helper()
	power, err := crashtest.NewRecorder(root)
	check(tb, err)
	return rig{filepath.Join(root, "store"), power, &crashtest.Faults{Next: power}}
}

func (s *stand) harness() storagetest.Harness {
	return storagetest.Harness{
		Limit: s.opts.MaxSize,
		New: func(tb testing.TB) blobstor.Storage {
			r := watched(tb, memory(tb))
			if s.old != noDepth {
				check(tb, begun(tb, r.dir, Options{tap: r.faults}, s.old, s.opts.depth()).Close())
			}
			return s.open(tb, r, false)
		},
		Reopen: func(tb testing.TB, st blobstor.Storage) blobstor.Storage {
			check(tb, st.Close())
			return s.open(tb, s.of(st), false)
		},
		PowerLoss: func(tb testing.TB, st blobstor.Storage) blobstor.Storage {
			root := filepath.Join(memory(tb), "after")
			check(tb, s.of(st).power.PowerLoss(root))
			return s.open(tb, watched(tb, root), false)
		},
		ReadOnly: func(tb testing.TB, st blobstor.Storage) blobstor.Storage {
			check(tb, st.Close())
			return s.open(tb, s.of(st), true)
		},
		Damage: func(tb testing.TB, st blobstor.Storage, addr blobstor.Address) {
			tree := treeOf(st)
			damaged := map[string]bool{} // contents: two names may be of one file
			for _, depth := range tree.layout.Load().depths() {
				path := pathAt(tree, addr, depth)
				b, err := os.ReadFile(path)
				if err != nil || damaged[string(b)] {
					continue
				}
				b[(len(b)-footerSize-4)/2] ^= 1
				damaged[string(b)] = true
				check(tb, os.WriteFile(path, b, 0o600))
			}
			if len(damaged) == 0 {
				tb.Fatal("there is no copy to damage")
			}
		},
		Full: func(tb testing.TB, st blobstor.Storage) func() {
			faults := s.of(st).faults
			for _, op := range []durable.Op{durable.OpWrite, durable.OpMkdir} {
				faults.Add(crashtest.Fault{Op: op, Forever: true, Err: syscall.ENOSPC})
			}
			return faults.Clear
		},
		FailSync: s.failSync(),
	}
}

// failSync is left to the tree without levels: a failed sync stops writes to one directory only, and the suite asks
// any other blob whether the store takes writes again. TestFailedSync has the other depths.
func (s *stand) failSync() func(testing.TB, blobstor.Storage) func() {
	if s.opts.Depth >= 0 || s.old != noDepth {
		return nil
	}
	return func(tb testing.TB, st blobstor.Storage) func() {
		faults := s.of(st).faults
		for _, op := range []durable.Op{durable.OpSync, durable.OpSyncDir, durable.OpSyncAll} {
			faults.Add(crashtest.Fault{Op: op, Forever: true, Err: syscall.EIO})
		}
		return faults.Clear
	}
}

func TestConformance(t *testing.T) {
	depths := []int{-1, 1, 3}
	if testing.Short() {
		depths = depths[:2]
	}
	for _, writer := range []string{"tmpfile", "rename"} {
		for _, depth := range depths {
			t.Run(fmt.Sprintf("writer=%s/depth=%d", writer, max(0, depth)), func(t *testing.T) {
				t.Parallel()
				s := &stand{
					opts: Options{Depth: depth, rename: writer == "rename", MaxSize: 1 << 20},
					old:  noDepth,
					rigs: map[blobstor.Storage]rig{},
				}
				storagetest.Test(t, s.harness())
			})
		}
	}
}
