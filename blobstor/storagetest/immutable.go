package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// Law 2: an address names one content.
var immutable = []clause{
	{"law2/put again changes nothing", once, func(f *fixture) {
		s := f.ready()
		b := f.put(2000)
		before, err := s.Stat(f.ctx, b.addr, "")
		f.ok("Stat", err)
		_, err = s.Put(f.ctx, b.addr, f.bytes(2000))
		f.ok("Put of a stored address", err)
		f.has(s, b)
		after, err := s.Stat(f.ctx, b.addr, "")
		f.ok("Stat", err)
		if after != before {
			f.Fatalf("Put of a stored address moved it: %+v, before %+v", after, before)
		}
		f.lists(s, []blob{b})
	}},
	{"law2/commit of a stored address changes nothing", writing, func(f *fixture) {
		s := f.ready()
		b := f.put(2000)
		again := blob{addr: b.addr, data: f.bytes(2000)}
		f.stream(s, &again, -1, 512)
		f.has(s, b)
		f.lists(s, []blob{b})
	}},
	{"law2/delete and put again", once, func(f *fixture) {
		s := f.ready()
		b := f.put(900)
		for range 3 {
			f.ok("Delete", s.Delete(f.ctx, b.addr, b.at))
			f.lacks(s, b)
			f.putTo(s, &b)
			f.has(s, b)
		}
		f.lists(s, []blob{b})
	}},
	{"law2/puts of one address at once", once, func(f *fixture) {
		s := f.ready()
		for range 5 {
			b := f.new(3000)
			var all sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				all.Go(func() { _, errs[i] = s.Put(f.ctx, b.addr, b.data) })
			}
			all.Wait()
			f.ok("Put", errors.Join(errs...))
			f.has(s, b)
		}
		if n := len(f.list(s, "")); n != 5 {
			f.Fatalf("All yielded %d blobs, want 5", n)
		}
	}},
	{"law2/put heals a damaged copy", once, func(f *fixture) {
		heal(f, func(s blobstor.BlobStor, b *blob) { f.putTo(s, b) })
	}},
	{"law2/commit heals a damaged copy", writing, func(f *fixture) {
		heal(f, func(s blobstor.BlobStor, b *blob) { f.stream(s, b, int64(len(b.data)), 1000) })
	}},
	{"law2/batch heals a damaged copy", writing, func(f *fixture) {
		heal(f, func(s blobstor.BlobStor, b *blob) {
			its := items([]blob{*b, f.new(5)})
			f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, its))
			b.at = its[0].Location
			f.ok("Delete", s.Delete(f.ctx, its[1].Address, ""))
		})
	}},
	{"law2/one address twice in a batch", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(600)
		its := items([]blob{b, f.new(20), b})
		f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, its))
		f.has(s, b)
		if n := len(f.list(s, "")); n != 2 {
			f.Fatalf("All yielded %d blobs, want 2", n)
		}
		err := blobstor.DeleteBatch(f.ctx, s, its)
		f.is("DeleteBatch with an address twice", err, blobstor.ErrNotFound)
		if (its[0].Err == nil) == (its[2].Err == nil) {
			f.Fatalf("an address deleted twice in a batch: %v and %v, want nil once", its[0].Err, its[2].Err)
		}
		f.lists(s, nil)
	}},
	{"law2/put, get and delete of one address at once", once, func(f *fixture) {
		s := f.ready()
		b := f.new(5000)
		err := f.await("the mixed work on one address", func() error {
			return together(
				repeat(40, func() error { _, err := s.Put(f.ctx, b.addr, b.data); return err }),
				repeat(40, func() error { _, err := s.Put(f.ctx, b.addr, b.data); return err }),
				repeat(40, func() error { return maybe(s.Delete(f.ctx, b.addr, "")) }),
				repeat(80, func() error { return maybe(whole(f, s, b)) }),
				repeat(40, func() error { _, err := s.Stat(f.ctx, b.addr, ""); return maybe(err) }),
			)
		})
		f.ok("mixed work on one address", err)
		f.putTo(s, &b)
		f.lists(s, []blob{b})
		f.ok("Delete", s.Delete(f.ctx, b.addr, b.at))
		f.lacks(s, b)
	}},
	{"law2/mixed work on many addresses", writing, mixedWork},
}

