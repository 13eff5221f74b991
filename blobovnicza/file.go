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
	dead    atomic.Int64 // bytes of replaced records and voids
	records uint32       // the committer's own
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
	return listed{number: f.number, records: f.records, end: f.end.Load(), dead: f.dead.Load()}
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
