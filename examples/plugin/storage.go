package main

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// maxBlob is what this storage calls too large.
const maxBlob = 16 << 20 // 16 MiB

// These six methods are all that a storage needs. Streams, ranges and batches come from package blobstor.
var _ blobstor.Storage = (*journal)(nil)

// Put implements [blobstor.Storage].
func (j *journal) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, err := j.put(ctx, addr, data)
	return at, blobstor.Wrap("put", addr, at, err)
}

func (j *journal) put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	if err := j.writable(ctx); err != nil {
		return "", err
	}
	if len(data) > maxBlob {
		return "", blobstor.ErrTooLarge
	}
	if p, ok := j.blobs[addr]; ok {
		if _, err := j.read(p, nil); err == nil {
			return location(p.off), nil // an address names one content for ever
		} // a damaged copy is healed by a newer record
	}
	at := location(j.end)
	if err := j.append(header{kindPut, uint32(len(data)), addr, checksum(data)}, data); err != nil {
		return "", err
	}
	return at, nil
}

// Delete implements [blobstor.Storage].
func (j *journal) Delete(ctx context.Context, addr blobstor.Address, at blobstor.Location) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return blobstor.Wrap("delete", addr, at, j.delete(ctx, addr))
}

func (j *journal) delete(ctx context.Context, addr blobstor.Address) error {
	if err := j.writable(ctx); err != nil {
		return err
	}
	// Where addresses were lost a miss proves nothing, so the removal is recorded all the same.
	if _, ok := j.blobs[addr]; !ok && !j.lost {
		return blobstor.ErrNotFound
	}
	return j.append(header{kind: kindRemoved, addr: addr}, nil)
}

// Get implements [blobstor.Storage]. The map knows better than any hint, so locations are ignored.
func (j *journal) Get(ctx context.Context, addr blobstor.Address, at blobstor.Location, dst []byte) ([]byte, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	p, err := j.find(ctx, addr)
	if err == nil {
		dst, err = j.read(p, dst)
	}
	return dst, blobstor.Wrap("get", addr, at, err)
}

// Stat implements [blobstor.Storage].
func (j *journal) Stat(ctx context.Context, addr blobstor.Address, at blobstor.Location) (blobstor.Info, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	p, err := j.find(ctx, addr)
	if err != nil {
		return blobstor.Info{}, blobstor.Wrap("stat", addr, at, err)
	}
	return p.info(addr), nil
}

func (p place) info(addr blobstor.Address) blobstor.Info {
	size := int64(p.size)
	return blobstor.Info{Address: addr, Location: location(p.off), Size: size, Stored: headerSize + size}
}

// All implements [blobstor.Storage]. It works on a copy of the places, so no lock is held while the loop runs.
func (j *journal) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		infos, err := j.behind(ctx, offset(after))
		for _, info := range infos {
			var there bool
			if there, err = j.has(ctx, info.Address); err != nil {
				break
			}
			if there && !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(blobstor.Info{}, blobstor.Wrap("all", blobstor.Address{}, "", err))
		}
	}
}

// behind lists the blobs behind an offset, in the order of the file. An offset that cannot be one starts over.
func (j *journal) behind(ctx context.Context, off int64) ([]blobstor.Info, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if off >= j.end {
		off = -1
	}
	var infos []blobstor.Info
	for addr, p := range j.blobs {
		if p.off > off {
			infos = append(infos, p.info(addr))
		}
	}
	slices.SortFunc(infos, func(a, b blobstor.Info) int { return cmp.Compare(a.Location, b.Location) })
	return infos, j.ready(ctx)
}

func (j *journal) has(ctx context.Context, addr blobstor.Address) (bool, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	_, ok := j.blobs[addr]
	return ok, j.ready(ctx)
}

// find looks an address up. The caller holds the lock, as for the two below.
func (j *journal) find(ctx context.Context, addr blobstor.Address) (place, error) {
	if err := j.ready(ctx); err != nil {
		return place{}, err
	}
	p, ok := j.blobs[addr]
	switch {
	case ok:
		return p, nil
	case j.lost:
		return p, blobstor.ErrCorrupt // "could not look" is not "not found"
	}
	return p, blobstor.ErrNotFound
}

func (j *journal) ready(ctx context.Context) error {
	if j.closed {
		return blobstor.ErrClosed
	}
	return ctx.Err()
}

func (j *journal) writable(ctx context.Context) error {
	if err := j.ready(ctx); err != nil {
		return err
	}
	return j.failed
}

// Close implements [blobstor.Storage].
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	return j.file.Close()
}
