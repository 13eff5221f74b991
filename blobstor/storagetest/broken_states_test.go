package storagetest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/granary-store/granary/blobstor"
)

type loop = iter.Seq2[blobstor.Info, error]

var brokenClosing = []mistake{
	{"law10", "reads go on after close", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			return (&Memory{disk: b.disk}).Get(ctx, addr, at, dst)
		}
	}},
	{"law10", "a second close is an error", func(b *broken) {
		var closed atomic.Bool
		b.close = func() error {
			if closed.Swap(true) {
				return blobstor.ErrClosed
			}
			return b.Memory.Close()
		}
	}},
	{"law10", "All of a closed storage is empty", looping(func(_ *broken, infos []blobstor.Info, begin int) loop {
		return yieldAll(infos[begin:])
	})},
	{"law10/idle reader", "close waits for idle readers", func(b *broken) {
		var open sync.WaitGroup
		b.reader = func(r blobstor.Reader) blobstor.Reader {
			open.Add(1)
			return spoilReader(r, func(r *brokenReader) {
				r.close = sync.OnceValue(func() error { open.Done(); return r.Reader.Close() })
			})
		}
		b.close = func() error {
			open.Wait()
			return b.Memory.Close()
		}
	}},
	{"law10/idle writer", "close waits for idle writers", func(b *broken) {
		var open sync.WaitGroup
		b.writer = func(ctx context.Context, _ int64) (blobstor.Writer, error) {
			open.Add(1)
			w := b.simpleWriter(ctx)
			w.close = sync.OnceFunc(open.Done)
			return w, nil
		}
		b.close = func() error {
			open.Wait()
			return b.Memory.Close()
		}
	}},
	{"law10/loop", "close waits for loops", func(b *broken) {
		var loops sync.WaitGroup
		b.all = func(ctx context.Context, after location) loop {
			return func(yield func(blobstor.Info, error) bool) {
				loops.Add(1)
				defer loops.Done()
				b.Memory.All(ctx, after)(yield)
			}
		}
		b.close = func() error {
			loops.Wait()
			return b.Memory.Close()
		}
	}},
	{"law10/close beside", "put beside close says that it worked", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			if errors.Is(err, blobstor.ErrClosed) {
				err = nil
			}
			return at, err
		}
		b.close = func() error {
			b.edit(func(d *disk) { // no put is ever in time
				for len(d.order) > 0 {
					d.remove(d.order[0].addr)
				}
			})
			return b.Memory.Close()
		}
	}},
	{"law10/close and", "close forgets a blob", func(b *broken) {
		b.close = func() error {
			b.edit(func(d *disk) {
				if len(d.order) > 0 {
					d.remove(d.order[0].addr)
				}
			})
			return b.Memory.Close()
		}
	}},
}

var brokenSizes = []mistake{
	{"law11", "empty blobs are refused", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if len(data) == 0 {
				return "", errBroken
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law11", "the limit is one too low", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if len(data) >= brokenLimit {
				return "", blobstor.Wrap("put", addr, "", blobstor.ErrTooLarge)
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law11", "there is no limit", func(b *broken) { b.edit(func(d *disk) { d.limit = 0 }) }},
	{"law11", "a refused blob is cut", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			if errors.Is(err, blobstor.ErrTooLarge) {
				b.Memory.Put(ctx, addr, data[:brokenLimit])
			}
			return at, err
		}
	}},
	{"law11", "one blob above the limit fails the batch", func(b *broken) {
		many := b.putMany
		b.putMany = func(ctx context.Context, items []blobstor.Item) error {
			for _, it := range items {
				if len(it.Data) > brokenLimit {
					for i := range items {
						items[i].Err = blobstor.Wrap("put", it.Address, "", blobstor.ErrTooLarge)
					}
					return items[0].Err
				}
			}
			return many(ctx, items)
		}
	}},
	{"law11", "zeros at the end are lost", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			return b.Memory.Put(ctx, addr, data[:len(data)&^7])
		}
	}},
}

// onFull spoils puts on a full disk, of which err is the error.
func onFull(spoil func(b *broken, addr address, data []byte, err error) error) func(*broken) {
	return func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			if errors.Is(err, blobstor.ErrNoSpace) {
				err = spoil(b, addr, data, err)
			}
			return at, err
		}
	}
}

