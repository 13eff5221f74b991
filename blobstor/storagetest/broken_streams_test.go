package storagetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// written spoils writers that check nothing by themselves.
func written(spoil func(b *broken, w *brokenWriter, size int64)) func(*broken) {
	return func(b *broken) {
		b.writer = func(ctx context.Context, size int64) (blobstor.Writer, error) {
			w := b.simpleWriter(ctx)
			spoil(b, w, size)
			return w, nil
		}
	}
}

var brokenWriters = []mistake{
	{"streams/wrong", "no size is checked", written(func(*broken, *brokenWriter, int64) {})},
	{"streams/wrong", "a wrong size is a fault", written(func(_ *broken, w *brokenWriter, size int64) {
		commit := w.commit
		w.commit = func(addr address, data []byte) (location, error) {
			if size >= 0 && int64(len(data)) != size {
				return "", errBroken
			}
			return commit(addr, data)
		}
	})},
	{"streams/close", "a closed writer commits", written(func(*broken, *brokenWriter, int64) {})},
	{"streams/commit", "a writer commits twice", written(func(*broken, *brokenWriter, int64) {})},
	{"streams/commit", "close after commit takes it back", written(func(b *broken, w *brokenWriter, _ int64) {
		commit := w.commit
		w.commit = func(addr address, data []byte) (location, error) {
			w.close = func() { b.edit(func(d *disk) { d.remove(addr) }) }
			return commit(addr, data)
		}
	})},
	{"streams/known", "an announced size is stored, with zeros", written(func(_ *broken, w *brokenWriter, size int64) {
		commit := w.commit
		w.commit = func(addr address, data []byte) (location, error) {
			return commit(addr, append(data, make([]byte, max(0, 1-size))...))
		}
	})},
	{"streams", "every third stream fails", func(b *broken) {
		var n atomic.Int32
		b.writer = func(ctx context.Context, size int64) (blobstor.Writer, error) {
			if n.Add(1)%3 == 0 {
				return nil, errBroken
			}
			return b.simpleWriter(ctx), nil
		}
	}},
}

var brokenOwnership = []mistake{
	{"law8/put", "put keeps the caller's bytes", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			b.edit(func(d *disk) { d.blobs[addr].data = data })
			return at, err
		}
	}},
	{"law8/put", "put scribbles in the caller's bytes", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			clear(data)
			return at, err
		}
	}},
	{"law8/batch", "a batch keeps the caller's bytes", func(b *broken) {
		many := b.putMany
		b.putMany = func(ctx context.Context, items []blobstor.Item) error {
			err := many(ctx, items)
			b.edit(func(d *disk) {
				for _, it := range items {
					d.blobs[it.Address].data = it.Data
				}
			})
			return err
		}
	}},
	{"law8/writer", "a writer keeps the caller's bytes", written(func(_ *broken, w *brokenWriter, _ int64) {
		var pieces [][]byte
		w.write = func(p []byte) error {
			pieces = append(pieces, p)
			return nil
		}
		commit := w.commit
		w.commit = func(addr address, _ []byte) (location, error) { return commit(addr, slices.Concat(pieces...)) }
	})},
	{"law8", "get returns the storage's own bytes", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			got, err := b.Memory.Get(ctx, addr, at, dst)
			if err == nil && dst == nil {
				b.edit(func(d *disk) { got = d.blobs[addr].data })
			}
			return got, err
		}
	}},
	{"law8", "get forgets dst", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, _ []byte) ([]byte, error) {
			return b.Memory.Get(ctx, addr, at, nil)
		}
	}},
	{"law8", "nil is allocated for the largest blob", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			if dst == nil {
				dst = make([]byte, 0, 2*brokenLimit)
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
}

// deaf returns a context that never ends, for storages that do not listen.
func deaf(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

var brokenContexts = []mistake{
	{"law9", "reads do not ask the context", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			return b.Memory.Get(deaf(ctx), addr, at, dst)
		}
	}},
	{"law9", "All does not ask the context", looping(func(_ *broken, infos []blobstor.Info, begin int) loop {
		return yieldAll(infos[begin:])
	})},
	{"law9/cancelled before a write", "batches do not ask the context", func(b *broken) {
		many := b.putMany
		b.putMany = func(ctx context.Context, items []blobstor.Item) error { return many(deaf(ctx), items) }
	}},
	{"law9", "put is done and then returns the context's error", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(deaf(ctx), addr, data)
			return at, errors.Join(err, ctx.Err())
		}
	}},
	{"law9/cancelled reader", "readers do not ask the context", func(b *broken) {
		b.reader = func(r blobstor.Reader) blobstor.Reader {
			whole := make([]byte, r.Size())
			r.ReadAt(whole, 0)
			return spoilReader(r, func(r *brokenReader) {
				r.read = func(p []byte) (int, error) { return copy(p, whole), nil }
				r.readAt = func(p []byte, off int64) (int, error) { return copy(p, whole[off:]), nil }
			})
		}
	}},
	{"law9/cancelled writer", "writers do not ask the context", func(b *broken) {
		b.writer = func(ctx context.Context, _ int64) (blobstor.Writer, error) { return b.simpleWriter(deaf(ctx)), nil }
	}},
}

var brokenBatches = []mistake{
	{"batches", "the error of a batch is swallowed", func(b *broken) {
		many := b.delMany
		b.delMany = func(ctx context.Context, items []blobstor.Item) error {
			many(ctx, items)
			return nil
		}
	}},
	{"batches", "errors stay out of the items", func(b *broken) {
		many := b.delMany
		b.delMany = func(ctx context.Context, items []blobstor.Item) error {
			err := many(ctx, items)
			for i := range items {
				items[i].Err = nil
			}
			return err
		}
	}},
	{"batches/old", "old errors stay", func(b *broken) {
		b.putMany = func(ctx context.Context, items []blobstor.Item) (first error) {
			for i, it := range items {
				if _, err := b.put(ctx, it.Address, it.Data); err != nil {
					items[i].Err = err
				}
			}
			return nil
		}
	}},
	{"batches", "a batch stops at its first error", func(b *broken) {
		b.delMany = func(ctx context.Context, items []blobstor.Item) error {
			for i := range items {
				if items[i].Err = b.remove(ctx, items[i].Address, ""); items[i].Err != nil {
					return items[i].Err
				}
			}
			return nil
		}
	}},
	{"batches", "an empty batch is an error", func(b *broken) {
		many := b.putMany
		b.putMany = func(ctx context.Context, items []blobstor.Item) error {
			if len(items) == 0 {
				return errBroken
			}
			return many(ctx, items)
		}
	}},
	{"batches", "a batch makes room for what is stored already", func(b *broken) {
		b.putMany = func(ctx context.Context, items []blobstor.Item) error {
			for i := range items {
				if items[i].Err = b.remove(ctx, items[i].Address, ""); items[i].Err == nil {
					continue
				}
				items[i].Location, items[i].Err = b.put(ctx, items[i].Address, items[i].Data)
			}
			return nil
		}
	}},
	{"batches", "a batch keeps ten", func(b *broken) {
		many := b.putMany
		b.putMany = func(ctx context.Context, items []blobstor.Item) error {
			err := many(ctx, items)
			b.edit(func(d *disk) {
				for len(d.order) > 10 {
					d.remove(d.order[0].addr)
				}
			})
			return err
		}
	}},
}
