package blobovnicza

import "testing"

// A block comes in when it is asked for twice in a row in its set, and the cache never has more than its size.
func TestBlockCache(t *testing.T) {
	const size = 64 * indexBlockSize
	c := newBlockCache(size)
	block := func(id uint64) *indexBlock { return &indexBlock{byte(id), byte(id >> 8)} }
	for id := uint64(1); id <= 1000; id++ {
		if c.get(id) != nil || c.wants(id) {
			t.Fatalf("block %d was never read", id)
		}
		if !c.wants(id) {
			t.Fatalf("block %d was read twice and is not wanted", id)
		}
		c.put(id, block(id))
		if got := c.get(id); got == nil || *got != *block(id) {
			t.Fatalf("block %d is not there", id)
		}
	}
	kept := 0
	for id := uint64(1); id <= 1000; id++ {
		if got := c.get(id); got != nil {
			kept++
			if *got != *block(id) {
				t.Errorf("block %d is another's", id)
			}
		}
	}
	if kept == 0 || kept > size/indexBlockSize {
		t.Errorf("%d blocks are kept, want at most %d", kept, size/indexBlockSize)
	}
	once := newBlockCache(1) // one set: what alternates with another is never read twice in a row
	for range 10 {
		if once.wants(1) || once.wants(2) {
			t.Fatal("a block that was read once is wanted")
		}
	}
}

// Look-ups without location use what is cached: the index file is read no more.
func TestIndexCacheSavesReads(t *testing.T) {
	dir := t.TempDir()
	all := fileStore(t, dir)
	reads := &readCounter{}
	s, err := open(dir, &Options{Compact: CompactOptions{Off: true}}, reads)
	check(t, err)
	defer s.Close()
	get := func() int64 {
		reads.n.Store(0)
		_, err := s.Get(ctx, addrOf(0), "", nil)
		check(t, err)
		return reads.n.Load()
	}
	if all[0].deleted {
		t.Fatal("blob 0 is deleted")
	}
	if first, second, third := get(), get(), get(); first != 2 || second != 2 || third != 1 {
		t.Errorf("%d, %d and %d reads, want a block and the record, twice, and the record", first, second, third)
	}
}
