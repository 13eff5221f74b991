package blobstor

import (
	"context"
	"errors"
	"iter"
	"strings"
)

// split returns the route that a location names, nil if none, and the location inside it.
func (r *Router) split(at Location) (*route, Location) {
	name, inner, ok := strings.Cut(string(at), "/")
	if !ok {
		return nil, ""
	}
	for _, rt := range r.routes {
		if rt.Name == name {
			return rt, Location(inner)
		}
	}
	return nil, ""
}

// from yields all routes, the one that at names first, each with what at means to it.
func (r *Router) from(at Location) iter.Seq2[*route, Location] {
	return func(yield func(*route, Location) bool) {
		first, inner := r.split(at)
		if first != nil && !yield(first, inner) {
			return
		}
		for _, rt := range r.routes {
			if rt != first && !yield(rt, "") {
				return
			}
		}
	}
}

// taking yields the routes to which a blob of size bytes may be put, the best one first.
func (r *Router) taking(size int64) iter.Seq[*route] {
	return func(yield func(*route) bool) {
		for _, rt := range r.routes {
			if !rt.Drain && size <= rt.limit() && !yield(rt) {
				return
			}
		}
	}
}

// search tries the routes, the one that at names first, until one has an answer.
func (r *Router) search(ctx context.Context, op string, addr Address, at Location, try func(*route, Location) error) error {
	if r.closed.Load() {
		return Wrap(op, addr, at, ErrClosed)
	}
	var failed []error
	for rt, inner := range r.from(at) {
		err := try(rt, inner)
		// An offset behind the end is an answer: an address has one content, so one size.
		if err == nil || errors.Is(err, ErrOutOfRange) {
			return rt.outerErr(err)
		}
		if ctx.Err() != nil {
			return Wrap(op, addr, at, ctx.Err())
		}
		if !errors.Is(err, ErrNotFound) {
			failed = append(failed, rt.outerErr(err))
		}
	}
	return absent(op, addr, at, failed)
}

// absent is the error of a blob that no route returned: the reasons of those that could not look, and only if
// there are none, that it is not there.
func absent(op string, addr Address, at Location, failed []error) error {
	switch len(failed) {
	case 0:
		return Wrap(op, addr, at, ErrNotFound)
	case 1:
		return failed[0]
	}
	return errors.Join(failed...)
}

// place tries the routes that take a blob of size bytes until one does not pass it on.
func (r *Router) place(op string, addr Address, size int64, try func(*route) error) error {
	if r.closed.Load() {
		return Wrap(op, addr, "", ErrClosed)
	}
	refused := Wrap(op, addr, "", r.unplaced())
	for rt := range r.taking(size) {
		err := try(rt)
		if !passes(err) {
			return rt.outerErr(err)
		}
		refused = stronger(refused, rt.outerErr(err))
	}
	return refused
}

// unplaced is the error of a blob that no route takes.
func (r *Router) unplaced() error {
	for range r.taking(0) {
		return ErrTooLarge
	}
	return ErrReadOnly // all routes drain
}

// passes reports whether the next larger route may take what one refused.
func passes(err error) bool { return errors.Is(err, ErrNoSpace) || errors.Is(err, ErrTooLarge) }

// stronger picks what to tell of two refusals: a blob that would fit once there is room is not too large.
func stronger(a, b error) error {
	if errors.Is(a, ErrNoSpace) {
		return a
	}
	return b
}
