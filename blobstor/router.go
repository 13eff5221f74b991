package blobstor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
)

// DefaultSmall is the usual border in bytes between a route of packed small blobs and one of files.
const DefaultSmall = 128 << 10 // 128 KiB

// Route is a size class and the storage that keeps it.
type Route struct {
	// Name is 1 to 8 of [a-z0-9]. It is part of every location and so of what programs have stored: a route
	// keeps its name for ever.
	Name string

	// MaxSize is the largest blob in bytes that is put here. 0 leaves it to the storage; such a route is last.
	MaxSize int64

	// Storage belongs to the router from New on, which closes it.
	Storage Storage

	// Drain makes the route one that is read and deleted from but never put to, so an old store empties
	// itself while it serves.
	Drain bool
}

// Router is a [BlobStor] over several storages. A blob goes to the first route that it fits, in the order of
// MaxSize; when that one is full, or the blob is above the storage's own limit, to the next larger one. So an
// address may lie in two routes, as it may after a MaxSize was changed: Put looks only at the route it chose,
// reads take the first verified copy, Delete removes the blob from every route, and All yields one copy of each
// route. A location is the route's name, '/', and the storage's own location; All goes in the order of names, so
// that locations sort, and takes an after that names no route as unusable.
//
// ErrNotFound is the answer of all routes. If one could not look, the errors of those that could not are the
// result.
type Router struct {
	routes []*route // by MaxSize
	named  []*route // by name
	spool  int64    // bytes that a writer of unknown size keeps in memory
	closed atomic.Bool
}

var (
	_ BlobStor    = (*Router)(nil)
	_ RangeReader = (*Router)(nil)
	_ Batcher     = (*Router)(nil)
)

// New returns a router, or an error that names every bad route; then the storages stay the caller's.
func New(routes ...Route) (*Router, error) {
	if err := validate(routes); err != nil {
		return nil, err
	}
	r := &Router{spool: DefaultSmall}
	for _, rt := range routes {
		r.routes = append(r.routes, &route{Route: rt, stream: Stream(rt.Storage), prefix: Location(rt.Name + "/")})
	}
	r.named = slices.Clone(r.routes)
	slices.SortStableFunc(r.routes, func(a, b *route) int { return cmp.Compare(a.limit(), b.limit()) })
	slices.SortFunc(r.named, func(a, b *route) int { return cmp.Compare(a.prefix, b.prefix) })
	for rt := range r.taking(0) {
		if rt.MaxSize > 0 {
			r.spool = rt.MaxSize
		}
		break
	}
	return r, nil
}

func validate(routes []Route) error {
	var errs []error
	if len(routes) == 0 {
		errs = append(errs, errors.New("blobstor: a router needs a route"))
	}
	seen := map[string]bool{}
	for i, rt := range routes {
		bad := func(is bool, what string) {
			if is {
				errs = append(errs, fmt.Errorf("blobstor: route %d, %q: %s", i, rt.Name, what))
			}
		}
		bad(!validName(rt.Name), "a name is 1 to 8 of [a-z0-9]")
		bad(seen[rt.Name], "the name is taken")
		bad(rt.MaxSize < 0, "MaxSize is negative")
		bad(rt.Storage == nil, "no storage")
		seen[rt.Name] = true
	}
	return errors.Join(errs...)
}

func validName(name string) bool {
	const longest = MaxLocation - MaxInnerLocation - 1
	return len(name) >= 1 && len(name) <= longest &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Put stores the blob in the first route that takes it.
func (r *Router) Put(ctx context.Context, addr Address, data []byte) (at Location, err error) {
	err = r.place("put", addr, int64(len(data)), func(rt *route) error {
		inner, err := rt.Storage.Put(ctx, addr, data)
		at = rt.outer(inner)
		return err
	})
	if err != nil {
		return "", err
	}
	return at, nil
}

// Get appends the first copy that verifies.
func (r *Router) Get(ctx context.Context, addr Address, at Location, dst []byte) ([]byte, error) {
	out := dst
	err := r.search(ctx, "get", addr, at, func(rt *route, inner Location) error {
		got, err := rt.Storage.Get(ctx, addr, inner, dst)
		if err == nil {
			out = got
		}
		return err
	})
	return out, err
}

// ReadRange reads from the first copy that verifies.
func (r *Router) ReadRange(ctx context.Context, addr Address, at Location, p []byte, off int64) (n int, size int64, err error) {
	err = r.search(ctx, "read range", addr, at, func(rt *route, inner Location) (err error) {
		n, size, err = ReadRange(ctx, rt.Storage, addr, inner, p, off)
		return err
	})
	return n, size, err
}

// Stat describes the first copy.
func (r *Router) Stat(ctx context.Context, addr Address, at Location) (info Info, err error) {
	err = r.search(ctx, "stat", addr, at, func(rt *route, inner Location) error {
		got, err := rt.Storage.Stat(ctx, addr, inner)
		if err == nil {
			info = got
			info.Location = rt.outer(got.Location)
		}
		return err
	})
	return info, err
}

// Delete removes the blob from every route that has it.
func (r *Router) Delete(ctx context.Context, addr Address, at Location) error {
	items := []Item{{Address: addr, Location: at}}
	return r.DeleteBatch(ctx, items)
}

// All goes route by route.
func (r *Router) All(ctx context.Context, after Location) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		routes, inner := r.named, Location("")
		if at, rest := r.split(after); at != nil {
			routes, inner = routes[slices.Index(routes, at):], rest
		}
		for _, rt := range routes {
			for info, err := range rt.Storage.All(ctx, inner) {
				if err = rt.outerErr(err); err == nil || info.Location != "" {
					info.Location = rt.outer(info.Location)
				}
				if !yield(info, err) || err != nil && !aboutOne(err) {
					return
				}
			}
			inner = ""
		}
	}
}

// aboutOne reports whether an error of All concerns a single blob, so that the iteration goes on.
func aboutOne(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (!e.Address.IsZero() || e.Location != "")
}

// Close closes the storages and joins their errors.
func (r *Router) Close() error {
	r.closed.Store(true)
	var errs []error
	for _, rt := range r.routes {
		errs = append(errs, rt.stream.Close())
	}
	return errors.Join(errs...)
}

// route is a Route in use.
type route struct {
	Route
	stream BlobStor
	prefix Location // name and '/'
}

func (rt *route) limit() int64 {
	if rt.MaxSize == 0 {
		return math.MaxInt64
	}
	return rt.MaxSize
}

func (rt *route) outer(inner Location) Location { return rt.prefix + inner }

// outerErr lets the location in an error be one of the router.
func (rt *route) outerErr(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // what it is wrapped in would be lost
	if !ok || e.Location == "" {
		return err
	}
	outer := *e
	outer.Location = rt.outer(e.Location)
	return &outer
}