// heal damages a blob, stores it again, and wants it whole, now and after a loss of power.
func heal(f *fixture, again func(s blobstor.BlobStor, b *blob)) {
	s := f.ready()
	others := f.puts(5)
	b := f.put(5000)
	f.damage(b)
	_, err := s.Get(f.ctx, b.addr, b.at, nil)
	f.is("Get of a damaged blob", err, blobstor.ErrCorrupt)
	again(s, &b)
	stale := b
	stale.at = ""
	f.has(s, b)
	f.has(s, stale)
	f.hasAll(s, others)
	f.lists(s, append(others, b))
	if f.h.PowerLoss != nil {
		s = f.powerLoss()
		f.has(s, b)
		f.lists(s, append(others, b))
	}
	f.ok("Delete", s.Delete(f.ctx, b.addr, b.at))
	f.lacks(s, b)
}

// mixedWork lets goroutines put, read, list and delete, each on blobs of its own, and reads those of the others.
func mixedWork(f *fixture) {
	s := f.ready()
	const workers, each = 4, 12
	blobs := make([]blob, workers*each)
	for i := range blobs {
		blobs[i] = f.new(i * 131)
	}
	work := make([]func() error, 0, workers+2)
	for w := range workers {
		mine := blobs[w*each : (w+1)*each]
		work = append(work, func() error { return putAndDelete(f, s, mine) })
	}
	read := repeat(3, func() error {
		for _, b := range blobs {
			if err := maybe(whole(f, s, b)); err != nil {
				return err
			}
		}
		return nil
	})
	list := repeat(5, func() error {
		for _, err := range s.All(f.ctx, "") {
			if err != nil {
				return err
			}
		}
		return nil
	})
	f.ok("mixed work", f.await("the mixed work", func() error { return together(append(work, read, list)...) }))
	var kept []blob
	for i, b := range blobs {
		if i%each%2 == 0 {
			kept = append(kept, b)
		}
	}
	f.hasAll(s, kept)
	f.lists(s, kept)
}

// putAndDelete stores the blobs one by one and in a batch, and deletes every second one.
func putAndDelete(f *fixture, s blobstor.Storage, blobs []blob) error {
	half := len(blobs) / 2
	for _, b := range blobs[:half] {
		if _, err := s.Put(f.ctx, b.addr, b.data); err != nil {
			return err
		}
	}
	if err := blobstor.PutBatch(f.ctx, s, items(blobs[half:])); err != nil {
		return err
	}
	for i, b := range blobs {
		if err := whole(f, s, b); err != nil {
			return err
		}
		if i%2 == 1 {
			if err := s.Delete(f.ctx, b.addr, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole reads a blob and compares it.
func whole(f *fixture, s blobstor.Storage, b blob) error {
	got, err := s.Get(f.ctx, b.addr, b.at, nil)
	if err == nil && !bytes.Equal(got, b.data) {
		err = fmt.Errorf("Get returned wrong content, %d bytes instead of %d", len(got), len(b.data))
	}
	return err
}

// maybe forgives that a blob is not there.
func maybe(err error) error {
	if errors.Is(err, blobstor.ErrNotFound) {
		return nil
	}
	return err
}

func repeat(n int, fn func() error) func() error {
	return func() error {
		for range n {
			if err := fn(); err != nil {
				return err
			}
		}
		return nil
	}
}

// together runs the functions at once and joins their errors.
func together(fns ...func() error) error {
	var all sync.WaitGroup
	errs := make([]error, len(fns))
	for i, fn := range fns {
		all.Go(func() { errs[i] = fn() })
	}
	all.Wait()
	return errors.Join(errs...)
}
