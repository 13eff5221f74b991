package fstree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// writer is a blob that is being written, into a file without a name. It is not safe for concurrent use.
type writer struct {
	t    *Tree
	ctx  context.Context
	body *body // nil once it is committed or discarded
	want int64 // the size announced, -1 if it is unknown
	size int64 // bytes written so far
	buf  *[bufferSize]byte
	held int   // bytes in buf, not yet in the file
	err  error // the first failure; nothing can be written or committed any more
}

// errDone is what a stream returns after Commit or Close.
var errDone = fmt.Errorf("the stream has ended: %w", blobstor.ErrClosed)

// misuse is an error of the caller; it says nothing against the store.
type misuse string

func (m misuse) Error() string { return string(m) }
func (misuse) Fault() bool     { return false }

// NewWriter starts a blob of size bytes, or of unknown size if it is -1. It needs bounded memory, but for 4 bytes
// for each 64 KiB written.
func (t *Tree) NewWriter(ctx context.Context, size int64) (blobstor.Writer, error) {
	w, err := t.newWriter(ctx, size)
	if err != nil {
		return nil, t.reportPlain("open writer", err)
	}
	return w, nil
}

func (t *Tree) newWriter(ctx context.Context, size int64) (*writer, error) {
	if err := t.enterWrite(ctx); err != nil {
		return nil, err
	}
	defer t.leaveWrite()
	if size < -1 {
		return nil, misuse(fmt.Sprintf("size %d", size))
	}
	if size > t.opts.limit() {
		return nil, blobstor.ErrTooLarge
	}
	temp, err := t.temp(t.store.Dir)
	if err != nil {
		return nil, err
	}
	b := new(body)
	if err := b.begin(temp, size, t.opts.NoSync); err != nil {
		return nil, errors.Join(err, temp.Discard())
	}
	w := &writer{t: t, ctx: ctx, body: b, want: size, buf: buffers.Get().(*[bufferSize]byte)}
	t.mu.Lock()
	t.writers[w] = struct{}{}
	t.mu.Unlock()
	return w, nil
}

// Write appends to the blob. It returns blobstor.ErrTooLarge above the storage's limit, and an error above the
// size that was announced.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.write(p)
	if err != nil {
		return n, w.t.reportPlain("write", err)
	}
	return n, nil
}

func (w *writer) write(p []byte) (n int, err error) {
	if err := w.enter(); err != nil {
		return 0, err
	}
	defer w.t.leaveWrite()
	if err := w.admit(int64(len(p))); err != nil {
		return 0, w.fail(err)
	}
	w.size += int64(len(p))
	for len(p) > 0 {
		k, err := w.take(p)
		if err != nil {
			return n, w.fail(err)
		}
		n += k
		p = p[k:]
	}
	return n, nil
}

// enter admits a call. After the Tree was closed the writer has been discarded.
func (w *writer) enter() error {
	if err := w.t.enterWrite(w.ctx); err != nil {
		return err
	}
	if w.err != nil {
		w.t.leaveWrite()
		return w.err
	}
	return nil
}

// admit checks that n more bytes are allowed.
func (w *writer) admit(n int64) error {
	if n > w.t.opts.limit()-w.size {
		return blobstor.ErrTooLarge
	}
	if w.want >= 0 && n > w.want-w.size {
		return misuse(fmt.Sprintf("more than the %d bytes that were announced", w.want))
	}
	return nil
}

// take moves some of p to the file or the buffer. Whole blocks need no copy if the buffer is empty.
func (w *writer) take(p []byte) (int, error) {
	if w.held == 0 && len(p) >= bufferSize {
		k := len(p) / blockSize * blockSize
		return k, w.body.write(p[:k])
	}
	k := copy(w.buf[w.held:], p)
	w.held += k
	if w.held < bufferSize {
		return k, nil
	}
	w.held = 0
	return k, w.body.write(w.buf[:])
}

// Commit names the blob and makes it durable, as Put does.
func (w *writer) Commit(addr blobstor.Address) (blobstor.Location, error) {
	p := w.t.place(addr)
	start := time.Now()
	synced, err := w.commit(p)
	if err != nil {
		return "", w.t.report("commit", p, err)
	}
	w.t.committed(w.size, start, synced)
	return location(p.key), nil
}

func (w *writer) commit(p place) (synced time.Duration, err error) {
	if err := w.enter(); err != nil {
		return 0, err
	}
	defer w.t.leaveWrite()
	if w.want >= 0 && w.size != w.want {
		return 0, w.fail(misuse(fmt.Sprintf("%d bytes, not the %d that were announced", w.size, w.want)))
	}
	if err := w.finish(p.addr); err != nil {
		return 0, w.fail(err)
	}
	at, err := w.t.enterHome(p, true)
	if err != nil {
		return 0, w.fail(err)
	}
	defer w.t.leaveHome(at)
	b := w.body
	w.release() // publish ends the file.
	return w.t.publish(b, at, p)
}

// finish writes what is missing of the file.
func (w *writer) finish(addr blobstor.Address) error {
	if err := w.body.write(w.buf[:w.held]); err != nil {
		return err
	}
	return w.body.finish(addr)
}

// fail discards the blob: a writer that has failed once cannot be used any more.
func (w *writer) fail(err error) error {
	_ = w.discard() // err says more than what may come of this
	w.err = err
	return err
}

// Close discards what was not committed.
func (w *writer) Close() error {
	if err := w.t.calls.enter(); err != nil {
		return nil // Close of the Tree has discarded it.
	}
	defer w.t.calls.leave()
	return w.t.reportPlain("close writer", w.discard())
}

// discard removes the file, unless it is committed.
func (w *writer) discard() error {
	if w.body == nil {
		return nil
	}
	temp := w.body.temp
	w.release()
	return temp.Discard()
}

// release ends the writer, but for its file.
func (w *writer) release() {
	w.body, w.err = nil, errDone
	buffers.Put(w.buf)
	w.buf = nil
	w.t.mu.Lock()
	delete(w.t.writers, w)
	w.t.mu.Unlock()
}
