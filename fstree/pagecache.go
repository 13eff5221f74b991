package fstree

import (
	"math"
	"sync"

	"github.com/granary-store/granary/internal/durable"
)

const (
	hintSize  = 8 << 20   // bytes from one hint to the next: milliseconds of a fast disk
	dropLag   = 256 << 20 // what a disk may have in its queue, and so cannot be dropped yet
	hugeShare = 4         // a blob larger than memory divided by this is huge
)

// hugeSize is the largest blob in bytes whose pages stay in memory behind a stream. Those of larger ones would
// push out what is read again, and be gone before their own turn comes.
var hugeSize = sync.OnceValue(func() int64 {
	if memory := durable.Memory(); memory > 0 {
		return memory / hugeShare
	}
	return math.MaxInt64
})

// pager is a file as far as the page cache goes; [durable.File] is one.
type pager interface {
	ReadAhead(off, n int64)
	WriteBack(off, n int64)
	DropRange(off, n int64)
}

// trail is how far a stream has told the page cache what it does.
type trail struct {
	f       pager
	told    int64 // read ahead, or written back, up to here
	dropped int64 // up to here
}

// reading is called before the read at off of a payload of size bytes: the disk is always half a hint ahead. What
// one buffer holds needs no hint.
func (t *trail) reading(off, size int64) {
	if size > bufferSize && t.told < size && off+hintSize/2 >= t.told {
		t.f.ReadAhead(t.told, min(hintSize, size-t.told))
		t.told += hintSize
	}
	if size > hugeSize() {
		t.drop(off)
	}
}

// written is called when the payload ends at size: the disk writes while the stream goes on, and the sync does not
// start from zero.
func (t *trail) written(size int64) {
	if size-t.told < hintSize {
		return
	}
	t.f.WriteBack(t.told, size-t.told)
	t.told = size
	if size > hugeSize() {
		t.drop(size - dropLag)
	}
}

// synced is called when all is on disk: what could not be dropped before is so now.
func (t *trail) synced(size int64) {
	if size > hugeSize() {
		t.f.DropRange(0, 0)
	}
}

// drop forgets the pages before off.
func (t *trail) drop(off int64) {
	if off-t.dropped >= hintSize {
		t.f.DropRange(t.dropped, off-t.dropped)
		t.dropped = off
	}
}
