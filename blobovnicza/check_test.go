package blobovnicza

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// wantClean fails the test unless Check finds nothing wrong and counts what Stats says.
func wantClean(t testing.TB, s *Tree) {
	t.Helper()
	r, err := s.Check(ctx)
	check(t, err)
	if !r.OK() {
		t.Errorf("Check: %s", findings(r))
	}
	st, n := s.Stats(), r.Total
	if st.Objects != n.Objects || st.Live != n.Live || st.Dead != n.Dead || st.Files != len(r.Files) {
		t.Errorf("counted %+v in %d files, stats %+v", n, len(r.Files), st)
	}
}

// findings says in a few words what a report finds wrong.
func findings(r *Report) string {
	var all []string
	for leaf, err := range r.Leaf {
		all = append(all, fmt.Sprintf("leaf %d: %v", leaf, err))
	}
	for i := range r.Files {
		if f := &r.Files[i]; !f.OK() {
			all = append(all, fmt.Sprintf("%d:%s", f.Number, strings.Join(fileFindings(f), ",")))
		}
	}
	return strings.Join(all, " ")
}

func fileFindings(f *FileReport) (all []string) {
	switch {
	case f.Missing:
		return []string{"missing"}
	case f.Foreign:
		return []string{"foreign"}
	case f.Short:
		all = append(all, "short")
	}
	for _, d := range f.Damage {
		what := "range"
		switch {
		case d.Known && d.Tombstone:
			what = "tombstone"
		case d.Known:
			what = "blob"
		}
		if d.Current {
			what = "current " + what
		}
		all = append(all, what)
	}
	if len(f.Index) > 0 {
		all = append(all, "index")
	}
	if f.Err != nil {
		all = append(all, "unreadable")
	}
	if !f.Uncertain && f.Counted != f.Counters {
		all = append(all, "counters")
	}
	return all
}

// fileStore fills a store whose blobs lie in four files in the order of their numbers.
func fileStore(t testing.TB, dir string) map[int]stored {
	t.Helper()
	return smallStore(t, dir, 24)
}

// damage is a way to hurt the store of fileStore.
type damage struct {
	name   string
	closed bool // done while the store is closed
	do     func(t *testing.T, h hurting)
	want   string // what Check finds
	lost   []int  // blobs that cannot be read any more
}

// hurting is a store to damage.
type hurting struct {
	dir  string
	s    *Tree // nil if it is closed
	all  map[int]stored
	data []string
}

func (h hurting) flip(t *testing.T, n int, at int64) {
	_, p, _ := parseLocation(h.all[n].at)
	flip(t, h.data[p.file-1], p.off+at)
}

func (h hurting) index(file int) string {
	return filepath.Join(h.dir, treeDir, indexName(uint32(file)))
}

// rewriteIndex writes the index of a full file with other rows.
func (h hurting) rewriteIndex(t *testing.T, number uint32, change func([]row) []row) {
	l := h.s.leaves[0]
	f := byNumber(l.version.Load().files, number)
	rows, err := f.rows()
	check(t, err)
	cover := coverage{listed: f.listing(), manifest: f.manifest.Load(), commit: f.commit.Load()}
	check(t, l.inDir(func(dir *durable.Dir) error { return l.replaceIndex(dir, f, cover, change(rows)) }))
	table, err := l.openTable(f)
	check(t, err)
	l.setIndex(f, &index{table: table})
}

func swap(t *testing.T, a, b string) {
	check(t, os.Rename(a, a+"x"))
	check(t, os.Rename(b, a))
	check(t, os.Rename(a+"x", b))
}

// otherStore returns the directory of another store of the same content.
func otherStore(t *testing.T) string {
	dir := t.TempDir()
	fileStore(t, dir)
	return filepath.Join(dir, treeDir)
}

