package blobstor

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// frame is a frame that is read.
type frame struct {
	frameShape
	index frameIndex
	codec *codec
	src   io.ReaderAt
	whole []byte // if it is in memory
}

// open reads what of a frame lies around the blocks; a frame of one block it reads whole, in one call if that is not
// longer than the first bytes asked for. Until w is given back, the frame may use it.
func (c *Compressed) open(ctx context.Context, addr Address, at Location, first int, w *workspace) (f frame, err error) {
	if err := c.check(ctx); err != nil {
		return f, err
	}
	w.frame = room(w.frame, c.frameSize())
	n, stored, err := ReadRange(ctx, c.s, addr, at, w.frame[:min(first, len(w.frame))], 0)
	if err == nil && int64(n) < stored && stored <= int64(len(w.frame)) {
		var more int
		more, _, err = ReadRange(ctx, c.s, addr, at, w.frame[n:stored], int64(n))
		n += more
	}
	if err != nil {
		return f, err
	}
	if int64(n) == stored {
		f = frame{codec: c.codec, whole: w.frame[:n]}
		return f, f.parse(f.whole, stored, c.limit)
	}
	return c.openTail(&rangeSource{ctx, c.s, addr, at}, stored, &w.tail)
}

// frameSize is the most that the frame of a blob of one block takes.
func (c *Compressed) frameSize() int { return c.codec.blockSize() + frameEntry + frameFooter }

// usualTail holds the index of a blob of 32 MiB in blocks of the usual size.
const usualTail = 4 << 10

// openTail reads footer and index from the end of a frame of stored bytes. They stay in tail.
func (c *Compressed) openTail(src io.ReaderAt, stored int64, tail *[]byte) (frame, error) {
	f := frame{codec: c.codec, src: src}
	*tail = room(*tail, int(min(stored, usualTail)))
	if err := f.readFull(*tail, stored-int64(len(*tail))); err != nil {
		return f, err
	}
	if int64(len(*tail)) == stored {
		f.whole = *tail
	}
	shape, err := parseFooter((*tail)[max(0, len(*tail)-frameFooter):], stored, c.limit)
	if err != nil {
		return f, err
	}
	if n := shape.indexSize() + frameFooter; n > int64(len(*tail)) {
		*tail = room(*tail, int(n)) // the frame is longer
		if err := f.readFull(*tail, stored-n); err != nil {
			return f, err
		}
	}
	return f, f.parse(*tail, stored, c.limit)
}

// parse takes footer and index from the end of a frame.
func (f *frame) parse(tail []byte, stored, limit int64) (err error) {
	at := max(0, len(tail)-frameFooter)
	if f.frameShape, err = parseFooter(tail[at:], stored, limit); err != nil {
		return err
	}
	if f.indexSize() > int64(at) {
		return corruptFrame("it changes while it is read")
	}
	f.index = tail[int64(at)-f.indexSize() : at]
	return f.index.check(&f.frameShape)
}

// readFull fills p from the frame, which is longer than that.
func (f *frame) readFull(p []byte, off int64) error {
	if n, err := f.src.ReadAt(p, off); n < len(p) {
		if errors.Is(err, io.EOF) {
			return corruptFrame("it ends at %d", off+int64(n))
		}
		return err
	}
	return nil
}

