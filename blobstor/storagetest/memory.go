package storagetest

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
	"sync"
	"syscall"

	"github.com/granary-store/granary/blobstor"
)

// Memory is the reference storage: every law in the fewest lines, on a map. It is a [blobstor.BlobStor], a
// [blobstor.RangeReader] and a [blobstor.Batcher]. Its content outlives Close and is found again by Reopen, as if it
// were a disk.
type Memory struct {
	disk *disk

	mu     sync.RWMutex // guards closed, and the disk against a call that is still inside at Close
	closed bool
}

var (
	_ blobstor.BlobStor    = (*Memory)(nil)
	_ blobstor.RangeReader = (*Memory)(nil)
	_ blobstor.Batcher     = (*Memory)(nil)
)

// disk is what several Memory values, one after the other, find again.
type disk struct {
	limit int64

	mu       sync.Mutex
	blobs    map[blobstor.Address]*record
	order    []*record // by seq
	seq      uint64    // last one given out
	full     bool
	failSync bool
}

type record struct {
	addr blobstor.Address
	seq  uint64
	data []byte
	sums []uint32 // of each blockSize bytes of data, so that a range need not verify all of it
}

const blockSize = 64 << 10

// set takes data over.
func (r *record) set(data []byte) {
	r.data, r.sums = data, nil
	for block := range slices.Chunk(r.data, blockSize) {
		r.sums = append(r.sums, crc32.ChecksumIEEE(block))
	}
	if len(data) == 0 {
		r.sums = []uint32{0} // an empty blob can be damaged too
	}
}

func (r *record) location() blobstor.Location {
	return blobstor.Location(binary.BigEndian.AppendUint64(nil, r.seq))
}

func (r *record) intact() bool { return r.intactIn(0, len(r.data)) }

// intactIn verifies the blocks that the bytes from one offset to another touch.
func (r *record) intactIn(from, to int) bool {
	for i := from / blockSize; i < len(r.sums) && i*blockSize <= to; i++ {
		block := r.data[i*blockSize : min(len(r.data), (i+1)*blockSize)]
		if crc32.ChecksumIEEE(block) != r.sums[i] {
			return false
		}
	}
	return true
}

func (r *record) info() blobstor.Info {
	n := int64(len(r.data))
	return blobstor.Info{Address: r.addr, Location: r.location(), Size: n, Stored: n}
}

// NewMemory returns an empty storage for blobs of at most limit bytes; 0 is no limit.
func NewMemory(limit int64) *Memory {
	return &Memory{disk: &disk{limit: limit, blobs: map[blobstor.Address]*record{}}}
}

