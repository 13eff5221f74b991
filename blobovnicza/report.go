package blobovnicza

import (
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Report is what [Tree.Check] found, or [Tree.Repair] before it put things right.
type Report struct {
	Files []FileReport  // in the order of leaves and numbers
	Leaf  map[int]error // leaves that could not be looked at, and why
	Total Counts        // counted, over all files
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool {
	for i := range r.Files {
		if !r.Files[i].OK() {
			return false
		}
	}
	return len(r.Leaf) == 0
}

// Counts are what is in a file, in records or in bytes of records.
type Counts struct {
	Records    int64 // of every kind
	Objects    int64 // blobs: the newest records of their addresses
	Tombstones int64 // likewise
	Live       int64 // bytes of Objects
	Dead       int64 // bytes of records that newer ones replaced, and of what was given up
}

func (c *Counts) add(d Counts) {
	c.Records += d.Records
	c.Objects += d.Objects
	c.Tombstones += d.Tombstones
	c.Live += d.Live
	c.Dead += d.Dead
}

// FileReport is what is known of one file.
type FileReport struct {
	Leaf   int
	Number uint32
	Size   int64 // bytes that it should have, as far as its records go; -1 if nobody knows

	Counted  Counts // what is there
	Counters Counts // what the store believed to be there at the same moment
	// Uncertain says that addresses are lost in the leaf: what is counted may then differ from the counters, and
	// neither is wrong.
	Uncertain bool

	Missing bool // the data file is not there
	Short   bool // it ends before Size
	Foreign bool // it has no record that was written for it: another file bears its name

	Damage []Damage // in the order of offsets
	Index  []string // what is wrong with its index, the first few
	Err    error    // why it could not be read to its end; nothing else but the flags holds then
}

// OK reports whether nothing is wrong with the file.
func (f *FileReport) OK() bool {
	gone := f.Missing || f.Short || f.Foreign
	return !gone && len(f.Damage) == 0 && len(f.Index) == 0 && f.Err == nil && (f.Uncertain || f.Counted == f.Counters)
}

// Damage is a range of a file that is not what was written there.
type Damage struct {
	Offset, Length int64
	// Address is the one whose record lies there, if Known: the header is whole, or the index knows.
	Address blobstor.Address
	Known   bool
	// Current says that this is the newest record of the address: the blob, or its removal, is hurt. Else a newer
	// one counts.
	Current   bool
	Tombstone bool
	// Rescued says that Repair found another copy of the blob and stored that.
	Rescued bool

	key    uint64
	length uint32 // of the payload
}

func (d *Damage) row() row {
	k := kindPut
	if d.Tombstone {
		k = kindTombstone
	}
	return row{d.key, d.Address, makeEntry(k, d.Offset, d.length)}
}

// complaints are what is wrong with an index, the first few of them in words.
type complaints struct {
	n    int
	said []string
}

const maxComplaints = 10

func (c *complaints) add(format string, args ...any) {
	if c.n++; c.n <= maxComplaints {
		c.said = append(c.said, fmt.Sprintf(format, args...))
	}
}

// list returns the words, and how much they leave out.
func (c *complaints) list() []string {
	if more := c.n - len(c.said); more > 0 {
		return append(c.said, fmt.Sprintf("and %d more", more))
	}
	return c.said
}
