package blobovnicza

import (
	"sync"
	"sync/atomic"
)

// blockCache keeps blocks of index files that look-ups read repeatedly: a read of one costs as much as that of a small
// blob. It never takes more than its size, and what is read once does not drive out what is read often.
type blockCache struct {
	size int64
	make sync.Once
	sets []cacheSet // made when a block is asked for first
}

// cacheSet holds four blocks and the last one that was asked for in vain: at the second time in a row it comes in.
type cacheSet struct {
	ids    [4]atomic.Uint64
	blocks [4]atomic.Pointer[cachedBlock]
	missed atomic.Uint64
	next   atomic.Uint32 // the block to replace next
}

// cachedBlock is a verified block.
type cachedBlock struct {
	id   uint64
	rows indexBlock
}

// defaultBlockCache is small beside the filters of a large store, and holds the whole index of a small one.
const defaultBlockCache = 16 << 20

// newBlockCache returns a cache of at most that many bytes.
func newBlockCache(size int64) *blockCache {
	return &blockCache{size: size}
}

// get returns a block, nil if it is not there.
func (c *blockCache) get(id uint64) *indexBlock {
	s := c.set(id)
	for i := range s.ids {
		if s.ids[i].Load() != id {
			continue
		}
		if b := s.blocks[i].Load(); b != nil && b.id == id {
			return &b.rows
		}
	}
	return nil
}

// wants reports whether a block that was read now should be put.
func (c *blockCache) wants(id uint64) bool { return c.set(id).missed.Swap(id) == id }

// put keeps a copy of a verified block.
func (c *blockCache) put(id uint64, rows *indexBlock) {
	s := c.set(id)
	i := s.next.Add(1) % uint32(len(s.ids))
	s.blocks[i].Store(&cachedBlock{id, *rows})
	s.ids[i].Store(id)
}

func (c *blockCache) set(id uint64) *cacheSet {
	c.make.Do(func() { c.sets = make([]cacheSet, max(c.size/(4*indexBlockSize), 1)) })
	return &c.sets[mix(id)%uint64(len(c.sets))]
}
