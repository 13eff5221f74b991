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
	req := requests.Get().(*request)
	defer release(req)
	o := &req.one[0]
	o.hdr.kind, o.hdr.address, o.hdr.length, o.data = kindPut, addr, uint32(len(data)), data
	leaf, err := t.write(ctx, req)
	t.report(req)
	if err != nil {
		return "", t.fail("put", addr, "", err)
	}
	return makeLocation(leaf, o.found.stored), nil
}

// Delete writes a tombstone. While addresses are lost to damage in the leaf, it does so also for a blob that is
// not found, because the blob may be among the lost ones.
func (t *Tree) Delete(ctx context.Context, addr blobstor.Address, at blobstor.Location) error {
	req := requests.Get().(*request)
	defer release(req)
	o := &req.one[0]
	o.hdr.kind, o.hdr.address = kindTombstone, addr
	_, err := t.write(ctx, req)
	t.report(req)
	if err != nil {
		return t.fail("delete", addr, at, err)
	}
	return nil
}

// write commits the one operation of a request, unless a look-up settles it, and returns its leaf. It is the call
// of the store: hooks are called when it is over.
func (t *Tree) write(ctx context.Context, req *request) (leaf uint16, err error) {
	o := &req.one[0]
	call, err := t.enterWrite(ctx, &o.hdr.address)
	if err != nil {
		return 0, err
	}
	defer call.RUnlock()
	if err := t.checkSize(o.data); err != nil {
		return 0, err
	}
	req.ops = req.one[:]
	o.key = t.sortKey(o.hdr.address)
	l, err := t.leaf(o.key)
	if err != nil {
		return 0, err
	}
	for {
		if done, err := l.prepare(ctx, o); done || err != nil {
			return l.id, err
		}
		if err := firstOf(l.do(ctx, req, o.hdr.size()), o.err); err != nil || !o.stale {
			return l.id, err
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

// prepare looks up what an operation would replace, and reports whether there is nothing to write.
func (l *leaf) prepare(ctx context.Context, o *op) (done bool, err error) {
	r := reading{addr: o.hdr.address, mode: modeVerify}
	if o.hdr.kind == kindTombstone {
		r.mode = modeHeader
	}
	o.found, err = l.lookup(o.key, &r)
	switch {
	case o.hdr.kind == kindTombstone && errors.Is(err, blobstor.ErrNotFound):
		return true, err
	case o.hdr.kind == kindPut && err == nil:
		return true, l.settled(ctx)
	case err != nil && o.found.newest.file == 0 && !isAnswer(err):
		return true, err // What the record would replace could not be counted as dead.
	}
	// Any other answer, damage included, means that a record is to be written.
	return false, nil
}

// isAnswer reports whether a look-up that ended with err has looked everywhere.
func isAnswer(err error) bool {
	return errors.Is(err, blobstor.ErrNotFound) || errors.Is(err, blobstor.ErrCorrupt)
}

// settled makes sure that no failed commit waits for its revocation, before a put that has nothing to write is
// acknowledged.
func (l *leaf) settled(ctx context.Context) error {
	if !l.broken.Load() {
		return nil
	}
	return l.do(ctx, new(request), 0)
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