// sneak stores a blob whatever the state of the disk.
func (b *broken) sneak(addr address, data []byte) {
	b.edit(func(d *disk) {
		full, failSync := d.full, d.failSync
		d.full, d.failSync = false, false
		d.put(addr, bytes.Clone(data))
		d.full, d.failSync = full, failSync
	})
}

var brokenFullDisk = []mistake{
	{"law12", "a refused blob is there", onFull(func(b *broken, addr address, data []byte, err error) error {
		b.sneak(addr, data)
		return err
	})},
	{"law12", "a full disk is a fault", onFull(func(_ *broken, addr address, _ []byte, _ error) error {
		return blobstor.Wrap("put", addr, "", syscall.EIO)
	})},
	{"law12/refused", "a refused blob comes back", func(b *broken) {
		refused := map[address][]byte{}
		onFull(func(_ *broken, addr address, data []byte, err error) error {
			b.edit(func(*disk) { refused[addr] = bytes.Clone(data) })
			return err
		})(b)
		b.reopened = func(bool) {
			for addr, data := range refused {
				b.sneak(addr, data)
			}
		}
	}},
	{"law12/works", "full once, full for ever", func(b *broken) { b.full = func() func() { b.Full(); return func() {} } }},
	{"law12", "reads need room", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) (_ []byte, err error) {
			if b.edit(func(d *disk) { err = d.writable() }); err != nil {
				return dst, err
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law12/delete", "deletes need room", func(b *broken) {
		b.remove = func(ctx context.Context, addr address, at location) (err error) {
			if b.edit(func(d *disk) { err = d.writable() }); err != nil {
				return err
			}
			return b.Memory.Delete(ctx, addr, at)
		}
	}},
}

// onFailedSync spoils puts whose sync failed with err.
func onFailedSync(spoil func(b *broken, addr address, data []byte, err error) error) func(*broken) {
	return func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			if errors.Is(err, blobstor.ErrFailed) {
				err = spoil(b, addr, data, err)
			}
			return at, err
		}
	}
}

var brokenFailedSync = []mistake{
	{"law13", "the error of a sync is ignored", onFailedSync(func(b *broken, addr address, data []byte, _ error) error {
		b.sneak(addr, data)
		return nil
	})},
	{"law13", "a failed sync is any error", onFailedSync(func(_ *broken, addr address, _ []byte, _ error) error {
		return blobstor.Wrap("put", addr, "", syscall.EIO)
	})},
	{"law13", "a failed blob is there", onFailedSync(func(b *broken, addr address, data []byte, err error) error {
		b.sneak(addr, data)
		return err
	})},
	{"law13/a failed put is not", "the second put believes the first", func(b *broken) {
		var mu sync.Mutex
		tried := map[address]bool{}
		onFailedSync(func(_ *broken, addr address, _ []byte, err error) error {
			mu.Lock()
			defer mu.Unlock()
			if tried[addr] {
				return nil
			}
			tried[addr] = true
			return err
		})(b)
	}},
	{"law13", "a failed blob comes back", func(b *broken) {
		failed := map[address][]byte{}
		onFailedSync(func(_ *broken, addr address, data []byte, err error) error {
			b.edit(func(*disk) { failed[addr] = bytes.Clone(data) })
			return err
		})(b)
		b.reopened = func(bool) {
			for addr, data := range failed {
				b.sneak(addr, data)
			}
		}
	}},
	{"law13", "reads fail after a failed sync", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) (_ []byte, err error) {
			if b.edit(func(d *disk) { err = d.writable() }); err != nil {
				return dst, err
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law13/a failed delete", "a failed delete damages", func(b *broken) {
		b.remove = func(ctx context.Context, addr address, at location) error {
			err := b.Memory.Delete(ctx, addr, at)
			if errors.Is(err, blobstor.ErrFailed) {
				b.reopened = func(bool) { b.sneak(addr, []byte("half")) }
			}
			return err
		}
	}},
}

var brokenRefusals = []mistake{
	{"readonly", "writes go through", func(b *broken) { b.readOnly = func() blobstor.Storage { return b } }},
}
