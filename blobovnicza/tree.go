package blobovnicza

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

const (
	storeKind   = "blobovnicza"
	storeFormat = 1
	treeDir     = "tree" // leaves are below it, so that no file of theirs lies beside the descriptor
)

// Tree is an open store of blobovniczas. It is a blobstor.Storage, RangeReader and Batcher; streams over it are
// those of blobstor.Stream. All methods are safe for concurrent use.
type Tree struct {
	store    *durable.Store
	storeID  [16]byte
	opts     Options
	log      *slog.Logger
	leaves   []*leaf
	readOnly atomic.Bool
	handles  handles
	blocks   *blockCache   // of all index files
	tables   atomic.Uint64 // the last one's number in that

	calls  gate // every call goes through it
	jobs   sync.WaitGroup
	keeper keeper

	writing   sync.RWMutex // held for reading by steps in the background that write
	turns     turns
	spare     aside
	used      atomic.Int64 // bytes of all files
	newlyDead atomic.Int64 // bytes replaced since the keeper was woken for that
	pressed   atomic.Bool  // space is short: compact what there is

	counters
}

var (
	_ blobstor.Storage     = (*Tree)(nil)
	_ blobstor.RangeReader = (*Tree)(nil)
	_ blobstor.Batcher     = (*Tree)(nil)
)

// Open opens the store in dir, or makes it if opts.Create is set. It returns an error that matches ErrLayout if
// there is none, or one of another kind, version, owner or shape, and ErrInUse if it is open already. A tree of
// several leaves opens each when it is used first. Files that have no index yet are read, after a crash the one that
// took the writes. Damage never keeps a store from opening: it is logged, reported to Hooks.Fault, and makes what it
// hit ErrCorrupt.
func Open(dir string, opts *Options) (*Tree, error) { return open(dir, opts, nil) }

// open is Open with a seam for faults.
func open(dir string, opts *Options, tap durable.Tap) (*Tree, error) {
	t := &Tree{opts: opts.withDefaults()}
	if err := t.opts.Validate(); err != nil {
		return nil, err
	}
	t.log = t.opts.Logger
	t.readOnly.Store(t.opts.ReadOnly)
	t.handles.max = t.opts.MaxOpen
	t.blocks = newBlockCache(t.opts.IndexCache)
	var err error
	t.store, err = durable.OpenStore(dir, t.storeOptions(tap))
	if err != nil {
		return nil, blobstor.Wrap("open", blobstor.Address{}, "", err)
	}
	t.storeID = t.store.ID
	t.initKeeper()
	if err := t.openLeaves(); err != nil {
		return nil, blobstor.Wrap("open", blobstor.Address{}, "", errors.Join(err, t.closeLeaves(), t.store.Close()))
	}
	t.startKeeper()
	return t, nil
}

// storeOptions expresses the shape as width and depth+1, because zero means unset in a descriptor.
func (t *Tree) storeOptions(tap durable.Tap) durable.StoreOptions {
	o := durable.StoreOptions{
		Descriptor: durable.Descriptor{Kind: storeKind, Format: storeFormat, Owner: t.opts.Owner},
		Defaults:   [4]uint32{1, 1},
		Create:     t.opts.Create,
		ReadOnly:   t.opts.ReadOnly,
		Tap:        tap,
		Build:      t.build,
		Perm:       t.opts.Perm,
	}
	if t.opts.Width > 0 {
		o.Shape = [4]uint32{uint32(t.opts.Width), uint32(t.opts.Depth) + 1}
	}
	return o
}

// build makes every leaf with its first file, so that from then on a leaf without files is damage.
func (t *Tree) build(top *durable.Dir, desc durable.Descriptor) error {
	if err := top.RemoveAll(treeDir); err != nil { // what a build before the crash has left
		return err
	}
	t.storeID = desc.ID
	return eachLeaf(top, desc.Shape, func(id uint16, dir *durable.Dir) error {
		l := &leaf{tree: t, id: id}
		l.nextNumber = 1
		f, err := l.create(dir, nil)
		if err != nil {
			return errors.Join(err, dir.Close())
		}
		return errors.Join(f.data.close(), dir.Close())
	})
}

// eachLeaf makes the tree's directories and calls visit with that of every leaf, which visit owns. They are named
// for the digits of the leaf's number to the base of the width.
func eachLeaf(top *durable.Dir, shape [4]uint32, visit func(id uint16, dir *durable.Dir) error) error {
	var walk func(dir *durable.Dir, id, levels int) error
	walk = func(dir *durable.Dir, id, levels int) error {
		if levels == 0 {
			return visit(uint16(id), dir)
		}
		for digit := range int(shape[0]) {
			sub, err := dir.Mkdir(strconv.Itoa(digit))
			if err != nil {
				return errors.Join(err, dir.Close())
			}
			if err := walk(sub, id*int(shape[0])+digit, levels-1); err != nil {
				return errors.Join(err, dir.Close())
			}
		}
		return dir.Close()
	}
	root, err := top.Mkdir(treeDir)
	if err != nil {
		return err
	}
	return walk(root, 0, int(shape[1])-1)
}

