package fstree

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// Part of the format, never change.
const (
	kind   = "fstree"
	format = 1
)

// Tree is an open store. All methods are safe for concurrent use.
type Tree struct {
	opts  Options
	log   *slog.Logger
	store *durable.Store
	dirs  *dirs
	names *nameLocks
	count counters

	layout atomic.Pointer[layout]

	calls  gate // all of them
	writes gate // those that change something
	sweep  sweeper

	switching chan struct{} // holds one token while SetReadOnly runs
	reshaping chan struct{} // the same for Reshape
	closing   chan struct{} // closed when Close begins
	closeOnce sync.Once

	mu      sync.Mutex
	writers map[*writer]struct{} // that were neither committed nor closed
}

var (
	_ blobstor.BlobStor    = (*Tree)(nil)
	_ blobstor.RangeReader = (*Tree)(nil)
)

// Open opens the store in dir; nil options are the zero Options. It returns an error that matches
// blobstor.ErrInUse if the store is open already, here or in another process, and blobstor.ErrLayout if dir is no
// store, another kind of store, or one that differs from the options.
func Open(dir string, opts *Options) (*Tree, error) {
	t, err := open(dir, opts)
	if err != nil {
		return nil, blobstor.Wrap("open", blobstor.Address{}, "", err)
	}
	return t, nil
}

func open(dir string, opts *Options) (*Tree, error) {
	t := &Tree{
		log:       slog.New(slog.DiscardHandler),
		names:     newNameLocks(),
		switching: make(chan struct{}, 1),
		reshaping: make(chan struct{}, 1),
		closing:   make(chan struct{}),
		writers:   map[*writer]struct{}{},
	}
	if opts != nil {
		t.opts = *opts
	}
	if err := t.opts.Validate(); err != nil {
		return nil, err
	}
	if t.opts.Logger != nil {
		t.log = t.opts.Logger
	}
	var err error
	t.store, err = durable.OpenStore(dir, durable.StoreOptions{
		Descriptor: durable.Descriptor{Kind: kind, Format: format, Owner: t.opts.Owner},
		Defaults:   t.opts.newLayout().shape(),
		Create:     t.opts.Create, ReadOnly: t.opts.ReadOnly,
		Tap: t.opts.tap, NamedTemp: t.opts.rename,
		Build: build,
	})
	if err != nil {
		return nil, err
	}
	if err := t.start(); err != nil {
		return nil, errors.Join(err, t.store.Close())
	}
	return t, nil
}

// build makes the first level and the mark of a new store.
func build(d *durable.Dir, desc durable.Descriptor) error {
	l, err := layoutOf(desc.Shape)
	if err != nil {
		return err
	}
	if l.depth > 0 {
		if err := d.MakeDirs(firstLevel()...); err != nil {
			return err
		}
	}
	return d.SetMark("", durable.MarkClean)
}

func (t *Tree) start() error {
	l, err := layoutOf(t.store.Shape)
	if err != nil {
		return err
	}
	if want := t.opts.depth(); t.opts.Depth != 0 && want != l.depth && want != l.old {
		return fmt.Errorf("%w: its depth is %d, not %d", blobstor.ErrLayout, l.depth, want)
	}
	t.layout.Store(l)
	t.dirs = newDirs(t.store.Dir)
	if t.opts.ReadOnly {
		t.writes.shut(blobstor.ErrReadOnly)
		return nil
	}
	unclean, err := openMark(t.store.Dir, t.opts.NoSync)
	if err != nil {
		return err
	}
	if unclean && !t.store.Created {
		t.log.Warn("fstree: the store was not closed; what it left was synced")
		t.sweep.needed.Store(true)
		t.sweep.start(t)
	}
	return nil
}

// enter admits a call; the caller leaves by t.calls.leave.
func (t *Tree) enter(ctx context.Context) error {
	if err := t.calls.enter(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		t.calls.leave()
		return err
	}
	return nil
}

// enterWrite admits a call that changes something; the caller leaves by t.leaveWrite.
func (t *Tree) enterWrite(ctx context.Context) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	if err := t.writes.enter(); err != nil {
		t.calls.leave()
		return err
	}
	return nil
}

func (t *Tree) leaveWrite() {
	t.writes.leave()
	t.calls.leave()
}

// report is the border of the package: it adds context to an error and tells the hooks. It is called when the
// call has left all gates and locks.
func (t *Tree) report(op string, p place, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, blobstor.ErrCorrupt) {
		t.count.corrupt.Add(1)
		if hook := t.opts.Hooks.Corrupt; hook != nil {
			hook(blobstor.Info{Address: p.addr, Location: location(p.key), Size: -1}, err)
		}
	}
	return t.reportFault(op, blobstor.Wrap(op, p.addr, location(p.key), err))
}

// reportPlain is report for what concerns no blob.
func (t *Tree) reportPlain(op string, err error) error {
	return t.reportFault(op, blobstor.Wrap(op, blobstor.Address{}, "", err))
}

func (t *Tree) reportFault(op string, err error) error {
	if hook := t.opts.Hooks.Fault; hook != nil && blobstor.IsFault(err) {
		hook(op, err)
	}
	return err
}

func (t *Tree) place(addr blobstor.Address) place { return placeOf(t.store.ID, addr) }
