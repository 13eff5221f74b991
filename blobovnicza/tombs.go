package blobovnicza

import (
	"sync"
	"sync/atomic"
)

// tombs is the filter of a leaf's tombstones: a get by location needs a look-up only if it says maybe. It grows by
// further filters, each twice as large as the one before.
type tombs struct {
	mu      sync.Mutex // of those who add
	filters atomic.Pointer[[]*bloom]
}

func (t *tombs) empty() bool { return t.filters.Load() == nil }

// has reports whether the leaf may have a tombstone of the key.
func (t *tombs) has(key uint64) bool {
	filters := t.filters.Load()
	if filters == nil {
		return false
	}
	for _, b := range *filters {
		if b.has(key) {
			return true
		}
	}
	return false
}

// addLocked is called before the tombstone can be found otherwise. The caller holds mu until it can.
func (t *tombs) addLocked(key uint64) {
	var filters []*bloom
	if p := t.filters.Load(); p != nil {
		filters = *p
	}
	if n := len(filters); n > 0 && !filters[n-1].full() {
		filters[n-1].add(key)
		return
	}
	next := &bloom{}
	if n := len(filters); n > 0 {
		*next = filters[n-1].grown()
	} else {
		*next = next.grown()
	}
	next.add(key)
	filters = append(filters[:len(filters):len(filters)], next)
	t.filters.Store(&filters)
}

// resetLocked replaces the filters by one of these keys. The caller holds mu, so that none is added meanwhile.
func (t *tombs) resetLocked(keys []uint64) {
	if len(keys) == 0 {
		t.filters.Store(nil)
		return
	}
	b := bloomFor(len(keys))
	for _, key := range keys {
		b.add(key)
	}
	t.filters.Store(&[]*bloom{&b})
}
