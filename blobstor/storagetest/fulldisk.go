package storagetest

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// Law 12: a full disk.
var fullDisk = []clause{
	{"law12/put fails clean", writing, func(f *fixture) {
		s := f.ready()
		kept := f.puts(8)
		release := f.full()
		defer release()
		refused := []blob{f.new(4000), f.new(4000), f.new(4000)}
		_, err := s.Put(f.ctx, refused[0].addr, refused[0].data)
		f.noSpace("Put", err)
		f.wrapped("Put", err, refused[0].addr)
		its := items(refused[1:2])
		f.noSpace("PutBatch", blobstor.PutBatch(f.ctx, s, its))
		f.noSpace("Err of an item", its[0].Err)
		f.noSpace("stream", copyIn(f, s, refused[2]))
		for _, b := range refused {
			f.lacks(s, b)
		}
		f.hasAll(s, kept)
		f.lists(s, kept)
	}},
	{"law12/works again when there is room", writing, func(f *fixture) {
		s := f.ready()
		kept := f.puts(4)
		release := f.full()
		b := f.new(4000)
		_, err := s.Put(f.ctx, b.addr, b.data)
		f.noSpace("Put", err)
		release()
		f.lacks(s, b)
		f.putTo(s, &b)
		batch := f.batch(s, 3)
		streamed := f.new(4000)
		f.stream(s, &streamed, -1, 1000)
		all := append(append(kept, batch...), b, streamed)
		f.hasAll(s, all)
		f.lists(s, all)
	}},
	{"law12/refused put does not come back", once, func(f *fixture) {
		s := f.ready()
		kept := f.puts(4)
		release := f.full()
		b := f.new(4000)
		_, err := s.Put(f.ctx, b.addr, b.data)
		f.noSpace("Put", err)
		release()
		s = f.powerLoss()
		f.lacks(s, b)
		f.hasAll(s, kept)
		f.lists(s, kept)
		f.putTo(s, &b)
		f.has(s, b)
	}},
	{"law12/reads and open while full", once, func(f *fixture) {
		f.ready()
		kept := f.puts(6)
		release := f.full()
		defer release()
		b := f.new(4000)
		_, err := f.raw.Put(f.ctx, b.addr, b.data)
		f.noSpace("Put", err)
		s := f.reopen()
		f.lacks(s, b)
		f.hasAll(s, kept)
		f.lists(s, kept)
	}},
	{"law12/delete while full", writing, func(f *fixture) {
		f.need("a reserve for deletes, not NoReserve", !f.h.NoReserve)
		s := f.ready()
		kept := f.puts(6)
		release := f.full()
		defer release()
		f.ok("Delete while full", s.Delete(f.ctx, kept[0].addr, kept[0].at))
		f.ok("DeleteBatch while full", blobstor.DeleteBatch(f.ctx, s, items(kept[1:3])))
		for _, b := range kept[:3] {
			f.lacks(s, b)
		}
		f.lists(s, kept[3:])
	}},
	{"law12/puts at once", once, func(f *fixture) {
		s := f.ready()
		kept := f.puts(3)
		release := f.full()
		defer release()
		blobs := make([]blob, 12)
		work := make([]func() error, len(blobs))
		for i := range blobs {
			blobs[i] = f.new(4000)
			work[i] = func() error {
				_, err := s.Put(f.ctx, blobs[i].addr, blobs[i].data)
				if !errors.Is(err, blobstor.ErrNoSpace) {
					return errors.Join(errors.New("want ErrNoSpace"), err)
				}
				return nil
			}
		}
		f.ok("Put", f.await("puts on a full disk", func() error { return together(work...) }))
		for _, b := range blobs {
			f.lacks(s, b)
		}
		f.lists(s, kept)
	}},
	{"law12/room comes and goes beside writers", once, func(f *fixture) {
		release := func() {}
		f.beside(func() { release = f.full() }, func() { release() }, blobstor.ErrNoSpace)
	}},
}

// beside lets writers put while a trouble comes and goes, which they may see as err and nothing else. Then, and
// after a loss of power, all is there that was acknowledged, and the rest is whole or not there.
func (f *fixture) beside(come, goes func(), trouble error) {
	f.Helper()
	s := f.ready()
	const writers, each = 4, 15
	blobs := make([]blob, writers*each)
	for i := range blobs {
		blobs[i] = f.new(i * 50)
	}
	come() // a missing hook skips here
	goes()
	acked := make([]bool, len(blobs))
	work := make([]func() error, writers)
	for w := range work {
		work[w] = func() error {
			for i := w * each; i < (w+1)*each; i++ {
				switch i % each { // the first writer brings trouble and ends it, amid the others
				case 5:
					if w == 0 {
						come()
					}
				case 10:
					if w == 0 {
						goes()
					}
				}
				_, err := s.Put(f.ctx, blobs[i].addr, blobs[i].data)
				if acked[i] = err == nil; err != nil && !errors.Is(err, trouble) {
					return err
				}
			}
			return nil
		}
	}
	f.ok("puts", f.await("puts in trouble", func() error { return together(work...) }))
	for _, s := range []func() blobstor.BlobStor{f.again, f.powerLoss} {
		s := s()
		for i, b := range blobs {
			if err := whole(f, s, b); err != nil && (acked[i] || !errors.Is(err, blobstor.ErrNotFound)) {
				f.Fatalf("Get after trouble, Put said yes: %v: %v", acked[i], err)
			}
		}
	}
}

func (f *fixture) full() (release func()) {
	f.Helper()
	f.need("Full", f.h.Full != nil)
	return f.h.Full(f, f.raw)
}

func (f *fixture) noSpace(what string, err error) {
	f.Helper()
	f.is(what+" on a full disk", err, blobstor.ErrNoSpace)
	if blobstor.IsFault(err) {
		f.Fatalf("%s on a full disk is a fault: %v", what, err)
	}
}