func damages() []damage {
	return []damage{
		{name: "nothing", do: func(*testing.T, hurting) {}},
		{name: "header", want: "1:current blob", lost: []int{1},
			do: func(t *testing.T, h hurting) { h.flip(t, 1, 20) }},
		{name: "header without index", closed: true, want: "1:range", lost: []int{1},
			do: func(t *testing.T, h hurting) { h.flip(t, 1, 20); check(t, os.Remove(h.index(1))) }},
		{name: "payload", want: "1:current blob", lost: []int{1},
			do: func(t *testing.T, h hurting) { h.flip(t, 1, headerSize) }},
		{name: "payload of a dead record", want: "1:blob",
			do: func(t *testing.T, h hurting) { h.flip(t, 2, headerSize) }},
		{name: "header of a dead record", want: "1:range",
			do: func(t *testing.T, h hurting) { h.flip(t, 2, 20) }},
		{name: "padding", do: func(t *testing.T, h hurting) {
			_, p, _ := parseLocation(h.all[1].at)
			h.flip(t, 1, recordSize(kindPut, p.length)-1)
		}},
		{name: "manifest", want: "2:range", do: func(t *testing.T, h hurting) { flip(t, h.data[1], headerSize) }},
		{name: "payload in the active file", want: "4:current blob", lost: []int{23},
			do: func(t *testing.T, h hurting) { h.flip(t, 23, headerSize) }},
		{name: "header in the active file", want: "4:current blob", lost: []int{23},
			do: func(t *testing.T, h hurting) { h.flip(t, 23, 20) }},
		{name: "first manifest of the active file", closed: true, want: "4:range",
			do: func(t *testing.T, h hurting) { flip(t, h.data[len(h.data)-1], 20); removeIndexes(t, h.dir) }},
		{name: "index flipped", want: "2:index", do: func(t *testing.T, h hurting) { flip(t, h.index(2), 100) }},
		{name: "index footer flipped", want: "2:index", do: func(t *testing.T, h hurting) {
			info, err := os.Stat(h.index(2))
			check(t, err)
			flip(t, h.index(2), info.Size()-10)
		}},
		{name: "index truncated", want: "2:index", do: func(t *testing.T, h hurting) { check(t, os.Truncate(h.index(2), 4100)) }},
		{name: "index deleted", want: "2:index", do: func(t *testing.T, h hurting) { check(t, os.Remove(h.index(2))) }},
		{name: "indexes swapped", want: "1:index 2:index", do: func(t *testing.T, h hurting) { swap(t, h.index(1), h.index(2)) }},
		{name: "index of another store", want: "2:index", do: func(t *testing.T, h hurting) {
			check(t, os.Rename(filepath.Join(otherStore(t), indexName(2)), h.index(2)))
		}},
		{name: "row missing", want: "1:index", do: func(t *testing.T, h hurting) {
			h.rewriteIndex(t, 1, func(rows []row) []row { return rows[1:] })
		}},
		{name: "row dangling", want: "1:index", do: func(t *testing.T, h hurting) {
			h.rewriteIndex(t, 1, func(rows []row) []row {
				rows = append(rows, row{h.s.sortKey(addrOf(1000)), addrOf(1000), makeEntry(kindPut, 800, 5)})
				sortRows(rows)
				return rows
			})
		}},
		{name: "row wrong", want: "1:index", do: func(t *testing.T, h hurting) {
			h.rewriteIndex(t, 1, func(rows []row) []row { rows[0].entry += 1 << 32; return rows })
		}},
		{name: "entry missing in memory", want: "4:index", do: func(t *testing.T, h hurting) {
			delete(h.s.leaves[0].active().recent().numbers, h.s.sortKey(addrOf(23)))
		}},
		{name: "entry dangling in memory", want: "4:index", do: func(t *testing.T, h hurting) {
			h.s.leaves[0].active().recent().put(5, &blobstor.Address{}, makeEntry(kindPut, 8, 5))
		}},
		{name: "counter", want: "2:counters", do: func(t *testing.T, h hurting) {
			h.s.leaves[0].version.Load().files[1].dead.Add(8)
		}},
		{name: "data truncated", want: "2:short,range", closed: true,
			do: func(t *testing.T, h hurting) { check(t, os.Truncate(h.data[1], 900)) }},
		{name: "data truncated while open", want: "2:short,current blob,current blob,range,current blob,current tombstone,current blob",
			do: func(t *testing.T, h hurting) { check(t, os.Truncate(h.data[1], 900)) }},
		{name: "data emptied", want: "2:short,range", closed: true,
			do: func(t *testing.T, h hurting) { check(t, os.Truncate(h.data[1], 0)) }},
		{name: "active truncated", want: "4:short,range", closed: true,
			do: func(t *testing.T, h hurting) { check(t, os.Truncate(h.data[3], 500)) }},
		{name: "active emptied", want: "4:short,range", closed: true,
			do: func(t *testing.T, h hurting) { check(t, os.Truncate(h.data[3], 0)) }},
		{name: "data deleted", want: "2:missing", closed: true,
			do: func(t *testing.T, h hurting) { check(t, os.Remove(h.data[1])) }},
		{name: "data deleted while open", want: "2:missing",
			do: func(t *testing.T, h hurting) { check(t, os.Remove(h.data[1])) }},
		{name: "active deleted", want: "4:missing", closed: true,
			do: func(t *testing.T, h hurting) { check(t, os.Remove(h.data[3])) }},
		{name: "data swapped", want: "1:foreign 2:foreign", closed: true,
			do: func(t *testing.T, h hurting) { swap(t, h.data[0], h.data[1]) }},
		{name: "data swapped while open", want: "1:foreign 2:foreign",
			do: func(t *testing.T, h hurting) { swap(t, h.data[0], h.data[1]) }},
		{name: "data of another store", want: "2:foreign", closed: true, do: func(t *testing.T, h hurting) {
			check(t, os.Rename(filepath.Join(otherStore(t), dataName(2)), h.data[1]))
		}},
	}
}

