package fstree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// All iterates over the blobs behind after, in the order of locations. Blobs whose location equals after come
// again, for two blobs may share one. The names of a directory are read before its first blob is yielded. A blob
// that cannot be looked at is yielded with its address and an error, a directory that cannot with a location;
// then the iteration goes on.
func (t *Tree) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	var from uint64
	if len(after) == 8 {
		from = locationKey(after)
	}
	return func(yield func(blobstor.Info, error) bool) {
		list := func(key dirKey) ([]string, error) {
			if err := t.enter(ctx); err != nil {
				return nil, err
			}
			defer t.calls.leave()
			return t.list(key)
		}
		for key, err := range leaves(t.depth, from, list) {
			var found []place
			if err == nil {
				found, err = t.scan(key, from, list)
			}
			if err != nil {
				if !t.yieldError(place{key: key.first()}, err, yield) {
					return
				}
			}
			if !t.yieldAll(ctx, key, found, yield) {
				return
			}
		}
	}
}

func (t *Tree) yieldAll(ctx context.Context, dir dirKey, found []place, yield func(blobstor.Info, error) bool) bool {
	for _, p := range found {
		info, err := t.look(ctx, dir, p)
		switch {
		case errors.Is(err, blobstor.ErrNotFound): // Deleted meanwhile.
		case err != nil:
			if !t.yieldError(p, err, yield) {
				return false
			}
		case !yield(info, nil):
			return false
		}
	}
	return true
}

// look is Stat for a blob that was found in a directory.
func (t *Tree) look(ctx context.Context, dir dirKey, p place) (blobstor.Info, error) {
	if p.dir(t.depth) != dir {
		return blobstor.Info{}, fmt.Errorf("%w: it lies in the wrong directory", blobstor.ErrCorrupt)
	}
	return t.stat(ctx, p)
}

// yieldError yields an error and reports whether the iteration goes on.
func (t *Tree) yieldError(p place, err error, yield func(blobstor.Info, error) bool) bool {
	if endsAll(err) {
		yield(blobstor.Info{}, blobstor.Wrap("all", blobstor.Address{}, "", err))
		return false
	}
	info := blobstor.Info{Address: p.addr, Location: location(p.key), Size: -1}
	return yield(info, t.report("all", p, err))
}

func endsAll(err error) bool {
	return errors.Is(err, blobstor.ErrClosed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// scan returns what the names of a directory say is there, in the order of locations, from a location on.
func (t *Tree) scan(dir dirKey, from uint64, list func(dirKey) ([]string, error)) ([]place, error) {
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	found := make([]place, 0, len(names))
	for _, name := range names {
		addr, ok := parseName(name)
		if !ok {
			continue // A temporary, or none of ours.
		}
		if p := t.place(addr); p.key >= from {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.key, b.key), a.addr.Compare(b.addr))
	})
	return found, nil
}

// list returns the names in a directory.
func (t *Tree) list(key dirKey) (names []string, err error) {
	dir, err := t.dirs.get(key, false)
	if err != nil {
		return nil, err
	}
	defer t.dirs.put(dir)
	err = t.dirs.retry(func() error { names, err = dir.Names(); return err })
	return names, err
}

// leaves iterates over the directories that hold blobs, in the order of locations, from a location on; with an
// error, over those that cannot be listed.
func leaves(depth int, from uint64, list func(dirKey) ([]string, error)) iter.Seq2[dirKey, error] {
	var below func(key dirKey, yield func(dirKey, error) bool) bool
	below = func(key dirKey, yield func(dirKey, error) bool) bool {
		if key.last() < from {
			return true
		}
		if key.level() == depth {
			return yield(key, nil)
		}
		children, err := childrenOf(key, list)
		if err != nil {
			return yield(key, err)
		}
		for _, b := range children {
			if !below(key.child(b), yield) {
				return false
			}
		}
		return true
	}
	return func(yield func(dirKey, error) bool) { below(rootKey, yield) }
}

// childrenOf returns the directories below one, sorted. Those of the first level must all be there.
func childrenOf(key dirKey, list func(dirKey) ([]string, error)) ([]byte, error) {
	var children []byte
	if key == rootKey {
		for b := range 256 {
			children = append(children, byte(b))
		}
		return children, nil
	}
	names, err := list(key)
	for _, name := range names {
		if b, ok := parseLevel(name); ok {
			children = append(children, b)
		}
	}
	slices.Sort(children)
	return children, err
}
