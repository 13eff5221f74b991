package storagetest

import (
	"errors"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// Law 1: what was acknowledged survives.
var durable = []clause{
	{"law1/put survives reopen", once, func(f *fixture) { survivePut(f, f.reopen) }},
	{"law1/put survives power loss", once, func(f *fixture) { survivePut(f, f.powerLoss) }},
	{"law1/delete survives reopen", once, func(f *fixture) { surviveDelete(f, f.reopen) }},
	{"law1/delete survives power loss", once, func(f *fixture) { surviveDelete(f, f.powerLoss) }},
	{"law1/commit survives power loss", writing, func(f *fixture) {
		s := f.ready()
		var blobs []blob
		for _, n := range []int{0, 1, 70_000} {
			b := f.new(n)
			f.stream(s, &b, -1, 4096)
			blobs = append(blobs, b)
		}
		f.hasAll(f.powerLoss(), blobs)
	}},
	{"law1/batch survives power loss", writing, func(f *fixture) {
		s := f.ready()
		blobs := f.batch(s, 20)
		gone := blobs[:7]
		f.ok("DeleteBatch", blobstor.DeleteBatch(f.ctx, s, items(gone)))
		s = f.powerLoss()
		f.lists(s, blobs[7:])
		f.hasAll(s, blobs[7:])
		for _, b := range gone {
			f.lacks(s, b)
		}
	}},
	{"law1/puts at once survive power loss", once, func(f *fixture) {
		s := f.ready()
		blobs := make([]blob, 32)
		errs := make([]error, len(blobs))
		var all sync.WaitGroup
		for i := range blobs {
			blobs[i] = f.new(i * 400)
			all.Go(func() { blobs[i].at, errs[i] = s.Put(f.ctx, blobs[i].addr, blobs[i].data) })
		}
		all.Wait()
		f.ok("Put", errors.Join(errs...))
		s = f.powerLoss()
		f.hasAll(s, blobs)
		f.lists(s, blobs)
	}},
	{"law1/repeated put survives power loss", once, func(f *fixture) {
		s := f.ready()
		b := f.put(3000)
		f.putTo(s, &b)
		f.has(f.powerLoss(), b)
	}},
	{"law1/one by one through power losses", once, func(f *fixture) {
		var kept []blob
		for i := range 5 {
			b := f.put(1000 * i)
			gone := f.put(10)
			f.ok("Delete", f.raw.Delete(f.ctx, gone.addr, gone.at))
			kept = append(kept, b)
			s := f.powerLoss()
			f.hasAll(s, kept)
			f.lacks(s, gone)
			f.lists(s, kept)
		}
	}},
	{"law1/nothing is visible before commit", writing, func(f *fixture) {
		s := f.ready()
		kept, b := f.put(10), f.new(5000)
		w, err := s.NewWriter(f.ctx, -1)
		f.ok("NewWriter", err)
		_, err = w.Write(b.data)
		f.ok("Write", err)
		f.lacks(s, b)
		f.lists(s, []blob{kept})
		f.ok("Close of the Writer", w.Close())
		f.lists(s, []blob{kept})
	}},
	{"law1/an uncommitted stream does not come back", writing, func(f *fixture) {
		s := f.ready()
		kept, b := f.put(10), f.new(5000)
		w, err := s.NewWriter(f.ctx, int64(len(b.data)))
		f.ok("NewWriter", err)
		_, err = w.Write(b.data)
		f.ok("Write", err)
		s = f.powerLoss()
		f.lacks(s, b)
		f.lists(s, []blob{kept})
		w.Close()
	}},
}

func survivePut(f *fixture, cut func() blobstor.BlobStor) {
	f.ready()
	blobs := append(f.puts(20), f.put(200_000))
	s := cut()
	f.hasAll(s, blobs)
	f.lists(s, blobs)
	last := f.put(77)
	s = cut()
	f.has(s, last)
	f.lists(s, append(blobs, last))
}

func surviveDelete(f *fixture, cut func() blobstor.BlobStor) {
	s := f.ready()
	blobs := f.puts(10)
	for _, b := range blobs[:4] {
		f.ok("Delete", s.Delete(f.ctx, b.addr, b.at))
	}
	s = cut()
	f.ok("Delete after reopening", s.Delete(f.ctx, blobs[4].addr, ""))
	s = cut()
	for _, b := range blobs[:5] {
		f.lacks(s, b)
	}
	f.lists(s, blobs[5:])
}

// stream writes a blob in pieces of at most n bytes and commits it.
func (f *fixture) stream(s blobstor.Streamer, b *blob, size int64, n int) {
	f.Helper()
	w, err := s.NewWriter(f.ctx, size)
	f.ok("NewWriter", err)
	for rest := b.data; len(rest) > 0; rest = rest[min(n, len(rest)):] {
		m, err := w.Write(rest[:min(n, len(rest))])
		if err != nil || m != min(n, len(rest)) {
			f.Fatalf("Write of %d bytes: %d, %v", min(n, len(rest)), m, err)
		}
	}
	b.at, err = w.Commit(b.addr)
	f.ok("Commit", err)
	f.ok("Close after Commit", w.Close())
}

// batch stores n new blobs in one batch.
func (f *fixture) batch(s blobstor.Storage, n int) []blob {
	f.Helper()
	blobs := make([]blob, n)
	for i := range blobs {
		blobs[i] = f.new(i * 211 % 3000)
	}
	its := items(blobs)
	f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, its))
	for i, it := range its {
		f.ok("Err of an item", it.Err)
		blobs[i].at = it.Location
	}
	return blobs
}

// items are the blobs as a batch.
func items(blobs []blob) []blobstor.Item {
	its := make([]blobstor.Item, len(blobs))
	for i, b := range blobs {
		its[i] = blobstor.Item{Address: b.addr, Location: b.at, Data: b.data}
	}
	return its
}
