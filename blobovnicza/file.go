package blobovnicza

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// file is one blobovnicza: a data file, its index, and what is known of them.
type file struct {
	number uint32 // what a read by location needs comes first, to lie close together
	seed   uint32
	end    atomic.Int64 // behind the last record; the committer moves it when records are durable
	data   handle

	leaf *leaf
	idx  handle // there is a file only while index has a table

	index   atomic.Pointer[index] // changed by leaf.setIndex
	healing sync.Mutex
	beyond  atomic.Pointer[beyondHealing]

	records  atomic.Int64
	commit   atomic.Uint64 // the highest number of a commit before end
	manifest atomic.Int64  // where the newest manifest before end lies
	flawedAt atomic.Int64  // 1 more than the dead bytes when a compaction began that met damage, or 0
	noIndex  atomic.Bool   // records are lost: the next Open must find that out again
	tally
}

// index says where a file's records lie: all of it in memory, or most of it in the index file.
type index struct {
	recent *recent
	table  *table
}

// tally counts what of a file is the newest of its address, and what is not.
type tally struct {
	objects    atomic.Int64 // puts
	live       atomic.Int64 // bytes of their records
	tombstones atomic.Int64
	dead       atomic.Int64 // bytes of replaced records and voids
}

// count adds a record n times.
func (t *tally) count(p place, n int64) {
	if p.tombstone {
		t.tombstones.Add(n)
		return
	}
	t.objects.Add(n)
	t.live.Add(n * p.size())
}

// newFile returns a file whose index is empty. It is not open.
func (l *leaf) newFile(number uint32) *file {
	f := &file{leaf: l, number: number, seed: fileSeed(l.tree.storeID, l.id, number)}
	f.data.leaf, f.data.name = l, dataName(number)
	f.idx.leaf, f.idx.name = l, indexName(number)
	f.index.Store(&index{recent: &recent{}})
	return f
}

// recent returns the index in memory, nil if the index file has it.
func (f *file) recent() *recent { return f.index.Load().recent }

// get returns the entry for an address, zero if there is none. A damaged index file is made again from the data.
func (f *file) get(key uint64, addr *blobstor.Address) (entry, error) {
	return f.getRow(key, addr, true)
}

// getRow is get; strict is as for the table.
func (f *file) getRow(key uint64, addr *blobstor.Address, strict bool) (entry, error) {
	for {
		x := f.index.Load()
		if x.recent != nil {
			return x.recent.get(key, addr), nil
		}
		e, probed, err := x.table.get(&f.idx, key, addr, strict)
		if err == nil || errors.Is(err, errDropped) {
			if probed && e == 0 {
				f.leaf.tree.falsePositives.Add(1)
			}
			return e, err
		}
		if err := f.heal(x, err); err != nil {
			return 0, err
		}
	}
}

// find serves r from the newest record of its address in the file, and returns the entry of that, zero if there is
// none. What a row of an index file says that was not verified is proved by the record.
func (f *file) find(key uint64, r *reading) (entry, error) {
	e, err := f.getRow(key, &r.addr, false)
	if err != nil || e == 0 {
		return 0, err
	}
	err = f.follow(e, r)
	if err == nil || errors.Is(err, errDropped) {
		return e, err
	}
	again, strictErr := f.get(key, &r.addr)
	if strictErr != nil || again == 0 {
		return 0, strictErr
	}
	if again != e {
		err = f.follow(again, r)
	}
	return again, err
}

const (
	dataSuffix  = ".blz"
	indexSuffix = ".idx"
)

func dataName(number uint32) string  { return fmt.Sprintf("%08x%s", number, dataSuffix) }
func indexName(number uint32) string { return fmt.Sprintf("%08x%s", number, indexSuffix) }

// parseDataName is the inverse of dataName; ok is false for every other name.
func parseDataName(name string) (number uint32, ok bool) { return parseName(name, dataSuffix) }

func parseName(name, suffix string) (number uint32, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil && n > 0 && fmt.Sprintf("%08x%s", n, suffix) == name
}

// flawed reports whether compaction met damage in the file, and nothing in it was replaced since: to try again would
// be in vain.
func (f *file) flawed() bool { return f.flawedAt.Load() == f.dead.Load()+1 }

// listing is how a manifest lists the file.
func (f *file) listing() listed {
	return listed{
		number:     f.number,
		records:    uint32(f.records.Load()),
		objects:    uint32(f.objects.Load()),
		tombstones: uint32(f.tombstones.Load()),
		end:        f.end.Load(),
		live:       f.live.Load(),
		dead:       f.dead.Load(),
	}
}

// setCounts is the inverse of listing.
func (f *file) setCounts(e listed) {
	f.records.Store(int64(e.records))
	f.objects.Store(int64(e.objects))
	f.tombstones.Store(int64(e.tombstones))
	f.live.Store(e.live)
	f.dead.Store(e.dead)
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// rows returns a row for each address in the file, in the order of an index.
func (f *file) rows() ([]row, error) {
	x := f.index.Load()
	if x.recent != nil {
		return x.recent.sorted(), nil
	}
	all, err := x.table.allRows(&f.idx)
	if err == nil || errors.Is(err, errDropped) {
		return all, err
	}
	if err := f.heal(x, err); err != nil {
		return nil, err
	}
	return f.rows()
}
