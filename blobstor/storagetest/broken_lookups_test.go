package storagetest

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

var brokenLocations = []mistake{
	{"law3", "locations are trusted", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			if at != "" && len(at) != 8 {
				return dst, blobstor.Wrap("get", addr, at, blobstor.ErrCorrupt)
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law3", "a location of two bytes panics", func(b *broken) {
		b.stat = func(ctx context.Context, addr address, at location) (blobstor.Info, error) {
			if at != "" {
				_ = at[7]
			}
			return b.Memory.Stat(ctx, addr, at)
		}
	}},
	{"law3", "a location that misses ends the look-up", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			info, err := b.Memory.Stat(ctx, addr, at)
			if err == nil && at != "" && at != info.Location {
				return dst, blobstor.Wrap("get", addr, at, blobstor.ErrNotFound)
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law3", "delete follows the location alone", func(b *broken) {
		b.remove = func(ctx context.Context, addr address, at location) error {
			b.edit(func(d *disk) {
				if i := slices.IndexFunc(d.order, func(r *record) bool { return r.location() == at }); i >= 0 {
					addr = d.order[i].addr
				}
			})
			return b.Memory.Delete(ctx, addr, at)
		}
	}},
	{"law3", "a location brings back what was deleted", func(b *broken) {
		gone := map[location][]byte{}
		b.remove = func(ctx context.Context, addr address, at location) error {
			info, _ := b.Memory.Stat(ctx, addr, at)
			data, _ := b.Memory.Get(ctx, addr, at, nil)
			gone[info.Location] = data
			return b.Memory.Delete(ctx, addr, at)
		}
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			if data, ok := gone[at]; ok {
				return append(dst, data...), nil
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law3", "stat echoes the location", func(b *broken) {
		b.stat = func(ctx context.Context, addr address, at location) (blobstor.Info, error) {
			info, err := b.Memory.Stat(ctx, addr, at)
			info.Location = at
			return info, err
		}
	}},
	{"law3", "locations are too long", func(b *broken) {
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			at, err := b.Memory.Put(ctx, addr, data)
			return at + "and some more bytes", err
		}
	}},
	{"law3/a location lasts", "a reopen moves blobs", func(b *broken) {
		b.reopened = func(bool) {
			b.edit(func(d *disk) {
				for _, r := range d.order {
					r.seq += 100
				}
				d.seq += 100
			})
		}
	}},
	{"law3/locations sort", "All goes in another order", func(b *broken) { b.all = b.reversed }},
	{"law3", "a healed blob has an evil location", func(b *broken) {
		healed := map[address]bool{}
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			if _, err := b.Memory.Get(ctx, addr, "", nil); errors.Is(err, blobstor.ErrCorrupt) {
				healed[addr] = true
			}
			return b.Memory.Put(ctx, addr, data)
		}
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			if healed[addr] && at != "" {
				return dst, blobstor.Wrap("get", addr, at, blobstor.ErrCorrupt)
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
}

// replace lets every method that looks for one blob return another error in place of one.
func (b *broken) replace(old error, with func(address) error) {
	swap := func(addr address, err error) error {
		if errors.Is(err, old) {
			return with(addr)
		}
		return err
	}
	b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
		dst, err := b.Memory.Get(ctx, addr, at, dst)
		return dst, swap(addr, err)
	}
	b.stat = func(ctx context.Context, addr address, at location) (blobstor.Info, error) {
		info, err := b.Memory.Stat(ctx, addr, at)
		return info, swap(addr, err)
	}
	b.read = func(ctx context.Context, addr address, at location, p []byte, off int64) (int, int64, error) {
		n, size, err := b.Memory.ReadRange(ctx, addr, at, p, off)
		return n, size, swap(addr, err)
	}
	b.remove = func(ctx context.Context, addr address, at location) error {
		return swap(addr, b.Memory.Delete(ctx, addr, at))
	}
	b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
		at, err := b.Memory.Put(ctx, addr, data)
		return at, swap(addr, err)
	}
}

