package fstree

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// All iterates over the blobs behind after, in the order of locations. Blobs whose location equals after come
// again, for two blobs may share one. The names of a directory are read before its first blob is yielded, in the
// middle of a Reshape those of all directories below one of the smaller depth. A blob that cannot be looked at is
// yielded with its address and an error, a directory that cannot with a location; then the iteration goes on.
func (t *Tree) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		for s := range t.walk(ctx, after) {
			var info blobstor.Info
			err := s.err
			if err == nil {
				info, err = t.stat(ctx, s.place)
				if errors.Is(err, blobstor.ErrNotFound) {
					continue // Deleted meanwhile.
				}
			}
			switch {
			case endsAll(err):
				yield(blobstor.Info{}, blobstor.Wrap("all", blobstor.Address{}, "", err))
				return
			case err != nil:
				info = blobstor.Info{Address: s.addr, Location: location(s.key), Size: -1}
				err = t.report("all", s.place, err)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// endsAll reports whether there is no use in going on after an error.
func endsAll(err error) bool {
	return errors.Is(err, blobstor.ErrClosed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// sight is what a walk meets: a blob's name, or what is wrong at a place.
type sight struct {
	place
	err error
}

// walk goes over the names of all blobs, in the order of locations. It goes on after any error.
func (t *Tree) walk(ctx context.Context, after blobstor.Location) iter.Seq[sight] {
	return func(yield func(sight) bool) {
		var from uint64
		if len(after) == 8 {
			from = locationKey(after)
		}
		for more := true; more; {
			from, more = t.walkBy(t.layout.Load(), from, t.listing(ctx), yield)
		}
	}
}

// listing returns a way to list directories that ends with ctx and with Close.
func (t *Tree) listing(ctx context.Context) func(dirKey) ([]string, error) {
	return func(key dirKey) ([]string, error) {
		if err := t.enter(ctx); err != nil {
			return nil, err
		}
		defer t.calls.leave()
		return t.list(key)
	}
}

// walkBy walks from a location on while the layout is in force. If there is more to do it returns the location to
// go on from by the next one: what was listed meanwhile may lack blobs that were moved.
func (t *Tree) walkBy(l *layout, from uint64, list func(dirKey) ([]string, error), yield func(sight) bool) (uint64, bool) {
	for key, err := range leaves(rootKey, l.coarse(), from, list) {
		seen := []sight{{place{key: key.first()}, err}}
		if err == nil {
			seen = t.look(l, key, from, list)
		}
		if t.layout.Load() != l {
			return max(from, key.first()), true
		}
		for _, s := range seen {
			if !yield(s) {
				return 0, false
			}
		}
	}
	return 0, false
}

// look returns what the names in a directory of the coarse depth, and those in directories below it where blobs
// lie, say is there from a location on, in the order of locations. Listed in the order in which blobs move, the
// directories show each at least once.
func (t *Tree) look(l *layout, key dirKey, from uint64, list func(dirKey) ([]string, error)) []sight {
	var seen []sight
	for _, depth := range l.depths() {
		for dir, err := range leaves(key, depth, from, list) {
			if err == nil {
				seen, err = t.scan(seen, dir, from, list)
			}
			if err != nil {
				seen = append(seen, sight{place{key: dir.first()}, err})
			}
		}
	}
	slices.SortFunc(seen, func(a, b sight) int { return a.compare(b.place) })
	return slices.CompactFunc(seen, func(a, b sight) bool { return a.place == b.place && a.err == nil && b.err == nil })
}

// scan appends what the names of a directory say is there.
func (t *Tree) scan(seen []sight, dir dirKey, from uint64, list func(dirKey) ([]string, error)) ([]sight, error) {
	names, err := list(dir)
	if err != nil {
		return seen, err
	}
	seen = slices.Grow(seen, len(names))
	for _, name := range names {
		addr, ok := parseName(name)
		if !ok {
			continue // A temporary, another directory, or none of ours.
		}
		s := sight{place: t.place(addr)}
		if s.dir(dir.level()) != dir {
			s.err = fmt.Errorf("%w: it lies in the wrong directory", blobstor.ErrCorrupt)
		}
		if s.key >= from {
			seen = append(seen, s)
		}
	}
	return seen, nil
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

// leaves iterates over the directories of a depth at or below top, in the order of locations, from a location on;
// with an error, over those that cannot be listed.
func leaves(top dirKey, depth int, from uint64, list func(dirKey) ([]string, error)) iter.Seq2[dirKey, error] {
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
	return func(yield func(dirKey, error) bool) { below(top, yield) }
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
