package storagetest

import (
	"bytes"

	"github.com/granary-store/granary/blobstor"
)

// Law 8: memory belongs to one side at a time.
var ownership = []clause{
	{"law8/put keeps no reference", once, func(f *fixture) {
		s := f.ready()
		for _, n := range []int{1, 500, 100_000} {
			b := f.new(n)
			mine := bytes.Clone(b.data)
			at, err := s.Put(f.ctx, b.addr, mine)
			f.ok("Put", err)
			f.same(mine, b.data)
			mangle(mine)
			b.at = at
			f.has(s, b)
		}
	}},
	{"law8/batch keeps no reference", writing, func(f *fixture) {
		s := f.ready()
		blobs := []blob{f.new(10), f.new(2000), f.new(40_000)}
		its := items(blobs)
		for i := range its {
			its[i].Data = bytes.Clone(its[i].Data)
		}
		f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, its))
		for i := range its {
			f.same(its[i].Data, blobs[i].data)
			mangle(its[i].Data)
		}
		f.hasAll(s, blobs)
	}},
	{"law8/writer keeps no reference", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(9000)
		w, err := s.NewWriter(f.ctx, int64(len(b.data)))
		f.ok("NewWriter", err)
		piece := make([]byte, 1000)
		for rest := b.data; len(rest) > 0; {
			n := copy(piece, rest)
			_, err := w.Write(piece[:n])
			f.ok("Write", err)
			f.same(piece[:n], rest[:n])
			mangle(piece)
			rest = rest[n:]
		}
		b.at, err = w.Commit(b.addr)
		f.ok("Commit", err)
		f.has(s, b)
	}},
	{"law8/result of get is the caller's", writing, func(f *fixture) {
		b := f.put(3000)
		s := f.ready()
		first, err := s.Get(f.ctx, b.addr, b.at, nil)
		f.ok("Get", err)
		second, err := s.Get(f.ctx, b.addr, b.at, nil)
		f.ok("Get", err)
		mangle(first)
		f.same(second, b.data)
		f.has(s, b)
		part, err := blobstor.GetRange(f.ctx, s, b.addr, b.at, 1, int64(len(b.data)-1))
		f.ok("GetRange", err)
		mangle(part)
		f.has(s, b)
	}},
	{"law8/get appends", writing, func(f *fixture) {
		blobs := append(f.puts(3), f.put(70_000))
		s := f.ready()
		for _, b := range blobs {
			for _, room := range []int{0, 10, len(b.data), len(b.data) + 100} {
				dst := append(make([]byte, 0, 3+room), "abc"...)
				got, err := s.Get(f.ctx, b.addr, b.at, dst)
				f.ok("Get", err)
				f.same(got, append([]byte("abc"), b.data...))
			}
		}
	}},
	{"law8/nil is allocated exactly", writing, func(f *fixture) {
		blobs := append(f.puts(3), f.put(70_001))
		s := f.ready()
		for _, b := range blobs {
			got, err := s.Get(f.ctx, b.addr, b.at, nil)
			f.ok("Get", err)
			// The runtime rounds an allocation up to its size class; an eighth is its coarsest step.
			if cap(got) > len(got)+len(got)/8+8 {
				f.Fatalf("Get of %d bytes into nil has a capacity of %d", len(got), cap(got))
			}
		}
	}},
	{"law8/failed get returns dst", writing, func(f *fixture) {
		s := f.ready()
		got, err := s.Get(f.ctx, f.addr(), "", []byte("abc"))
		f.is("Get of a missing blob", err, blobstor.ErrNotFound)
		f.same(got, []byte("abc"))
	}},
}

func mangle(b []byte) {
	for i := range b {
		b[i] ^= 0xa5
	}
}