// read fills p with the blob's bytes from off on, which all are in it.
func (f *frame) read(p []byte, off int64, w *workspace) error {
	for len(p) > 0 {
		n, err := f.readSome(p, off, w)
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// readSome reads part of a block, or whole blocks into their place. It returns the number of bytes.
func (f *frame) readSome(p []byte, off int64, w *workspace) (n int, err error) {
	i := off >> f.blockLog
	from := int(off - i<<f.blockLog)
	if w.no == i {
		return copy(p, w.block[from:]), nil
	}
	if from > 0 || len(p) < f.rawLen(i) {
		stored, err := f.stored(i, i+1, w)
		if err != nil {
			return 0, err
		}
		w.no, w.block = -1, room(w.block, f.rawLen(i))
		if err := f.codec.restore(w.block, stored, i, f.index); err != nil {
			return 0, err
		}
		w.no = i
		return copy(p, w.block[from:]), nil
	}
	return f.readWhole(p, i, w)
}

// aheadSize is how many bytes as stored are read in one call.
const aheadSize = 1 << 20 // 1 MiB

// readWhole fills p with whole blocks from the i-th on, as many as fit and are read in one call.
func (f *frame) readWhole(p []byte, i int64, w *workspace) (n int, err error) {
	to := i
	for ; to < f.blocks(); to++ {
		if n+f.rawLen(to) > len(p) || to > i && f.index.end(to)-f.index.end(i-1) > aheadSize {
			break
		}
		n += f.rawLen(to)
	}
	if f.inPlace() {
		return n, f.readRaw(p[:n], i)
	}
	stored, err := f.stored(i, to, w)
	if err != nil {
		return 0, err
	}
	for ; i < to; i++ {
		raw, length := f.rawLen(i), f.index.end(i)-f.index.end(i-1)
		if err := f.codec.restore(p[:raw], stored[:length], i, f.index); err != nil {
			return 0, err
		}
		p, stored = p[raw:], stored[length:]
	}
	return n, nil
}

// inPlace reports whether blocks can be read to where they belong.
func (f *frame) inPlace() bool { return f.frameShape.codec == frameRaw && f.whole == nil }

// readRaw fills p with whole blocks that are stored as they are.
func (f *frame) readRaw(p []byte, i int64) error {
	if err := f.readFull(p, i<<f.blockLog); err != nil {
		return err
	}
	for ; len(p) > 0; i++ {
		n := f.rawLen(i)
		if checksum(p[:n]) != f.index.rawCRC(i) {
			return corruptFrame("damaged block %d", i)
		}
		p = p[n:]
	}
	return nil
}

// stored returns the blocks from i up to to as they are stored.
func (f *frame) stored(i, to int64, w *workspace) ([]byte, error) {
	from, end := f.index.end(i-1), f.index.end(to-1)
	if f.whole != nil {
		return f.whole[from:end], nil
	}
	w.stored = room(w.stored, int(end-from))
	return w.stored, f.readFull(w.stored, from)
}

// NewReader opens a blob. It reads the frame's footer and index, and keeps them and the last block.
func (c *Compressed) NewReader(ctx context.Context, addr Address, at Location) (Reader, error) {
	if err := c.check(ctx); err != nil {
		return nil, Wrap("new reader", addr, at, err)
	}
	rd, err := c.s.NewReader(ctx, addr, at)
	if err != nil {
		return nil, err
	}
	var tail []byte
	f, err := c.openTail(rd, rd.Size(), &tail)
	if err != nil {
		return nil, errors.Join(c.report("new reader", addr, at, err), rd.Close())
	}
	return newReader(&frameSource{c: c, f: f, ctx: ctx, addr: addr, at: at, rd: rd}, f.size), nil
}

// frameSource reads an open frame.
type frameSource struct {
	c    *Compressed
	f    frame
	ctx  context.Context // the stream's
	addr Address
	at   Location
	rd   Reader
	last atomic.Pointer[workspace] // with the last block; nil while a call uses it
}

func (s *frameSource) ReadAt(p []byte, off int64) (int, error) {
	if err := s.c.check(s.ctx); err != nil {
		return 0, Wrap("read", s.addr, s.at, err)
	}
	if off >= s.f.size {
		return 0, io.EOF
	}
	w := s.last.Swap(nil)
	if w == nil {
		w = s.c.codec.takeSpace()
	}
	defer func() {
		if !s.last.CompareAndSwap(nil, w) {
			s.c.codec.giveSpace(w)
		}
	}()
	n := int(min(int64(len(p)), s.f.size-off))
	if err := s.f.read(p[:n], off, w); err != nil {
		return 0, s.c.report("read", s.addr, s.at, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *frameSource) Close() error {
	if w := s.last.Swap(nil); w != nil {
		s.c.codec.giveSpace(w)
	}
	return s.rd.Close()
}
