package blobstor

import (
	"hash/maphash"
	"sync"
)

// lockStripes is a power of two, large enough that a hundred goroutines seldom meet by chance (a pair in 1,024).
const lockStripes = 1024

// Locks are striped locks by address for programs that do two steps on one address, blob and record. Two
// addresses may share a stripe: a caller that holds one only tries for others. The zero value is not usable;
// see [NewLocks].
type Locks struct {
	seed    maphash.Seed
	stripes [lockStripes]sync.Mutex
}

// NewLocks returns a set of locks, none of them held.
func NewLocks() *Locks { return &Locks{seed: maphash.MakeSeed()} }

// Lock waits for the stripe of addr and returns the function that releases it.
func (l *Locks) Lock(addr Address) (unlock func()) {
	m := l.stripe(addr)
	m.Lock()
	return m.Unlock
}

// TryLock takes the stripe of addr if it is free and reports whether it did; unlock is nil otherwise.
func (l *Locks) TryLock(addr Address) (unlock func(), ok bool) {
	m := l.stripe(addr)
	if !m.TryLock() {
		return nil, false
	}
	return m.Unlock, true
}

func (l *Locks) stripe(addr Address) *sync.Mutex {
	return &l.stripes[maphash.Comparable(l.seed, addr)%lockStripes]
}