// do runs fn on the disk unless the storage is closed or ctx is done, and wraps its error.
func (m *Memory) do(ctx context.Context, op string, addr blobstor.Address, fn func(*disk) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return blobstor.Wrap(op, addr, "", blobstor.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return blobstor.Wrap(op, addr, "", err)
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return blobstor.Wrap(op, addr, "", fn(m.disk))
}

// Put stores a copy of data.
func (m *Memory) Put(ctx context.Context, addr blobstor.Address, data []byte) (at blobstor.Location, err error) {
	err = m.do(ctx, "put", addr, func(d *disk) error {
		at, err = d.put(addr, data)
		return err
	})
	return at, err
}

// put stores a copy of data.
func (d *disk) put(addr blobstor.Address, data []byte) (blobstor.Location, error) {
	return d.store(addr, slices.Clone(data))
}

// store takes data over.
func (d *disk) store(addr blobstor.Address, data []byte) (blobstor.Location, error) {
	r := d.blobs[addr]
	if r != nil && r.intact() {
		return r.location(), nil
	}
	if d.limit > 0 && int64(len(data)) > d.limit {
		return "", blobstor.ErrTooLarge
	}
	if err := d.writable(); err != nil {
		return "", err
	}
	if r == nil {
		d.seq++
		r = &record{addr: addr, seq: d.seq}
		d.blobs[addr] = r
		d.order = append(d.order, r)
	}
	// A damaged copy is healed in its place, so that a run of All meets it once.
	r.set(data)
	return r.location(), nil
}

func (d *disk) writable() error {
	switch {
	case d.full:
		return syscall.ENOSPC
	case d.failSync:
		return blobstor.Failed(syscall.EIO)
	}
	return nil
}

// Get appends a copy of the blob to dst.
func (m *Memory) Get(ctx context.Context, addr blobstor.Address, _ blobstor.Location, dst []byte) ([]byte, error) {
	err := m.do(ctx, "get", addr, func(d *disk) error {
		r, err := d.read(addr)
		if err != nil {
			return err
		}
		if dst == nil {
			dst = make([]byte, 0, len(r.data))
		}
		dst = append(dst, r.data...)
		return nil
	})
	return dst, err
}

func (d *disk) read(addr blobstor.Address) (*record, error) {
	r, err := d.find(addr)
	if err == nil && !r.intact() {
		err = blobstor.ErrCorrupt
	}
	return r, err
}

func (d *disk) find(addr blobstor.Address) (*record, error) {
	r := d.blobs[addr]
	if r == nil {
		return nil, blobstor.ErrNotFound
	}
	return r, nil
}

// ReadRange copies from the blob; see [blobstor.RangeReader].
func (m *Memory) ReadRange(ctx context.Context, addr blobstor.Address, _ blobstor.Location, p []byte, off int64) (n int, size int64, err error) {
	err = m.do(ctx, "read range", addr, func(d *disk) error {
		r, err := d.find(addr)
		if err != nil {
			return err
		}
		size = int64(len(r.data))
		if off < 0 || off > size {
			return blobstor.ErrOutOfRange
		}
		end := off + min(int64(len(p)), size-off)
		if !r.intactIn(int(off), int(end)) {
			return blobstor.ErrCorrupt
		}
		n = copy(p, r.data[off:end])
		return nil
	})
	return n, size, err
}

// Stat describes the blob, damaged or not.
func (m *Memory) Stat(ctx context.Context, addr blobstor.Address, _ blobstor.Location) (info blobstor.Info, err error) {
	err = m.do(ctx, "stat", addr, func(d *disk) error {
		r, err := d.find(addr)
		if err == nil {
			info = r.info()
		}
		return err
	})
	return info, err
}

// Delete removes the blob.
func (m *Memory) Delete(ctx context.Context, addr blobstor.Address, _ blobstor.Location) error {
	return m.do(ctx, "delete", addr, func(d *disk) error { return d.remove(addr) })
}

func (d *disk) remove(addr blobstor.Address) error {
	r, err := d.find(addr)
	if err != nil {
		return err
	}
	if d.failSync {
		return blobstor.Failed(syscall.EIO)
	}
	delete(d.blobs, addr)
	d.order = slices.DeleteFunc(d.order, func(o *record) bool { return o == r })
	return nil
}

// PutBatch puts one by one: without a disk there is nothing to share.
func (m *Memory) PutBatch(ctx context.Context, items []blobstor.Item) error {
	return m.batch(ctx, "put", items, func(d *disk, it *blobstor.Item) (err error) {
		it.Location, err = d.put(it.Address, it.Data)
		return err
	})
}

// DeleteBatch deletes one by one.
func (m *Memory) DeleteBatch(ctx context.Context, items []blobstor.Item) error {
	return m.batch(ctx, "delete", items, func(d *disk, it *blobstor.Item) error { return d.remove(it.Address) })
}

func (m *Memory) batch(ctx context.Context, op string, items []blobstor.Item, fn func(*disk, *blobstor.Item) error) error {
	first := m.do(ctx, op, blobstor.Address{}, func(*disk) error { return nil }) // an empty batch is refused too
	for i := range items {
		it := &items[i]
		it.Err = m.do(ctx, op, it.Address, func(d *disk) error { return fn(d, it) })
		if first == nil {
			first = it.Err
		}
	}
	return first
}

// All yields in the order of the first Put. Between two steps it holds nothing but a number.
func (m *Memory) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		var seq uint64
		if len(after) == 8 {
			seq = binary.BigEndian.Uint64([]byte(after))
		}
		for {
			var info blobstor.Info
			found := false
			err := m.do(ctx, "all", blobstor.Address{}, func(d *disk) error {
				if seq > d.seq {
					seq = 0 // never given out: an unusable location starts over
				}
				i, _ := slices.BinarySearchFunc(d.order, seq+1, func(r *record, seq uint64) int { return cmp.Compare(r.seq, seq) })
				if found = i < len(d.order); found {
					info, seq = d.order[i].info(), d.order[i].seq
				}
				return nil
			})
			if err != nil {
				yield(blobstor.Info{}, err)
				return
			}
			if !found || !yield(info, nil) {
				return
			}
		}
	}
}

// Close waits for the calls inside.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
