package blobstor

import "context"

// NewWriter returns a writer of the route that a blob of size bytes belongs to. A blob of unknown size, or one
// that fits in the smallest route, is kept in memory up to that route's limit; if it grows above, it is streamed
// to the largest route. So memory stays bounded, and a small blob finds the next route when one is full.
func (r *Router) NewWriter(ctx context.Context, size int64) (Writer, error) {
	if size > r.spool {
		return r.direct(ctx, size)
	}
	check := func() error {
		if r.closed.Load() {
			return ErrClosed
		}
		return ctx.Err()
	}
	if err := check(); err != nil {
		return nil, Wrap("new writer", Address{}, "", err)
	}
	put := func(addr Address, data []byte) (Location, error) { return r.Put(ctx, addr, data) }
	return &spool{buffer: newBuffer(size, check, put), r: r, ctx: ctx}, nil
}

// direct returns a writer of the first route that takes a blob of size bytes.
func (r *Router) direct(ctx context.Context, size int64) (w Writer, err error) {
	err = r.place("new writer", Address{}, size, func(rt *route) (err error) {
		w, err = rt.newWriter(ctx, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// largest returns the last route that takes blobs, nil if all drain.
func (r *Router) largest() (last *route) {
	for rt := range r.taking(0) {
		last = rt
	}
	return last
}

// spool is a writer that keeps a blob in memory until it outgrows the smallest route.
type spool struct {
	*buffer
	r     *Router
	ctx   context.Context // the stream's
	large Writer          // once it did
}

func (s *spool) Write(p []byte) (int, error) {
	if s.large == nil && s.err == nil && s.size < 0 && int64(len(s.data)+len(p)) > s.r.spool {
		s.err = s.outgrow()
	}
	if s.large != nil && s.err == nil {
		return s.large.Write(p)
	}
	return s.buffer.Write(p)
}

// outgrow moves what is in memory to the largest route.
func (s *spool) outgrow() error {
	if err := s.check(); err != nil {
		return err
	}
	rt := s.r.largest()
	if rt == nil {
		return s.r.unplaced()
	}
	w, err := rt.newWriter(s.ctx, -1)
	if err != nil {
		return err
	}
	s.large = w
	_, err = w.Write(s.data)
	s.data = nil
	return err
}

func (s *spool) Commit(addr Address) (Location, error) {
	if s.large != nil && s.err == nil {
		s.err = ErrClosed // the end, as a buffer's Commit is
		return s.large.Commit(addr)
	}
	return s.buffer.Commit(addr)
}

func (s *spool) Close() error {
	s.buffer.Close()
	if s.large != nil {
		return s.large.Close()
	}
	return nil
}

// routed is a writer of one route: it keeps the route's limit and returns the router's locations.
type routed struct {
	Writer
	rt   *route
	room int64
	err  error
}

func (rt *route) newWriter(ctx context.Context, size int64) (Writer, error) {
	w, err := rt.stream.NewWriter(ctx, size)
	if err != nil {
		return nil, rt.outerErr(err)
	}
	return &routed{Writer: w, rt: rt, room: rt.limit()}, nil
}

func (w *routed) Write(p []byte) (int, error) {
	if w.err == nil && int64(len(p)) > w.room {
		w.err = Wrap("write", Address{}, "", ErrTooLarge)
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.Writer.Write(p)
	w.room -= int64(n)
	return n, w.rt.outerErr(err)
}

func (w *routed) Commit(addr Address) (Location, error) {
	if w.err != nil {
		w.Writer.Close()
		return "", Wrap("commit", addr, "", w.err)
	}
	at, err := w.Writer.Commit(addr)
	if err != nil {
		return "", w.rt.outerErr(err)
	}
	return w.rt.outer(at), nil
}
