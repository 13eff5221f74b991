package storagetest

import (
	"errors"
	"io/fs"

	"github.com/granary-store/granary/blobstor"
)

// Law 4: not found is a fact.
var absence = []clause{
	{"law4/empty storage", reading, func(f *fixture) {
		s := f.ready()
		f.lacks(s, f.new(1))
		f.lacks(s, blob{})
		f.lists(s, nil)
	}},
	{"law4/missing blob", reading, func(f *fixture) {
		blobs := f.puts(5)
		s := f.ready()
		near := blobs[3]
		near.addr.Object[31] ^= 1
		f.lacks(s, near)
		swapped := blobs[2]
		swapped.addr.Container, swapped.addr.Object = swapped.addr.Object, swapped.addr.Container
		f.lacks(s, swapped)
		for _, op := range lookups {
			err := op.do(f.ctx, s, near.addr, near.at)
			if !errors.Is(err, fs.ErrNotExist) || blobstor.IsFault(err) {
				f.Fatalf("%s of a missing blob: %v; want fs.ErrNotExist and no fault", op.name, err)
			}
			f.wrapped(op.name, err, near.addr)
		}
	}},
	{"law4/delete of a missing blob", writing, func(f *fixture) {
		s := f.ready()
		blobs := f.puts(4)
		missing := f.addr()
		err := s.Delete(f.ctx, missing, "")
		f.is("Delete of a missing blob", err, blobstor.ErrNotFound)
		f.wrapped("Delete", err, missing)
		f.ok("Delete", s.Delete(f.ctx, blobs[0].addr, ""))
		f.is("Delete twice", s.Delete(f.ctx, blobs[0].addr, ""), blobstor.ErrNotFound)
		f.lacks(s, blobs[0])
		f.hasAll(s, blobs[1:])
		f.lists(s, blobs[1:])
	}},
	{"law4/unreadable is not missing", reading, func(f *fixture) {
		f.puts(3)
		b := f.put(3000)
		s := f.ready()
		f.damage(b)
		for _, at := range []blobstor.Location{b.at, "", "?"} {
			for _, op := range lookups {
				if err := op.do(f.ctx, s, b.addr, at); errors.Is(err, blobstor.ErrNotFound) {
					f.Fatalf("%s of a damaged blob says it is not there: %v", op.name, err)
				}
			}
			_, err := s.Get(f.ctx, b.addr, at, nil)
			f.is("Get of a damaged blob", err, blobstor.ErrCorrupt)
			f.wrapped("Get", err, b.addr)
		}
	}},
	{"law4/delete of a damaged blob", once, func(f *fixture) {
		s := f.ready()
		others := f.puts(3)
		b := f.put(3000)
		f.damage(b)
		f.ok("Delete of a damaged blob", s.Delete(f.ctx, b.addr, b.at))
		for _, op := range lookups {
			// Whoever deletes a damaged blob may have lost sight of other addresses there, hence ErrCorrupt.
			f.is(op.name+" after Delete", op.do(f.ctx, s, b.addr, b.at), blobstor.ErrNotFound, blobstor.ErrCorrupt)
		}
		f.hasAll(s, others)
	}},
	{"law4/found at once after put", once, func(f *fixture) {
		s := f.ready()
		f.ok("puts and gets", f.await("puts and gets", func() error {
			return together(f.putGet(s, 20), f.putGet(s, 20), f.putGet(s, 20))
		}))
	}},
}

// putGet stores blobs and wants each to be there as soon as Put returned.
func (f *fixture) putGet(s blobstor.Storage, n int) func() error {
	blobs := make([]blob, n)
	for i := range blobs {
		blobs[i] = f.new(i * 50)
	}
	return func() error {
		for _, b := range blobs {
			if _, err := s.Put(f.ctx, b.addr, b.data); err != nil {
				return err
			}
			if err := whole(f, s, b); err != nil {
				return err
			}
		}
		return nil
	}
}

// wrapped checks that err says which operation failed on which blob.
func (f *fixture) wrapped(what string, err error, addr blobstor.Address) {
	f.Helper()
	e, ok := errors.AsType[*blobstor.Error](err)
	if !ok || e.Op == "" || e.Address != addr {
		f.Fatalf("%s: %#v is not a *blobstor.Error with operation and address", what, err)
	}
}
