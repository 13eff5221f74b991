package blobovnicza

import "math"

const (
	capacityShare = 16       // a file is at most this part of what the disk has
	minLimit      = 64 << 10 // but need not be smaller than that
)

// fileLimit is the size at which a file is full: a 64th of what its leaf has or may have, so that compaction moves
// small parts of it, within bounds that keep both the number of files and the time to replay one small. On a small disk
// it is less, for compaction needs room for a file when all else is full.
func (t *Tree) fileLimit() int64 {
	return min(t.wantedLimit(), max(t.capacity()/capacityShare, minLimit))
}

// capacity is what the store takes at most, as things are.
func (t *Tree) capacity() int64 {
	if t.opts.MaxSize > 0 {
		return t.opts.MaxSize
	}
	free, err := t.store.Dir.Free()
	if err != nil {
		return math.MaxInt64
	}
	return t.used.Load() + free
}

func (t *Tree) wantedLimit() int64 {
	if size := t.opts.FileSize; size > 0 {
		return size
	}
	share := max(t.used.Load(), t.opts.MaxSize) / int64(len(t.leaves)) / 64
	if t.opts.MaxSize > 0 {
		return min(max(share, DefaultMaxBlob), maxFileSize)
	}
	return min(max(share, minFileSize), maxFileSize)
}
