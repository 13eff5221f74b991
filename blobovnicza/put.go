package blobovnicza

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/groupcommit"
)

var requests = sync.Pool{New: func() any { return new(request) }}

// Put stores data as one record of the active file of the address's leaf, with one sync that all waiting callers
// share. A stored copy is read once: if it verifies, Put is done, for what can be found is durable; if it does
// not, the new record replaces it.
func (t *Tree) Put(ctx context.Context, addr blobstor.Address, data []byte) (blobstor.Location, error) {
	call, err := t.enterWrite(ctx, &addr)
	if err != nil {
		return "", blobstor.Wrap("put", addr, "", err)
	}
	defer call.RUnlock()
	if err := t.checkSize(data); err != nil {
		return "", blobstor.Wrap("put", addr, "", err)
	}
	req := requests.Get().(*request)
	defer release(req)
	req.ops = req.one[:]
	o := &req.one[0]
	o.hdr.kind, o.hdr.address, o.hdr.length, o.data = kindPut, addr, uint32(len(data)), data
	o.key = t.sortKey(addr)
	l := t.leaf(o.key)
	for {
		if l.preparePut(o) {
			if err := l.settled(ctx); err != nil {
				return "", t.fail("put", addr, "", err)
			}
			return makeLocation(l.id, o.found.stored), nil
		}
		if err := firstOf(l.do(ctx, req, o.hdr.size()), o.err); err != nil {
			return "", t.fail("put", addr, "", err)
		}
		if !o.stale {
			return makeLocation(l.id, o.found.stored), nil
		}
	}
}

// Delete writes a tombstone. While addresses are lost to damage in the leaf, it does so also for a blob that is
// not found, because the blob may be among the lost ones.
func (t *Tree) Delete(ctx context.Context, addr blobstor.Address, at blobstor.Location) error {
	call, err := t.enterWrite(ctx, &addr)
	if err != nil {
		return blobstor.Wrap("delete", addr, at, err)
	}
	defer call.RUnlock()
	req := requests.Get().(*request)
	defer release(req)
	req.ops = req.one[:]
	o := &req.one[0]
	o.hdr.kind, o.hdr.address = kindTombstone, addr
	o.key = t.sortKey(addr)
	l := t.leaf(o.key)
	for {
		err := l.prepareDelete(o)
		if err == nil {
			err = firstOf(l.do(ctx, req, o.hdr.size()), o.err)
		}
		if err != nil {
			return t.fail("delete", addr, at, err)
		}
		if !o.stale {
			return nil
		}
	}
}

// release gives a request back without what it holds of its caller.
func release(req *request) {
	*req = request{}
	requests.Put(req)
}

// enterWrite begins a call that writes.
func (t *Tree) enterWrite(ctx context.Context, addr *blobstor.Address) (*stripe, error) {
	call, err := t.calls.enter(ctx, addr)
	if err != nil {
		return nil, err
	}
	if t.readOnly.Load() {
		call.RUnlock()
		return nil, blobstor.ErrReadOnly
	}
	return call, nil
}

func (t *Tree) checkSize(data []byte) error {
	if int64(len(data)) > t.opts.MaxBlob {
		return fmt.Errorf("%w: %d bytes, at most %d", blobstor.ErrTooLarge, len(data), t.opts.MaxBlob)
	}
	return nil
}

// preparePut looks for a stored copy and reports whether a verified one was found. Any other answer, damage and
// failing reads included, means that a record is to be written.
func (l *leaf) preparePut(o *op) (done bool) {
	r := reading{addr: o.hdr.address, mode: modeVerify}
	var err error
	o.found, err = l.lookup(o.key, &r)
	return err == nil
}

// settled makes sure that no failed commit waits for its revocation, before a put that has nothing to write is
// acknowledged.
func (l *leaf) settled(ctx context.Context) error {
	if !l.broken.Load() {
		return nil
	}
	return l.do(ctx, new(request), 0)
}

// prepareDelete looks for what a tombstone would bury. It returns ErrNotFound if there certainly is nothing.
func (l *leaf) prepareDelete(o *op) (err error) {
	r := reading{addr: o.hdr.address, mode: modeHeader}
	o.found, err = l.lookup(o.key, &r)
	if errors.Is(err, blobstor.ErrNotFound) {
		return err
	}
	return nil
}

// do commits a request. Nil means that each of its operations is done, or stale, or has an error of its own.
func (l *leaf) do(ctx context.Context, req *request, size int64) error {
	if l.tree.opts.Hooks.Commit != nil {
		req.queued = time.Now()
	}
	err := l.commits.Do(ctx, req, size)
	if errors.Is(err, groupcommit.ErrClosed) {
		return blobstor.ErrClosed
	}
	return err
}
