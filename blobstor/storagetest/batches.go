package storagetest

import (
	"errors"

	"github.com/granary-store/granary/blobstor"
)

// Batches: items succeed or fail alone.
var batches = []clause{
	{"batches/put and delete", writing, func(f *fixture) {
		s := f.ready()
		blobs := f.batch(s, 30)
		for _, b := range blobs {
			hasEvery(f, s, b)
		}
		f.lists(s, blobs)
		its := items(blobs)
		f.ok("DeleteBatch", blobstor.DeleteBatch(f.ctx, s, its))
		for i, it := range its {
			f.ok("Err of an item", it.Err)
			f.lacks(s, blobs[i])
		}
		f.lists(s, nil)
	}},
	{"batches/empty", writing, func(f *fixture) {
		s := f.ready()
		f.ok("PutBatch of nothing", blobstor.PutBatch(f.ctx, s, nil))
		f.ok("DeleteBatch of nothing", blobstor.DeleteBatch(f.ctx, s, []blobstor.Item{}))
	}},
	{"batches/stored and new", writing, func(f *fixture) {
		s := f.ready()
		stored := f.put(700)
		blobs := []blob{f.new(5), stored, f.new(900)}
		f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, items(blobs)))
		f.hasAll(s, blobs)
		f.lists(s, blobs)
	}},
	{"batches/missing blobs fail alone", writing, func(f *fixture) {
		s := f.ready()
		blobs := f.puts(5)
		missing, other := f.new(0), f.new(0)
		its := items([]blob{blobs[0], missing, blobs[1], other, blobs[2]})
		for i := range its {
			its[i].Err = errors.New("left from before")
		}
		err := blobstor.DeleteBatch(f.ctx, s, its)
		f.is("DeleteBatch", err, blobstor.ErrNotFound)
		f.wrapped("DeleteBatch", err, missing.addr)
		for i, it := range its {
			if it.Address == missing.addr || it.Address == other.addr {
				f.is("Err of a missing blob", it.Err, blobstor.ErrNotFound)
				f.wrapped("DeleteBatch", it.Err, it.Address)
			} else if it.Err != nil {
				f.Fatalf("Err of item %d, which was there: %v", i, it.Err)
			}
		}
		f.lists(s, blobs[3:])
	}},
	{"batches/old errors are cleared", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(100)
		its := items([]blob{b})
		its[0].Err, its[0].Location = errors.New("left from before"), "?"
		f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, its))
		f.ok("Err of the item", its[0].Err)
		b.at = its[0].Location
		f.has(s, b)
		if b.at == "?" {
			f.Fatalf("PutBatch left the old Location of the item")
		}
	}},
	{"batches/several at once", writing, func(f *fixture) {
		s := f.ready()
		var work []func() error
		var all []blob
		for range 5 {
			blobs := make([]blob, 10)
			for i := range blobs {
				blobs[i] = f.new(i * 100)
			}
			all = append(all, blobs...)
			work = append(work, func() error { return blobstor.PutBatch(f.ctx, s, items(blobs)) })
		}
		f.ok("PutBatch", f.await("batches at once", func() error { return together(work...) }))
		f.hasAll(s, all)
		f.lists(s, all)
	}},
}

// A read-only view refuses every write and changes nothing.
var refusals = []clause{
	{"readonly/refuses writes", []view{readOnly}, func(f *fixture) {
		b := f.put(100)
		s := f.ready()
		other := f.new(10)
		for _, w := range []blob{b, other} {
			_, err := s.Put(f.ctx, w.addr, w.data)
			f.is("Put", err, blobstor.ErrReadOnly)
			f.is("Delete", s.Delete(f.ctx, w.addr, w.at), blobstor.ErrReadOnly)
			its := items([]blob{w})
			f.is("PutBatch", blobstor.PutBatch(f.ctx, s, its), blobstor.ErrReadOnly)
			f.is("Err of an item", its[0].Err, blobstor.ErrReadOnly)
			its = items([]blob{w})
			f.is("DeleteBatch", blobstor.DeleteBatch(f.ctx, s, its), blobstor.ErrReadOnly)
			f.is("Err of an item", its[0].Err, blobstor.ErrReadOnly)
			err = copyIn(f, s, w)
			f.is("stream", err, blobstor.ErrReadOnly)
			if blobstor.IsFault(err) {
				f.Fatalf("a refused write is a fault: %v", err)
			}
		}
		f.has(s, b)
		f.lacks(s, other)
		f.lists(s, []blob{b})
	}},
}