// hurt opens a copy of a small store and damages it.
func (d *damage) hurt(t *testing.T, master string, all map[int]stored, opts Options) (*Tree, *site) {
	dir := copyStore(t, master)
	h := hurting{dir: dir, all: all, data: dataFiles(t, dir)}
	if d.closed {
		d.do(t, h)
	}
	ss := &sites{all: map[blobstor.Storage]*site{}}
	s := ss.open(t, dir, opts)
	check(t, s.upkeep(ctx))
	if !d.closed {
		h.s = s
		d.do(t, h)
	}
	return s, ss.of(s)
}

// Each kind of damage is found for what it is, twice, and hurts nothing else.
func TestCheckFindsDamage(t *testing.T) {
	master := t.TempDir()
	all := fileStore(t, master)
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			var told []blobstor.Address
			opts := Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}}
			opts.Hooks.Corrupt = func(info blobstor.Info, err error) { told = append(told, info.Address) }
			s, _ := d.hurt(t, master, all, opts)
			for range 2 {
				told = nil
				r, err := s.Check(ctx)
				check(t, err)
				if got := findings(r); got != d.want {
					t.Errorf("found %q, want %q", got, d.want)
				}
				if n := currentBlobs(r); n != len(told) {
					t.Errorf("%d current blobs are damaged, told of %v", n, told)
				}
			}
		})
	}
}

// currentBlobs counts the blobs that are known to be damaged.
func currentBlobs(r *Report) (n int) {
	for _, f := range r.Files {
		for _, d := range f.Damage {
			if d.Current && !d.Tombstone {
				n++
			}
		}
	}
	return n
}

// Concurrent calls of all kinds are never taken for damage.
func TestCheckBesideCalls(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{FileSize: 64 << 10, Width: 2, Depth: 1})
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	for g := range 4 {
		wg.Go(func() {
			for n := g; ; n += 4 {
				select {
				case <-stop:
					return
				default:
				}
				_, err := s.Put(ctx, addrOf(n), dataOf(n, n*37%5000))
				check(t, err)
				if old := n - 4*20; old >= 0 { // the store must not outgrow the checks
					check(t, s.Delete(ctx, addrOf(old), ""))
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				check(t, s.Compact(ctx))
			}
		}
	})
	checks, files := 20, int64(10)
	if testing.Short() {
		checks, files = 5, 2
	}
	for i := 0; (i < checks || s.Stats().Compacted < files) && !t.Failed(); i++ {
		r, err := s.Check(ctx)
		check(t, err)
		if !r.OK() {
			t.Fatalf("check %d: %s", i, findings(r))
		}
	}
	close(stop)
	wg.Wait()
	check(t, s.Compact(ctx)) // behind it the keeper has nothing to do
	wantClean(t, s)
}

// A file that the disk does not give is in the report, and all others are checked.
func TestCheckUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	fileStore(t, dir)
	ss := &sites{all: map[blobstor.Storage]*site{}}
	s := ss.open(t, dir, Options{FileSize: 2 << 10, Compact: CompactOptions{Off: true}})
	check(t, s.upkeep(ctx))
	ss.of(s).faults.Add(crashtest.Fault{Op: durable.OpRead, Path: dataName(2), Forever: true, Err: syscall.EIO})
	r, err := s.Check(ctx)
	check(t, err)
	if got := findings(r); got != "2:unreadable" {
		t.Errorf("found %q", got)
	}
	if _, err := s.Repair(ctx); !errors.Is(err, syscall.EIO) {
		t.Errorf("Repair: %v", err)
	}
	ss.of(s).faults.Clear()
	wantClean(t, s)
}

// Only its context and Close end a check, and a store that cannot be written to is checked too.
func TestCheckEnds(t *testing.T) {
	dir := t.TempDir()
	fileStore(t, dir)
	s := mustOpen(t, dir, Options{ReadOnly: true})
	wantClean(t, s)
	if _, err := s.Repair(ctx); !errors.Is(err, blobstor.ErrReadOnly) {
		t.Errorf("Repair of a read-only store: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Check: %v", err)
	}
	check(t, s.Close())
	if _, err := s.Check(ctx); !errors.Is(err, blobstor.ErrClosed) {
		t.Errorf("Check after Close: %v", err)
	}
	if _, err := s.Repair(ctx); !errors.Is(err, blobstor.ErrClosed) {
		t.Errorf("Repair after Close: %v", err)
	}
}

// An index file that goes bad between two looks of a check is made again, and is no error of the check.
func TestIndexGoesBadDuringCheck(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, byHand())
	s.stopKeeper()
	putSmall(t, s, 0, 100)
	remove(t, s, 1, 2, 3)
	check(t, s.upkeep(ctx))
	a, err := s.leaves[0].audit(ctx)
	check(t, err)
	views, err := a.liveViews()
	check(t, err)
	flip(t, indexFiles(t, dir)[0], 20)
	var c Counts
	check(t, a.files[0].count(views[0], &c))
	if c != a.files[0].before || a.files[0].file.recent() == nil {
		t.Errorf("counted %+v, want %+v, of an index in memory", c, a.files[0].before)
	}
}