// always is an error of its own that bears the address.
func always(err error) func(address) error {
	return func(addr address) error { return blobstor.Wrap("broken", addr, "", err) }
}

var brokenAbsence = []mistake{
	{"law4", "unreadable is called missing", func(b *broken) {
		b.replace(blobstor.ErrCorrupt, always(blobstor.ErrNotFound))
	}},
	{"law4", "missing is called corrupt", func(b *broken) {
		b.replace(blobstor.ErrNotFound, always(blobstor.ErrCorrupt))
	}},
	{"law4", "errors do not say which blob", func(b *broken) {
		b.replace(blobstor.ErrNotFound, func(address) error { return blobstor.ErrNotFound })
	}},
	{"law4", "addresses are compared in part", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			b.edit(func(d *disk) {
				for have := range d.blobs {
					if bytes.Equal(have.Object[:31], addr.Object[:31]) {
						addr = have
					}
				}
			})
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law4", "delete of a missing blob is nil", func(b *broken) {
		b.remove = func(ctx context.Context, addr address, at location) error {
			return maybe(b.Memory.Delete(ctx, addr, at))
		}
	}},
	{"law4", "a damaged blob cannot be deleted", func(b *broken) {
		b.remove = func(ctx context.Context, addr address, at location) error {
			if _, err := b.Memory.Get(ctx, addr, at, nil); err != nil {
				return err
			}
			return b.Memory.Delete(ctx, addr, at)
		}
	}},
	{"law4", "a put is seen with the next one", func(b *broken) {
		var last *blobstor.Item
		b.put = func(ctx context.Context, addr address, data []byte) (location, error) {
			next := &blobstor.Item{Address: addr, Data: slices.Clone(data)}
			b.edit(func(*disk) { next, last = last, next })
			if next == nil {
				return "", nil
			}
			return b.Memory.Put(ctx, next.Address, next.Data)
		}
	}},
}

var brokenIntegrity = []mistake{
	{"law5", "get does not verify", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			got, err := b.Memory.Get(ctx, addr, at, dst)
			if errors.Is(err, blobstor.ErrCorrupt) {
				b.edit(func(d *disk) { got, err = append(dst, d.blobs[addr].data...), nil })
			}
			return got, err
		}
	}},
	{"law5", "ranges are not verified", func(b *broken) {
		b.read = func(ctx context.Context, addr address, at location, p []byte, off int64) (int, int64, error) {
			n, size, err := b.Memory.ReadRange(ctx, addr, at, p, off)
			if errors.Is(err, blobstor.ErrCorrupt) {
				b.edit(func(d *disk) {
					data := d.blobs[addr].data
					n, size, err = copy(p, data[off:]), int64(len(data)), nil
				})
			}
			return n, size, err
		}
	}},
	{"law5", "one damaged blob fails all", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) (_ []byte, err error) {
			b.edit(func(d *disk) {
				for _, r := range d.order {
					if !r.intact() {
						err = blobstor.Wrap("get", addr, at, blobstor.ErrCorrupt)
					}
				}
			})
			if err != nil {
				return dst, err
			}
			return b.Memory.Get(ctx, addr, at, dst)
		}
	}},
	{"law5", "All stops at damage", func(b *broken) { b.all = b.stopping }},
	{"law5", "damage is no fault", func(b *broken) {
		b.replace(blobstor.ErrCorrupt, always(harmless{blobstor.ErrCorrupt}))
	}},
	{"law5", "a partial result comes with the error", func(b *broken) {
		b.get = func(ctx context.Context, addr address, at location, dst []byte) ([]byte, error) {
			got, err := b.Memory.Get(ctx, addr, at, dst)
			if errors.Is(err, blobstor.ErrCorrupt) {
				return append(dst, "half of it"...), err
			}
			return got, err
		}
	}},
}

// harmless is an error that denies to be a fault.
type harmless struct{ error }

func (h harmless) Unwrap() error { return h.error }
func (h harmless) Fault() bool   { return false }
