package fstree

import (
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// nameLocks let one writer at a time change what an address leads to. A lock is held from the change of the name
// to the end of the directory's sync: were it released before, a failed sync would take back a name that another
// caller has been told is durable.
type nameLocks struct {
	mu   sync.Mutex
	free sync.Cond // some address is free again
	busy map[blobstor.Address]struct{}
}

func newNameLocks() *nameLocks {
	l := &nameLocks{busy: map[blobstor.Address]struct{}{}}
	l.free.L = &l.mu
	return l
}

func (l *nameLocks) lock(addr blobstor.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.has(addr) {
		l.free.Wait()
	}
	l.busy[addr] = struct{}{}
}

func (l *nameLocks) has(addr blobstor.Address) bool {
	_, ok := l.busy[addr]
	return ok
}

func (l *nameLocks) unlock(addr blobstor.Address) {
	l.mu.Lock()
	delete(l.busy, addr)
	l.mu.Unlock()
	l.free.Broadcast()
}
