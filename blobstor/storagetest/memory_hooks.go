package storagetest

import (
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// MemoryHarness is the harness of [Memory] for blobs of at most limit bytes, 0 for no limit. It has all hooks.
func MemoryHarness(limit int64) Harness {
	return Harness{
		Limit:     limit,
		New:       func(testing.TB) blobstor.Storage { return NewMemory(limit) },
		Reopen:    func(_ testing.TB, s blobstor.Storage) blobstor.Storage { return s.(*Memory).Reopen() },
		PowerLoss: func(_ testing.TB, s blobstor.Storage) blobstor.Storage { return s.(*Memory).Reopen() },
		Damage: func(_ testing.TB, s blobstor.Storage, addr blobstor.Address) {
			s.(*Memory).Damage(addr)
		},
		Full:     func(_ testing.TB, s blobstor.Storage) func() { return s.(*Memory).Full() },
		FailSync: func(_ testing.TB, s blobstor.Storage) func() { return s.(*Memory).FailSync() },
		ReadOnly: func(_ testing.TB, s blobstor.Storage) blobstor.Storage { return blobstor.ReadOnly(s) },
	}
}

// Reopen closes m and returns a new storage with its content. As everything acknowledged is kept, it stands for
// a loss of power too.
func (m *Memory) Reopen() *Memory {
	m.Close()
	return &Memory{disk: m.disk}
}

// Damage flips a bit of the stored blob, so that reading it is [blobstor.ErrCorrupt], and reports whether there is
// such a blob.
func (m *Memory) Damage(addr blobstor.Address) bool {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	r := m.disk.blobs[addr]
	if r == nil {
		return false
	}
	if len(r.data) == 0 {
		r.sums[0] ^= 1
	} else {
		r.data[len(r.data)/2] ^= 1
	}
	return true
}

// Full lets no Put find room until release.
func (m *Memory) Full() (release func()) { return m.disk.set(&m.disk.full) }

// FailSync fails every write with [blobstor.ErrFailed] until heal.
func (m *Memory) FailSync() (heal func()) { return m.disk.set(&m.disk.failSync) }

func (d *disk) set(flag *bool) (reset func()) {
	put := func(v bool) {
		d.mu.Lock()
		*flag = v
		d.mu.Unlock()
	}
	put(true)
	return func() { put(false) }
}
