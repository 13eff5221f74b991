package storagetest

import (
	"github.com/granary-store/granary/blobstor"
)

// Law 13: a sync that failed.
var failedSync = []clause{
	{"law13/writes are ErrFailed", writing, func(f *fixture) {
		s := f.ready()
		kept := f.puts(5)
		defer f.failSync()()
		b := f.new(3000)
		_, err := s.Put(f.ctx, b.addr, b.data)
		f.failed("Put", err)
		f.wrapped("Put", err, b.addr)
		its := items([]blob{f.new(100), f.new(200)})
		f.failed("PutBatch", blobstor.PutBatch(f.ctx, s, its))
		for _, it := range its {
			f.failed("Err of an item", it.Err)
		}
		f.failed("stream", copyIn(f, s, f.new(100)))
		f.failed("Delete", s.Delete(f.ctx, kept[0].addr, kept[0].at))
		f.hasAll(s, kept[1:])
	}},
	{"law13/acknowledged data stays readable", once, func(f *fixture) {
		s := f.ready()
		kept := f.puts(10)
		defer f.failSync()()
		_, err := s.Put(f.ctx, f.addr(), f.bytes(10))
		f.failed("Put", err)
		for _, b := range kept {
			hasEvery(f, s, b)
		}
		for _, b := range kept {
			if _, ok := f.list(s, "")[b.addr]; !ok {
				f.Fatalf("All misses an acknowledged blob after a failed sync")
			}
		}
	}},
	{"law13/a failed put is not acknowledged by a second", once, func(f *fixture) {
		s := f.ready()
		heal := f.failSync()
		defer heal()
		b := f.new(3000)
		put := func(s blobstor.Storage) error {
			_, err := s.Put(f.ctx, b.addr, b.data)
			return err
		}
		for range 3 {
			f.failed("Put", put(s))
		}
		heal()
		s = f.healed(s, put)
		f.has(s, b)
		f.has(f.powerLoss(), b)
	}},
	{"law13/a failed put never comes true", once, func(f *fixture) {
		s := f.ready()
		kept := f.puts(5)
		heal := f.failSync()
		b := f.new(3000)
		_, err := s.Put(f.ctx, b.addr, b.data)
		f.failed("Put", err)
		heal()
		later := f.new(500)
		s = f.healed(s, func(s blobstor.Storage) error {
			_, err := s.Put(f.ctx, later.addr, later.data)
			return err
		})
		kept = append(kept, later)
		f.lacks(s, b)
		f.lists(s, kept)
		s = f.powerLoss()
		f.lacks(s, b)
		f.hasAll(s, kept)
		f.lists(s, kept)
	}},
	{"law13/a failed delete is whole or gone", once, func(f *fixture) {
		s := f.ready()
		b := f.put(3000)
		heal := f.failSync()
		f.failed("Delete", s.Delete(f.ctx, b.addr, b.at))
		heal()
		if err := whole(f, s, b); err != nil {
			f.is("Get after a failed Delete", err, blobstor.ErrNotFound)
		}
		s = f.healed(s, func(s blobstor.Storage) error { return maybe(s.Delete(f.ctx, b.addr, b.at)) })
		f.lacks(s, b)
		f.lacks(f.powerLoss(), b)
	}},
	{"law13/syncs fail beside writers", once, func(f *fixture) {
		heal := func() {}
		f.beside(func() { heal = f.failSync() }, func() { heal() }, blobstor.ErrFailed)
	}},
}

func (f *fixture) failSync() (heal func()) {
	f.Helper()
	f.need("FailSync", f.h.FailSync != nil)
	return f.h.FailSync(f, f.raw)
}

// healed repeats a write once syncs work again: it succeeds, or what went read-only takes it after a reopen.
func (f *fixture) healed(s blobstor.BlobStor, write func(blobstor.Storage) error) blobstor.BlobStor {
	f.Helper()
	if err := write(s); err != nil {
		f.is("write after a failed sync", err, blobstor.ErrFailed)
		s = f.reopen()
		f.ok("write after a reopen", write(s))
	}
	return s
}

func (f *fixture) failed(what string, err error) {
	f.Helper()
	f.is(what+" whose sync failed", err, blobstor.ErrFailed)
	if !blobstor.IsFault(err) {
		f.Fatalf("%s whose sync failed is no fault: %v", what, err)
	}
}
