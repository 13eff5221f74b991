package storagetest

import (
	"io"

	"github.com/granary-store/granary/blobstor"
)

// Streams that write: known, unknown and wrong sizes; discarded, committed.
var writers = []clause{
	{"streams/known and unknown size", writing, func(f *fixture) {
		s := f.ready()
		var blobs []blob
		for _, n := range []int{0, 1, 4096, 65_536, 150_000} {
			for _, known := range []bool{true, false} {
				for _, piece := range []int{1 << 20, 7777} {
					b := f.new(n)
					size := int64(-1)
					if known {
						size = int64(len(b.data))
					}
					f.stream(s, &b, size, piece)
					blobs = append(blobs, b)
				}
			}
		}
		for _, b := range blobs {
			hasEvery(f, s, b)
		}
		f.lists(s, blobs)
	}},
	{"streams/wrong size", writing, func(f *fixture) {
		s := f.ready()
		for _, size := range []int64{0, 1, 99, 101, 5000} {
			b := f.new(100)
			if f.h.Limit > 0 {
				size = min(size, f.h.Limit)
			}
			if int64(len(b.data)) == size {
				continue
			}
			f.refused(s, b, size)
		}
		f.lists(s, nil)
	}},
	{"streams/close discards", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(3000)
		w, err := s.NewWriter(f.ctx, -1)
		f.ok("NewWriter", err)
		_, err = w.Write(b.data)
		f.ok("Write", err)
		f.ok("Close", w.Close())
		w.Close()
		if _, err = w.Commit(b.addr); err == nil {
			f.Fatalf("Commit after Close: no error")
		}
		if _, err = w.Write([]byte("x")); err == nil {
			f.Fatalf("Write after Close: no error")
		}
		f.lacks(s, b)
		f.lists(s, nil)
		f.stream(s, &b, -1, 100)
		f.has(s, b)
	}},
	{"streams/commit is the end", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(3000)
		w, err := s.NewWriter(f.ctx, -1)
		f.ok("NewWriter", err)
		_, err = w.Write(b.data)
		f.ok("Write", err)
		_, err = w.Commit(b.addr)
		f.ok("Commit", err)
		other := f.new(0)
		if _, err = w.Commit(other.addr); err == nil {
			f.Fatalf("second Commit: no error")
		}
		if _, err = w.Write([]byte("x")); err == nil {
			f.Fatalf("Write after Commit: no error")
		}
		f.ok("Close after Commit", w.Close())
		f.has(s, b)
		f.lists(s, []blob{b})
	}},
	{"streams/several at once", writing, func(f *fixture) {
		s := f.ready()
		blobs := make([]blob, 6)
		work := make([]func() error, len(blobs))
		for i := range blobs {
			blobs[i] = f.new(20_000 * i)
			work[i] = func() error { return copyIn(f, s, blobs[i]) }
		}
		f.ok("streams at once", f.await("streams at once", func() error { return together(work...) }))
		f.hasAll(s, blobs)
		f.lists(s, blobs)
	}},
	{"streams/one address at once", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(9000)
		work := func() error { return copyIn(f, s, b) }
		f.ok("streams at once", f.await("streams of one address at once", func() error { return together(work, work, work) }))
		f.has(s, b)
		f.lists(s, []blob{b})
	}},
}

// refused writes the blob under a size that it does not have.
func (f *fixture) refused(s blobstor.BlobStor, b blob, size int64) {
	f.Helper()
	w, err := s.NewWriter(f.ctx, size)
	f.ok("NewWriter", err)
	_, err = w.Write(b.data)
	if err != nil && size > int64(len(b.data)) {
		f.Fatalf("Write of %d of %d bytes: %v", len(b.data), size, err)
	}
	_, err = w.Commit(b.addr)
	if err == nil || blobstor.IsFault(err) {
		f.Fatalf("Commit of %d bytes where %d were announced: %v; want an error that is no fault", len(b.data), size, err)
	}
	w.Close()
	f.lacks(s, b)
}

func copyIn(f *fixture, s blobstor.Streamer, b blob) error {
	w, err := s.NewWriter(f.ctx, -1)
	if err != nil {
		return err
	}
	defer w.Close()
	for rest := b.data; len(rest) > 0; {
		n, err := w.Write(rest[:min(3000, len(rest))])
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		rest = rest[n:]
	}
	_, err = w.Commit(b.addr)
	return err
}
