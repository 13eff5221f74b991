package blobovnicza

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/granary-store/granary/internal/durable"
)

// file is one blobovnicza: a data file and what is known of it.
type file struct {
	number uint32
	seed   uint32
	f      *durable.File
	index  index

	end     atomic.Int64 // behind the last record; the committer moves it when records are durable
	records atomic.Int64
	tally
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

const dataSuffix = ".blz"

func dataName(number uint32) string { return fmt.Sprintf("%08x%s", number, dataSuffix) }

// parseDataName is the inverse of dataName; ok is false for every other name.
func parseDataName(name string) (number uint32, ok bool) {
	digits, isData := strings.CutSuffix(name, dataSuffix)
	if !isData || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil && n > 0 && dataName(uint32(n)) == name
}

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

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
