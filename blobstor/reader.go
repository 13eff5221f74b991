package blobstor

import (
	"context"
	"io"
	"sync/atomic"
)

// source is what a reader is made of: positioned, verified reads.
type source interface {
	io.ReaderAt
	io.Closer
}

// reader makes a [Reader] of a source and a size. Whoever reads in small pieces puts a bufio.Reader before it:
// every call verifies the blocks it touches.
type reader struct {
	*io.SectionReader
	src    source
	closed atomic.Bool
}

func newReader(src source, size int64) *reader {
	r := &reader{src: src}
	r.SectionReader = io.NewSectionReader(open{r}, 0, size)
	return r
}

// open lets the section reach the source until the reader is closed.
type open struct{ r *reader }

func (o open) ReadAt(p []byte, off int64) (int, error) {
	if o.r.closed.Load() {
		return 0, Wrap("read", Address{}, "", ErrClosed)
	}
	return o.r.src.ReadAt(p, off)
}

// copyBuffer is a multiple of the storages' 64 KiB checksum blocks, so no block is verified twice.
const copyBuffer = 256 << 10 // 256 KiB

// WriteTo writes the rest of the blob, from the position on, in verified pieces.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	pos, _ := r.Seek(0, io.SeekCurrent)
	buf := make([]byte, max(1, min(copyBuffer, r.Size()-pos)))
	// The two wrappers hide ReadFrom and WriteTo, which would lead back here or past the buffer.
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r.SectionReader}, buf)
}

func (r *reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	return r.src.Close()
}

// rangeSource reads a blob through [ReadRange].
type rangeSource struct {
	ctx  context.Context // governs the stream until its end, by contract
	s    Storage
	addr Address
	at   Location
}

func (r *rangeSource) ReadAt(p []byte, off int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, Wrap("read", r.addr, r.at, err)
	}
	n, _, err := ReadRange(r.ctx, r.s, r.addr, r.at, p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (r *rangeSource) Close() error { return nil }
