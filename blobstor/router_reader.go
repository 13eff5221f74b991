package blobstor

import (
	"context"
	"errors"
	"io"
	"sync"
)

// NewReader opens the first copy there is. Where it turns out to be damaged, the other routes' copies serve.
func (r *Router) NewReader(ctx context.Context, addr Address, at Location) (Reader, error) {
	if r.closed.Load() {
		return nil, Wrap("new reader", addr, at, ErrClosed)
	}
	c := &copies{ctx: ctx, addr: addr, at: at}
	for rt, inner := range r.from(at) {
		c.unseen = append(c.unseen, func() (Reader, error) {
			rd, err := rt.stream.NewReader(ctx, addr, inner)
			return rd, rt.outerErr(err)
		})
	}
	first, err := c.open(0)
	if err != nil {
		return nil, err
	}
	return newReader(c, first.Size()), nil
}

// copies reads one blob from all routes that have it.
type copies struct {
	ctx  context.Context
	addr Address
	at   Location

	mu     sync.Mutex // guards what follows
	opened []Reader   // they stay open: another goroutine may be reading
	unseen []func() (Reader, error)
	failed []error // of copies that could not be opened
}

// open returns the k-th copy.
func (c *copies) open(k int) (Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k >= len(c.opened) {
		if len(c.unseen) == 0 {
			return nil, absent("new reader", c.addr, c.at, c.failed)
		}
		rd, err := c.unseen[0]()
		if err != nil && c.ctx.Err() != nil {
			return nil, Wrap("new reader", c.addr, c.at, c.ctx.Err())
		}
		c.unseen = c.unseen[1:]
		if err == nil {
			c.opened = append(c.opened, rd)
		} else if !errors.Is(err, ErrNotFound) {
			c.failed = append(c.failed, err)
		}
	}
	return c.opened[k], nil
}

// ReadAt tries the copies in turn. It begins with the first every time, as copies may be damaged in different
// places.
func (c *copies) ReadAt(p []byte, off int64) (n int, err error) {
	var failed []error
	for k := 0; ; k++ {
		rd, err := c.open(k)
		if err != nil {
			if errors.Is(err, ErrNotFound) {
				err = nil // the copies before were all there are
			}
			return n, errors.Join(append(failed, err)...)
		}
		m, err := rd.ReadAt(p[n:], off+int64(n))
		n += m
		if err == nil || errors.Is(err, io.EOF) || c.ctx.Err() != nil {
			return n, err
		}
		failed = append(failed, err)
	}
}

func (c *copies) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unseen = nil
	var errs []error
	for _, rd := range c.opened {
		errs = append(errs, rd.Close())
	}
	return errors.Join(errs...)
}
