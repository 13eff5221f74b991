package blobstor

import "context"

// appendFrame appends the frame of a blob.
func (c *codec) appendFrame(dst, data []byte, w *workspace) []byte {
	w.index = w.index[:0]
	b := frameBuilder{codec: c}
	for len(data) > 0 {
		n := min(len(data), c.blockSize())
		var packed bool
		if dst, packed, w.index = b.add(dst, data[:n], w.index); !packed {
			dst = append(dst, data[:n]...)
		}
		data = data[n:]
	}
	return b.finish(dst, w.index)
}

// frameBuilder keeps account of the blocks of a frame.
type frameBuilder struct {
	codec *codec
	size  int64 // of the blob so far
	end   int64 // of the blocks so far, as stored
}

// add packs a block behind what is in dst and enters it into the index. What is to be stored is the end of the
// result, or else the block itself.
func (b *frameBuilder) add(dst, raw []byte, index frameIndex) (out []byte, packed bool, _ frameIndex) {
	out, packed = b.codec.pack(dst, raw)
	content := checksum(raw)
	stored, n := content, len(raw)
	if packed {
		stored, n = checksum(out[len(dst):]), len(out)-len(dst)
	}
	b.size += int64(len(raw))
	b.end += int64(n)
	return out, packed, index.add(b.end, stored, content)
}

// finish appends index and footer.
func (b *frameBuilder) finish(dst []byte, index frameIndex) []byte {
	shape := frameShape{size: b.size, blockLog: b.codec.blockLog, indexCRC: checksum(index)}
	if b.end != b.size {
		shape.codec = frameZstd
	}
	return appendFooter(append(dst, index...), &shape)
}

// PutBatch stores the frames of the items as one batch.
func (c *Compressed) PutBatch(ctx context.Context, items []Item) error {
	if err := c.check(ctx); err != nil {
		return refuseItems("put", items, err)
	}
	w := c.codec.takeSpace()
	defer c.codec.giveSpace(w)
	w.frame = w.frame[:0]
	var batch []Item
	var of, ends []int // of[k] is the item whose frame is that of batch[k] and ends at ends[k]
	for i := range items {
		it := &items[i]
		it.Location, it.Err = "", nil
		if int64(len(it.Data)) > c.limit {
			it.Err = Wrap("put", it.Address, "", ErrTooLarge)
			continue
		}
		w.frame = c.codec.appendFrame(w.frame, it.Data, w)
		batch, of, ends = append(batch, Item{Address: it.Address}), append(of, i), append(ends, len(w.frame))
	}
	at := 0
	for k := range batch {
		batch[k].Data, at = w.frame[at:ends[k]:ends[k]], ends[k]
	}
	_ = PutBatch(ctx, c.s, batch) // each item says how it went
	for k, i := range of {
		items[i].Location, items[i].Err = batch[k].Location, batch[k].Err
		if batch[k].Err == nil {
			c.stats.put(int64(len(items[i].Data)), int64(len(batch[k].Data)))
		}
	}
	return firstErr(items)
}

// NewWriter starts a blob. Blocks are compressed as they become full and given to a writer of the storage, for
// which the size of the frame is unknown, unless nothing is compressed.
func (c *Compressed) NewWriter(ctx context.Context, size int64) (Writer, error) {
	if err := c.admit(ctx, size); err != nil {
		return nil, Wrap("new writer", Address{}, "", err)
	}
	stored := int64(-1)
	if c.codec.off && size >= 0 {
		stored = c.codec.rawFrame(size)
	}
	return c.newWriter(ctx, size, stored)
}

// newWriter starts a blob whose frame has stored bytes, or nobody knows how many if that is -1.
func (c *Compressed) newWriter(ctx context.Context, size, stored int64) (Writer, error) {
	w, err := c.s.NewWriter(ctx, stored)
	if err != nil {
		return nil, err
	}
	return &frameWriter{c: c, ctx: ctx, size: max(size, -1), w: w, b: frameBuilder{codec: c.codec}}, nil
}

// frameWriter is a [Writer] of a frame.
type frameWriter struct {
	c     *Compressed
	ctx   context.Context // the stream's
	size  int64           // announced, or -1
	w     Writer
	b     frameBuilder
	index frameIndex
	block []byte // not yet full
	out   []byte // a block as stored
	err   error  // of the first failed Write, or ErrClosed at the end
}

func (w *frameWriter) Write(p []byte) (n int, err error) {
	if w.err == nil {
		w.err = w.admit(len(p))
	}
	full := w.c.codec.blockSize()
	for len(p) > 0 && w.err == nil {
		m := min(len(p), full-len(w.block))
		if m == full {
			w.err = w.flush(p[:m])
		} else if w.block = append(w.block, p[:m]...); len(w.block) == full {
			w.err = w.flush(w.block)
			w.block = w.block[:0]
		}
		if w.err == nil {
			n, p = n+m, p[m:]
		}
	}
	return n, Wrap("write", Address{}, "", w.err)
}

// admit says whether n more bytes may be written.
func (w *frameWriter) admit(n int) error {
	written := w.b.size + int64(len(w.block)) + int64(n)
	if err := w.c.admit(w.ctx, written); err != nil {
		return err
	}
	return checkSize(w.size, written, false)
}

// flush writes a block.
func (w *frameWriter) flush(raw []byte) (err error) {
	var packed bool
	if w.out, packed, w.index = w.b.add(w.out[:0], raw, w.index); packed {
		raw = w.out
	}
	_, err = w.w.Write(raw)
	return err
}

func (w *frameWriter) Commit(addr Address) (at Location, err error) {
	err = w.err
	if err == nil {
		err = w.c.check(w.ctx)
	}
	if err == nil {
		err = checkSize(w.size, w.b.size+int64(len(w.block)), true)
	}
	if err == nil {
		at, err = w.commit(addr)
	}
	_ = w.Close() // of what was committed it changes nothing
	return at, Wrap("commit", addr, "", err)
}

// commit writes what is left.
func (w *frameWriter) commit(addr Address) (Location, error) {
	if len(w.block) > 0 {
		if err := w.flush(w.block); err != nil {
			return "", err
		}
	}
	w.out = w.b.finish(w.out[:0], w.index)
	if _, err := w.w.Write(w.out); err != nil {
		return "", err
	}
	at, err := w.w.Commit(addr)
	if err == nil {
		w.c.stats.put(w.b.size, w.b.end+int64(len(w.index))+frameFooter)
	}
	return at, err
}

// Close discards what was not committed.
func (w *frameWriter) Close() error {
	w.block, w.out, w.index, w.err = nil, nil, nil, ErrClosed
	return w.w.Close()
}
