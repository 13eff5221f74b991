package storagetest

import (
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// infos returns what is stored, in order.
func (b *broken) infos() (infos []blobstor.Info) {
	b.edit(func(d *disk) {
		for _, r := range d.order {
			infos = append(infos, r.info())
		}
	})
	return infos
}

func yieldAll(infos []blobstor.Info) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (b *broken) reversed(context.Context, location) iter.Seq2[blobstor.Info, error] {
	infos := b.infos()
	slices.Reverse(infos)
	return yieldAll(infos)
}

func (b *broken) stopping(ctx context.Context, after location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		for info, err := range b.Memory.All(ctx, after) {
			var intact bool
			b.edit(func(d *disk) { intact = err != nil || d.blobs[info.Address].intact() })
			if !intact {
				yield(blobstor.Info{}, blobstor.ErrCorrupt)
				return
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// ranged spoils ReadRange.
func ranged(spoil func(p []byte, off int64, n int, size int64, err error) (int, int64, error)) func(*broken) {
	return func(b *broken) {
		b.read = func(ctx context.Context, addr address, at location, p []byte, off int64) (int, int64, error) {
			n, size, err := b.Memory.ReadRange(ctx, addr, at, p, off)
			return spoil(p, off, n, size, err)
		}
	}
}

var brokenRanges = []mistake{
	{"law6", "a range at 0 is the whole blob", func(b *broken) {
		b.read = func(ctx context.Context, addr address, at location, p []byte, off int64) (int, int64, error) {
			if off == 0 {
				p = p[:cap(p)]
			}
			return b.Memory.ReadRange(ctx, addr, at, p, off)
		}
	}},
	{"law6", "a range falls short", ranged(func(_ []byte, _ int64, n int, size int64, err error) (int, int64, error) {
		return n - n/8, size, err
	})},
	{"law6", "the size is what is left", ranged(func(_ []byte, off int64, n int, size int64, err error) (int, int64, error) {
		return n, size - off, err
	})},
	{"law6", "the very end is out of range", ranged(func(_ []byte, off int64, n int, size int64, err error) (int, int64, error) {
		if off == size {
			err = blobstor.ErrOutOfRange
		}
		return n, size, err
	})},
	{"law6", "out of range is io.EOF", func(b *broken) { b.replace(blobstor.ErrOutOfRange, always(io.EOF)) }},
	{"law6/out", "out of range is a fault", func(b *broken) {
		b.replace(blobstor.ErrOutOfRange, always(blobstor.Failed(blobstor.ErrOutOfRange)))
	}},
	{"law6/random", "long ranges are cut", ranged(func(_ []byte, _ int64, n int, size int64, err error) (int, int64, error) {
		return min(n, 1000), size, err
	})},
	{"law6", "a negative offset panics", func(b *broken) {
		b.read = func(ctx context.Context, addr address, at location, p []byte, off int64) (int, int64, error) {
			if off < 0 {
				panic("offset")
			}
			return b.Memory.ReadRange(ctx, addr, at, p, off)
		}
	}},
}

// spoiledReader spoils Readers.
func spoiledReader(spoil func(*brokenReader)) func(*broken) {
	return func(b *broken) {
		b.reader = func(r blobstor.Reader) blobstor.Reader { return spoilReader(r, spoil) }
	}
}

var brokenReaders = []mistake{
	{"law6/reader", "ReadAt at the end is no io.EOF", spoiledReader(func(r *brokenReader) {
		r.readAt = func(p []byte, off int64) (int, error) {
			n, err := r.Reader.ReadAt(p, off)
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
	})},
	{"law6/position", "ReadAt moves the position", spoiledReader(func(r *brokenReader) {
		r.readAt = func(p []byte, off int64) (int, error) {
			r.Seek(off, io.SeekStart)
			n, err := io.ReadFull(r.Reader, p)
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			return n, err
		}
	})},
	{"law6/position", "WriteTo starts over", spoiledReader(func(r *brokenReader) {
		r.writeTo = func(w io.Writer) (int64, error) {
			r.Seek(0, io.SeekStart)
			return r.Reader.WriteTo(w)
		}
	})},
	{"law6/writer", "WriteTo hides the writer's error", spoiledReader(func(r *brokenReader) {
		r.writeTo = func(w io.Writer) (int64, error) {
			n, _ := r.Reader.WriteTo(w)
			return n, nil
		}
	})},
	{"law6/closed", "a closed reader reads on", spoiledReader(func(r *brokenReader) {
		r.close = func() error { return nil }
	})},
	{"law6/reader shared", "ReadAt is for one at a time", spoiledReader(func(r *brokenReader) {
		var calls atomic.Int32
		r.readAt = func(p []byte, off int64) (int, error) {
			if calls.Add(1) == 4 {
				return 0, errBroken
			}
			return r.Reader.ReadAt(p, off)
		}
	})},
	{"law6/readers read on", "Read skips a byte now and then", spoiledReader(func(r *brokenReader) {
		calls := 0
		r.read = func(p []byte) (int, error) {
			if calls++; calls%3 == 0 {
				r.Seek(1, io.SeekCurrent)
			}
			return r.Reader.Read(p)
		}
	})},
}

// looping spoils All: it gets all that is stored and the place where to begin.
func looping(next func(b *broken, infos []blobstor.Info, begin int) iter.Seq2[blobstor.Info, error]) func(*broken) {
	return func(b *broken) {
		b.all = func(_ context.Context, after location) iter.Seq2[blobstor.Info, error] {
			infos := b.infos()
			begin := 1 + slices.IndexFunc(infos, func(i blobstor.Info) bool { return i.Location == after })
			return next(b, infos, begin)
		}
	}
}

var brokenIteration = []mistake{
	{"law7", "every blob comes twice", looping(func(_ *broken, infos []blobstor.Info, begin int) iter.Seq2[blobstor.Info, error] {
		return yieldAll(append(infos[begin:], infos[begin:]...))
	})},
	{"law7", "the last blob is missed", looping(func(_ *broken, infos []blobstor.Info, begin int) iter.Seq2[blobstor.Info, error] {
		return yieldAll(infos[begin:max(begin, len(infos)-1)])
	})},
	{"law7", "a resume skips one", looping(func(_ *broken, infos []blobstor.Info, begin int) iter.Seq2[blobstor.Info, error] {
		if begin > 0 {
			begin = min(begin+1, len(infos))
		}
		return yieldAll(infos[begin:])
	})},
	{"law7", "a resume starts over", looping(func(_ *broken, infos []blobstor.Info, _ int) iter.Seq2[blobstor.Info, error] {
		return yieldAll(infos)
	})},
	{"law7/unusable", "an unusable location is the end", func(b *broken) {
		b.all = func(ctx context.Context, after location) iter.Seq2[blobstor.Info, error] {
			if after != "" && len(after) != 8 {
				return yieldAll(nil)
			}
			return b.Memory.All(ctx, after)
		}
	}},
	{"law7/resumes behind a deleted", "the location of a deleted blob is the end", func(b *broken) {
		b.all = func(ctx context.Context, after location) iter.Seq2[blobstor.Info, error] {
			is := func(i blobstor.Info) bool { return i.Location == after }
			if after != "" && !slices.ContainsFunc(b.infos(), is) {
				return yieldAll(nil)
			}
			return b.Memory.All(ctx, after)
		}
	}},
	{"law7/resumes after reopen", "a reopen turns the order round", func(b *broken) {
		b.reopened = func(bool) {
			b.edit(func(d *disk) {
				for i, r := range d.order {
					r.seq = d.seq - uint64(i)
				}
				slices.Reverse(d.order)
			})
		}
	}},
	{"law7/delete", "the loop counts positions", func(b *broken) {
		b.all = func(context.Context, location) iter.Seq2[blobstor.Info, error] {
			return func(yield func(blobstor.Info, error) bool) {
				for i := 0; ; i++ {
					infos := b.infos()
					if i >= len(infos) || !yield(infos[i], nil) {
						return
					}
				}
			}
		}
	}},
	{"law7", "a lock is held across yield", func(b *broken) {
		var mu sync.RWMutex
		b.all = func(ctx context.Context, after location) iter.Seq2[blobstor.Info, error] {
			return func(yield func(blobstor.Info, error) bool) {
				mu.RLock()
				defer mu.RUnlock()
				b.Memory.All(ctx, after)(yield)
			}
		}
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			mu.Lock()
			defer mu.Unlock()
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law7/may be left", "a loop that is left keeps its lock", func(b *broken) {
		var mu sync.RWMutex
		b.all = func(ctx context.Context, after location) iter.Seq2[blobstor.Info, error] {
			return func(yield func(blobstor.Info, error) bool) {
				mu.RLock()
				for info, err := range b.Memory.All(ctx, after) {
					if !yield(info, err) {
						return
					}
				}
				mu.RUnlock()
			}
		}
		b.close = func() error {
			mu.Lock()
			defer mu.Unlock()
			return b.Memory.Close()
		}
	}},
	{"law7/may be left", "a loop cannot be left", looping(func(_ *broken, infos []blobstor.Info, begin int) iter.Seq2[blobstor.Info, error] {
		return func(yield func(blobstor.Info, error) bool) {
			for _, info := range infos[begin:] {
				yield(info, nil)
			}
		}
	})},
}
