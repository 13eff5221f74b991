package storagetest

import (
	"context"
	"errors"
	"maps"

	"github.com/granary-store/granary/blobstor"
)

type (
	address  = blobstor.Address
	location = blobstor.Location
)

var errBroken = errors.New("broken")

// edit changes the content behind the storage's back.
func (b *broken) edit(fn func(d *disk)) {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	fn(b.disk)
}

// has reports whether the blob is stored.
func (b *broken) has(addr address) (has bool) {
	b.edit(func(d *disk) { has = d.blobs[addr] != nil })
	return has
}

// lose lets the addresses that are noted be gone after a loss of power, or after a reopen too.
func (b *broken) lose(reopen bool) (note func(address)) {
	lost := map[address]bool{}
	b.reopened = func(power bool) {
		b.edit(func(d *disk) {
			for addr := range maps.Keys(lost) {
				if power || reopen {
					d.remove(addr)
				}
			}
		})
	}
	return func(addr address) { b.edit(func(*disk) { lost[addr] = true }) }
}

var brokenDurable = []mistake{
	{"law1", "puts are lost in a power loss", func(b *broken) {
		note := b.lose(false)
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			note(addr)
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law1", "the last put is lost at reopen", func(b *broken) {
		b.reopened = func(bool) {
			b.edit(func(d *disk) {
				if n := len(d.order); n > 0 {
					d.remove(d.order[n-1].addr)
				}
			})
		}
	}},
	{"law1", "deletes are forgotten at reopen", func(b *broken) {
		gone := map[address][]byte{}
		b.remove = func(ctx context.Context, addr address, at location) error {
			data, _ := b.Memory.Get(ctx, addr, at, nil)
			err := b.Memory.Delete(ctx, addr, at)
			if err == nil {
				gone[addr] = data
			}
			return err
		}
		b.reopened = func(bool) {
			b.edit(func(d *disk) {
				for addr, data := range gone {
					d.put(addr, data)
				}
			})
		}
	}},
	{"law1", "batches are lost in a power loss", func(b *broken) {
		note := b.lose(false)
		many := b.putMany
		b.putMany = func(ctx context.Context, items []blobstor.Item) error {
			for _, it := range items {
				note(it.Address)
			}
			return many(ctx, items)
		}
	}},
	{"law1", "commits are lost in a power loss", func(b *broken) {
		note := b.lose(false)
		b.writer = func(ctx context.Context, _ int64) (blobstor.Writer, error) {
			w := b.simpleWriter(ctx)
			w.commit = func(addr address, data []byte) (location, error) {
				note(addr)
				return b.Memory.Put(ctx, addr, data)
			}
			return w, nil
		}
	}},
	{"law1/repeated", "a repeated put undoes the first", func(b *broken) {
		note := b.lose(false)
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if b.has(addr) {
				note(addr)
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law1", "a stream is a blob before its commit", func(b *broken) {
		b.writer = func(ctx context.Context, _ int64) (blobstor.Writer, error) {
			w := b.simpleWriter(ctx)
			w.write = func(p []byte) error {
				_, err := b.Memory.Put(ctx, address{Object: blobstor.ID{1}}, p)
				return err
			}
			return w, nil
		}
	}},
}

var brokenImmutable = []mistake{
	{"law2", "put overwrites", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if b.has(addr) {
				b.edit(func(d *disk) { d.remove(addr) })
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law2", "a deleted address takes no second put", func(b *broken) {
		gone := map[address]bool{}
		b.remove = func(ctx context.Context, addr address, at location) error {
			b.edit(func(*disk) { gone[addr] = true })
			return b.Memory.Delete(ctx, addr, at)
		}
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			var was bool
			if b.edit(func(*disk) { was = gone[addr] }); was {
				return "", nil
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law2", "put of a stored address is an error", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if b.has(addr) {
				return "", errBroken
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law2", "every put adds a copy", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			again := b.has(addr)
			at, err := b.Memory.Put(ctx, addr, data)
			b.edit(func(d *disk) {
				if again && err == nil {
					d.seq++
					twin := *d.blobs[addr]
					twin.seq = d.seq
					d.order = append(d.order, &twin)
				}
			})
			return at, err
		}
	}},
	{"law2", "put believes that a stored copy is whole", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if info, err := b.Memory.Stat(ctx, addr, ""); err == nil {
				return info.Location, nil
			}
			return b.Memory.Put(ctx, addr, data)
		}
	}},
	{"law2", "healing does not last", func(b *broken) {
		bad := map[address]bool{}
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if _, err := b.Memory.Get(ctx, addr, "", nil); errors.Is(err, blobstor.ErrCorrupt) {
				bad[addr] = true
			}
			return b.Memory.Put(ctx, addr, data)
		}
		b.reopened = func(bool) {
			for addr := range bad {
				b.Damage(addr)
			}
		}
	}},
	{"law2", "delete of what another deletes is a fault", func(b *broken) {
		b.remove = func(ctx context.Context, addr address, at location) error {
			err := b.Memory.Delete(ctx, addr, at)
			if errors.Is(err, blobstor.ErrNotFound) {
				return errBroken
			}
			return err
		}
	}},
	{"law2/mixed", "only the newest twenty are kept", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			b.edit(func(d *disk) {
				for len(d.order) > 20 {
					d.remove(d.order[0].addr)
				}
			})
			return at, err
		}
	}},
}
