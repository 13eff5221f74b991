package blobstor

import (
	"context"
	"errors"
	"fmt"
)

const (
	copySmall  = DefaultSmall // blobs up to this size go in batches, larger ones are streamed
	copyItems  = 256          // of a batch: enough to share a commit, few enough to lose little when one fails
	copyBytes  = 4 << 20      // of a batch: what Copy holds in memory
	copyErrors = 16           // errors that Copy keeps; it counts the rest
)

// Copy puts every blob of src into dst and returns how many dst has acknowledged; small ones in batches, large
// ones as streams in bounded memory. A blob that src cannot return, or that is too large for dst, is an error in
// the result, which names the first few, and the copy goes on; a blob that is deleted meanwhile is none. Any
// other error of dst, one of All that ends it, and the end of ctx end the copy. It may be repeated: what dst has
// by then it keeps as it is.
func Copy(ctx context.Context, dst, src Storage) (int64, error) {
	c := &copier{ctx: ctx, dst: Stream(dst), src: Stream(src)}
	err := c.all()
	if err == nil {
		err = c.flush()
	}
	if c.more > 0 {
		c.failed = append(c.failed, fmt.Errorf("blobstor: copy: %d more blobs failed", c.more))
	}
	return c.done, errors.Join(append(c.failed, err)...)
}

type copier struct {
	ctx      context.Context
	dst, src BlobStor
	batch    []Item
	buf      []byte // the batch's data, one after the other
	done     int64
	failed   []error // of single blobs
	more     int
}

// all returns the error that ended the copy.
func (c *copier) all() error {
	for info, err := range c.src.All(c.ctx, "") {
		switch {
		case err == nil:
			err = c.one(info)
		case aboutOne(err):
			err = c.skip(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// skip notes the error of a single blob of src and returns nil, unless it means the end.
func (c *copier) skip(err error) error {
	switch {
	case c.ctx.Err() != nil || errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, ErrNotFound):
		return nil // deleted since All yielded it
	case len(c.failed) < copyErrors:
		c.failed = append(c.failed, err)
	default:
		c.more++
	}
	return nil
}

func (c *copier) one(info Info) error {
	if info.Size < 0 {
		var err error
		if info, err = c.src.Stat(c.ctx, info.Address, info.Location); err != nil {
			return c.skip(err)
		}
	}
	if info.Size > copySmall {
		return c.stream(info)
	}
	start := len(c.buf)
	buf, err := c.src.Get(c.ctx, info.Address, info.Location, c.buf)
	if err != nil {
		return c.skip(err)
	}
	c.buf = buf
	c.batch = append(c.batch, Item{Address: info.Address, Data: buf[start:]})
	if len(c.batch) < copyItems && len(c.buf) < copyBytes {
		return nil
	}
	return c.flush()
}

// flush puts the batch.
func (c *copier) flush() error {
	if len(c.batch) == 0 {
		return nil
	}
	_ = PutBatch(c.ctx, c.dst, c.batch) // each item says how it went
	var end error
	for i := range c.batch {
		if err := c.put(c.batch[i].Err); err != nil && end == nil {
			end = err
		}
	}
	clear(c.batch)
	c.batch, c.buf = c.batch[:0], c.buf[:0]
	return end
}

// put counts what dst acknowledged and returns the errors that end the copy.
func (c *copier) put(err error) error {
	if err == nil {
		c.done++
		return nil
	}
	if errors.Is(err, ErrTooLarge) {
		return c.skip(err)
	}
	return err
}

// stream copies a large blob.
func (c *copier) stream(info Info) error {
	r, err := c.src.NewReader(c.ctx, info.Address, info.Location)
	if err != nil {
		return c.skip(err)
	}
	defer r.Close()
	w, err := c.dst.NewWriter(c.ctx, r.Size())
	if err != nil {
		return c.put(err)
	}
	defer w.Close()
	t := &tap{Writer: w}
	if _, err = r.WriteTo(t); err != nil {
		if t.err != nil {
			return c.put(t.err)
		}
		return c.skip(err)
	}
	_, err = w.Commit(info.Address)
	return c.put(err)
}

// tap remembers the writer's own error, to tell it from one of the reader.
type tap struct {
	Writer
	err error
}

func (t *tap) Write(p []byte) (n int, err error) {
	n, err = t.Writer.Write(p)
	t.err = err
	return n, err
}
