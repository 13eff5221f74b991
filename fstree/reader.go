package fstree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// bufferSize is a multiple of the block size; larger buffers gain nothing measurable.
const bufferSize = 256 << 10

// buffers are for calls that read a blob through.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// reader is an open blob. ReadAt is safe for concurrent use; Read, Seek and WriteTo share the position.
type reader struct {
	t   *Tree
	ctx context.Context
	b   *blob
	end atomic.Bool // closed
	pos int64

	block    int64 // the block in buf
	buf      []byte
	bufReady bool
}

// NewReader opens a blob. It verifies each block of 64 KiB before it returns any byte of it.
func (t *Tree) NewReader(ctx context.Context, addr blobstor.Address, _ blobstor.Location) (blobstor.Reader, error) {
	p := t.place(addr)
	r, err := t.newReader(ctx, p)
	if err != nil {
		return nil, t.report("open reader", p, err)
	}
	return r, nil
}

func (t *Tree) newReader(ctx context.Context, p place) (*reader, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.calls.leave()
	b, err := t.openBlob(p)
	if err != nil {
		return nil, err
	}
	return &reader{t: t, ctx: ctx, b: b}, nil
}

// Size returns the length of the blob in bytes.
func (r *reader) Size() int64 { return r.b.size }

// ReadAt is as in [io.ReaderAt].
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, r.report(fmt.Errorf("%w: offset %d", blobstor.ErrOutOfRange, off))
	}
	n, err := r.readAt(p, off)
	if err != nil {
		return n, r.report(err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readAt reads as far as the blob goes.
func (r *reader) readAt(p []byte, off int64) (int, error) {
	if err := r.t.enter(r.ctx); err != nil {
		return 0, err
	}
	defer r.t.calls.leave()
	if r.end.Load() {
		return 0, errDone
	}
	n, err := r.b.read(p[:min(int64(len(p)), max(0, r.b.size-off))], off)
	if errors.Is(err, fs.ErrClosed) {
		return n, errDone // Close came in between.
	}
	return n, err
}

// Read is as in [io.Reader]. Small reads are served from a buffered block.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var n int
	var err error
	if r.pos%blockSize == 0 && len(p) >= blockSize {
		n, err = r.readAt(p, r.pos)
	} else {
		n, err = r.readBuffered(p)
	}
	r.pos += int64(n)
	switch {
	case n > 0:
		return n, nil // An error will come again.
	case err != nil:
		return 0, r.report(err)
	}
	return 0, io.EOF
}

func (r *reader) readBuffered(p []byte) (int, error) {
	if r.pos >= r.b.size {
		return r.readAt(nil, r.pos) // It still may be closed.
	}
	block := r.pos / blockSize
	start := block * blockSize
	if !r.bufReady || r.block != block {
		if r.buf == nil {
			r.buf = make([]byte, min(blockSize, r.b.size))
		}
		r.bufReady = false
		r.buf = r.buf[:min(int64(cap(r.buf)), r.b.size-start)]
		if _, err := r.readAt(r.buf, start); err != nil {
			return 0, err
		}
		r.block, r.bufReady = block, true
	} else if _, err := r.readAt(nil, r.pos); err != nil {
		return 0, err
	}
	return copy(p, r.buf[r.pos-start:]), nil
}

// Seek is as in [io.Seeker].
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if _, err := r.readAt(nil, 0); err != nil {
		return 0, r.report(err)
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.b.size
	default:
		return 0, r.report(misuse(fmt.Sprintf("seek from %d", whence)))
	}
	if offset < 0 {
		return 0, r.report(fmt.Errorf("%w: seek to %d", blobstor.ErrOutOfRange, offset))
	}
	r.pos = offset
	return offset, nil
}

// WriteTo writes the rest of the blob to w, from verified buffers. The disk reads ahead of it.
func (r *reader) WriteTo(w io.Writer) (written int64, err error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	trail := r.b.trail(r.pos)
	for {
		trail.reading(r.pos, r.b.size)
		// The first buffer ends where a block does, so that no block is read twice.
		n, err := r.readAt(buf[:bufferSize-r.pos%blockSize], r.pos)
		if n > 0 {
			k, err := w.Write(buf[:n])
			r.pos += int64(k)
			written += int64(k)
			if err == nil && k < n {
				err = io.ErrShortWrite
			}
			if err != nil {
				return written, err
			}
		}
		if err != nil {
			return written, r.report(err)
		}
		if n == 0 {
			return written, nil
		}
	}
}

// Close releases the file once the reads that run have ended.
func (r *reader) Close() error {
	if !r.end.Swap(true) {
		r.b.f.Close() // It was only read from.
	}
	return nil
}

func (r *reader) report(err error) error { return r.t.report("read", r.b.p, err) }