// openLeaves makes the leaves known. They open when they are used first, but a single one at once: there is nothing
// else to serve if it fails.
func (t *Tree) openLeaves() error {
	width, levels := t.store.Shape[0], t.store.Shape[1]
	if width < 1 || width > maxLeaves || levels < 1 || leafCount(int(width), int(levels-1)) > maxLeaves {
		return fmt.Errorf("%w: shape %v", blobstor.ErrLayout, t.store.Shape)
	}
	for id := range leafCount(int(width), int(levels-1)) {
		t.leaves = append(t.leaves, t.newLeaf(uint16(id)))
	}
	t.used.Store(0) // also of what build has made: it is measured again
	if size, err := t.store.Dir.Stat(spareName); err == nil {
		t.used.Add(size)
	}
	for _, l := range t.leaves {
		if err := l.measure(); err != nil {
			t.log.Error("size of leaf unknown", "leaf", l.id, "err", err)
		}
	}
	if len(t.leaves) == 1 {
		return t.leaves[0].use()
	}
	return nil
}

// isOurs reports whether a file in a leaf's directory counts as used: what a sweep removes does not.
func isOurs(name string) bool {
	_, data := parseName(name, dataSuffix)
	_, index := parseName(name, indexSuffix)
	return data || index || name == reserveName
}

// measure adds the leaf's files to what the tree uses.
func (l *leaf) measure() error {
	return l.inDir(func(dir *durable.Dir) error {
		names, err := dir.Names()
		if err != nil {
			return err
		}
		for _, name := range names {
			if !isOurs(name) {
				continue
			}
			if size, err := dir.Stat(name); err == nil {
				l.tree.used.Add(size)
			}
		}
		return nil
	})
}

func (t *Tree) closeLeaves() error {
	var err error
	for _, l := range t.leaves {
		l.commits.Close()
		if l.open.Load() && !t.opts.ReadOnly {
			err = errors.Join(err, l.finish())
		}
	}
	return errors.Join(err, t.handles.close())
}

// Close waits for the calls that run and ends compactions, then releases the store. All that was acknowledged is
// durable already, with NoSync it is then.
func (t *Tree) Close() error {
	if !t.calls.close() {
		return nil
	}
	t.stopKeeper()
	return blobstor.Wrap("close", blobstor.Address{}, "", errors.Join(t.closeLeaves(), t.store.Close()))
}

// SetReadOnly refuses writes with ErrReadOnly from now on, also those that run and have not come to their commit, and
// returns when the others have ended; or it lifts that. Reading goes on. If ctx ends first, writes are refused, but some
// may still be running. A store that was opened read-only stays so: lifting it is ErrReadOnly.
func (t *Tree) SetReadOnly(ctx context.Context, on bool) error {
	call, err := t.calls.enter(ctx, &blobstor.Address{})
	if err != nil {
		return blobstor.Wrap("set read-only", blobstor.Address{}, "", err)
	}
	defer call.RUnlock()
	if t.opts.ReadOnly {
		if on {
			return nil
		}
		return blobstor.Wrap("set read-only", blobstor.Address{}, "", blobstor.ErrReadOnly)
	}
	if on {
		for _, l := range t.leaves { // or their first use would repair, later, what a crash left torn
			if err := l.use(); err != nil {
				t.log.Warn("leaf not opened", "leaf", l.id, "err", err)
			}
		}
	}
	t.readOnly.Store(on)
	if !on {
		return nil
	}
	t.writing.Lock() // when what was begun in the background has ended
	defer t.writing.Unlock()
	for _, l := range t.leaves {
		if !l.open.Load() {
			continue
		}
		// An empty operation is committed behind all that queued before it. That this commit failed is told to them.
		if err := l.do(ctx, new(request), 0); err != nil && ctx.Err() != nil {
			return blobstor.Wrap("set read-only", blobstor.Address{}, "", err)
		}
	}
	return nil
}

func (t *Tree) sortKey(addr blobstor.Address) uint64 { return sortKey(t.storeID, addr) }

// leaf returns the one leaf that an address belongs to, open.
func (t *Tree) leaf(key uint64) (*leaf, error) {
	l := t.leaves[key%uint64(len(t.leaves))]
	return l, l.use()
}

// tellFault tells the Fault hook of an error that is met inside a call or in the background. It does not wait for the
// hook, which may want what is held here, or call what waits for this.
func (t *Tree) tellFault(op string, err error) {
	if hook := t.opts.Hooks.Fault; hook != nil && blobstor.IsFault(err) {
		go hook(op, err)
	}
}

// fail wraps an error of a call and tells the hooks. The call must be over: a hook may begin another one.
func (t *Tree) fail(op string, addr blobstor.Address, at blobstor.Location, err error) error {
	err = blobstor.Wrap(op, addr, at, err)
	if errors.Is(err, blobstor.ErrCorrupt) {
		t.corrupt.Add(1)
		if hook := t.opts.Hooks.Corrupt; hook != nil {
			hook(blobstor.Info{Address: addr, Location: at}, err)
		}
	}
	if hook := t.opts.Hooks.Fault; hook != nil && blobstor.IsFault(err) {
		hook(op, err)
	}
	return err
}
