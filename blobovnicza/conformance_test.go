package blobovnicza

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

// site is where a store under test lies, and how its operations are made to fail.
type site struct {
	dir    string
	opts   Options
	record *crashtest.Recorder
	faults *crashtest.Faults
	aside  *asideTap
	full   bool
}

// fill makes the disk full: writes fail but for those into what was set aside.
func (st *site) fill() (release func()) {
	st.full = true
	grows := func(op durable.Op, path string) bool { return op == durable.OpWrite && !st.aside.has(path) }
	st.faults.Add(crashtest.Fault{Match: grows, Forever: true, Err: syscall.ENOSPC})
	return func() { st.full = false; st.faults.Clear() }
}

// sites remembers the site of every open store, because hooks are handed nothing but the store.
type sites struct {
	mu  sync.Mutex
	all map[blobstor.Storage]*site
}

func (ss *sites) of(s blobstor.Storage) *site {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[s]
}

// reopen closes a store and opens it again. If the disk is full it stays so.
func (ss *sites) reopen(tb testing.TB, s blobstor.Storage, opts Options) *Tree {
	tb.Helper()
	check(tb, s.Close())
	st := ss.of(s)
	if !st.full {
		return ss.open(tb, st.dir, opts)
	}
	return ss.openAt(tb, st, opts)
}

// openAt opens a store at a site and remembers that.
func (ss *sites) openAt(tb testing.TB, st *site, opts Options) *Tree {
	tb.Helper()
	s, err := open(st.dir, &opts, st.faults)
	check(tb, err)
	tb.Cleanup(func() { s.Close() })
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.all[s] = st
	return s
}

// open opens a store in dir and remembers its site.
func (ss *sites) open(tb testing.TB, dir string, opts Options) *Tree {
	tb.Helper()
	check(tb, os.MkdirAll(dir, 0o700))
	record, err := crashtest.NewRecorder(dir)
	check(tb, err)
	st := &site{dir: dir, opts: opts, record: record, aside: &asideTap{next: record}}
	st.faults = &crashtest.Faults{Next: st.aside}
	return ss.openAt(tb, st, opts)
}

func harness(opts Options) storagetest.Harness {
	ss := &sites{all: map[blobstor.Storage]*site{}}
	opts.Create = true
	return storagetest.Harness{
		Limit: opts.withDefaultsLimit(),
		New: func(tb testing.TB) blobstor.Storage {
			return ss.open(tb, tb.TempDir(), opts)
		},
		Reopen: func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			return ss.reopen(tb, s, opts)
		},
		PowerLoss: func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			dir := tb.TempDir()
			check(tb, ss.of(s).record.PowerLoss(dir))
			s.Close()
			return ss.open(tb, dir, opts)
		},
		Damage: func(tb testing.TB, s blobstor.Storage, addr blobstor.Address) {
			tree := s.(*Tree)
			if tree.calls.shut {
				tree = mustOpen(tb, ss.of(s).dir, Options{ReadOnly: true})
				defer tree.Close()
			}
			key := tree.sortKey(addr)
			l, err := tree.leaf(key)
			check(tb, err)
			for _, f := range l.version.Load().files {
				if e, err := f.get(key, &addr); err == nil && e != 0 && !e.tombstone() {
					flip(tb, dataPath(ss.of(s).dir, tree, addr, f.number), e.off()+headerSize)
				}
			}
		},
		Full: func(tb testing.TB, s blobstor.Storage) func() {
			check(tb, s.(*Tree).upkeep(ctx)) // it sets aside what a new store has not yet
			return ss.of(s).fill()
		},
		FailSync: func(tb testing.TB, s blobstor.Storage) func() {
			faults := ss.of(s).faults
			faults.Add(crashtest.Fault{Op: durable.OpSync, Forever: true, Err: syscall.EIO})
			faults.Add(crashtest.Fault{Op: durable.OpSyncDir, Forever: true, Err: syscall.EIO})
			return faults.Clear
		},
		ReadOnly: func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			check(tb, s.Close())
			return ss.open(tb, ss.of(s).dir, Options{ReadOnly: true})
		},
	}
}

func (o Options) withDefaultsLimit() int64 { return o.withDefaults().MaxBlob }

// leafPath returns the directory of a leaf.
func leafPath(dir string, s *Tree, leaf int) string {
	width, depth := int(s.store.Shape[0]), int(s.store.Shape[1])-1
	path := ""
	for range depth {
		path = filepath.Join(fmt.Sprint(leaf%width), path)
		leaf /= width
	}
	return filepath.Join(dir, treeDir, path)
}

// dataPath returns the file of that number in the leaf of addr.
func dataPath(dir string, s *Tree, addr blobstor.Address, number uint32) string {
	return filepath.Join(leafPath(dir, s, int(s.sortKey(addr)%uint64(len(s.leaves)))), dataName(number))
}

// flip inverts a byte of a file.
func flip(tb testing.TB, path string, off int64) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(tb, err)
	defer f.Close()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, off)
	check(tb, err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b, off)
	check(tb, err)
}

func TestConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"one leaf":    {},
		"small files": {FileSize: 64 << 10, MaxBlob: 200 << 10},
		"2x2":         {Width: 2, Depth: 2, FileSize: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) { storagetest.Test(t, harness(opts)) })
	}
}
