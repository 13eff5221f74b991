package storagetest

import (
	"errors"
	"io"
	"io/fs"

	"github.com/granary-store/granary/blobstor"
)

// Law 10: after Close.
var closing = []clause{
	{"law10/every method is closed", closes, func(f *fixture) {
		b := f.put(100)
		s := f.ready()
		f.ok("Close", s.Close())
		f.ok("second Close", s.Close())
		for _, op := range lookups {
			err := op.do(f.ctx, s, b.addr, b.at)
			f.is(op.name+" after Close", err, blobstor.ErrClosed)
			f.is(op.name+" after Close", err, fs.ErrClosed)
		}
		_, err := s.Put(f.ctx, b.addr, b.data)
		f.is("Put after Close", err, blobstor.ErrClosed)
		f.is("Delete after Close", s.Delete(f.ctx, b.addr, b.at), blobstor.ErrClosed)
		f.is("PutBatch after Close", blobstor.PutBatch(f.ctx, s, items([]blob{b})), blobstor.ErrClosed)
		f.is("DeleteBatch after Close", blobstor.DeleteBatch(f.ctx, s, items([]blob{b})), blobstor.ErrClosed)
		f.is("stream after Close", copyIn(f, s, b), blobstor.ErrClosed)
		f.endsClosed(s)
	}},
	{"law10/idle reader", closes, func(f *fixture) {
		b := f.put(100_000)
		s := f.ready()
		r := f.reader(s, b)
		_, err := r.Read(make([]byte, 1))
		f.ok("Read", err)
		_, err = r.Seek(0, io.SeekStart)
		f.ok("Seek", err)
		f.ok("Close", f.await("Close beside an idle Reader", s.Close))
		_, err = r.ReadAt(make([]byte, 10), 0)
		f.is("ReadAt after Close", err, blobstor.ErrClosed)
		_, err = r.Read(make([]byte, 10))
		f.is("Read after Close", err, blobstor.ErrClosed)
		r.Close()
	}},
	{"law10/idle writer", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(9000)
		w, err := s.NewWriter(f.ctx, -1)
		f.ok("NewWriter", err)
		_, err = w.Write(b.data)
		f.ok("Write", err)
		f.ok("Close", f.await("Close beside an idle Writer", s.Close))
		_, err = w.Commit(b.addr)
		f.is("Commit after Close", err, blobstor.ErrClosed)
		w.Close()
		if f.h.Reopen != nil {
			s = f.reopen()
			f.lacks(s, b)
			f.lists(s, nil)
		}
	}},
	{"law10/loop over All", closes, func(f *fixture) {
		f.puts(5)
		s := f.ready()
		n := 0
		for _, err := range s.All(f.ctx, "") {
			if n++; n == 1 {
				f.ok("All", err)
				f.ok("Close", f.await("Close in a loop over All", s.Close))
				continue
			}
			f.is("All after Close", err, blobstor.ErrClosed)
		}
		if n != 2 {
			f.Fatalf("a loop over All whose storage was closed took %d steps, want 2", n)
		}
	}},
	{"law10/close beside calls", once, func(f *fixture) {
		s := f.ready()
		blobs := make([]blob, 30)
		errs := make([]error, len(blobs))
		work := make([]func() error, 0, len(blobs)+2)
		for i := range blobs {
			blobs[i] = f.new(500)
			work = append(work, func() error {
				_, errs[i] = s.Put(f.ctx, blobs[i].addr, blobs[i].data)
				return nil
			})
			if i == len(blobs)/2 {
				work = append(work, s.Close, s.Close)
			}
		}
		f.ok("Close", f.await("Close beside calls", func() error { return together(work...) }))
		var kept []blob
		for i, err := range errs {
			if err == nil {
				kept = append(kept, blobs[i])
			} else if !errors.Is(err, blobstor.ErrClosed) {
				f.Fatalf("Put beside Close: %v, want nil or ErrClosed", err)
			}
		}
		if f.h.Reopen != nil {
			f.hasAll(f.reopen(), kept)
		}
	}},
	{"law10/close beside reads", writing, func(f *fixture) {
		blobs := f.puts(10)
		s := f.ready()
		closed := func(err error) error {
			if errors.Is(err, blobstor.ErrClosed) {
				return nil
			}
			return err
		}
		read := repeat(20, func() error {
			for _, b := range blobs {
				if err := closed(whole(f, s, b)); err != nil {
					return err
				}
			}
			return nil
		})
		list := repeat(20, func() error {
			for _, err := range s.All(f.ctx, "") {
				if closed(err) != nil {
					return err
				}
			}
			return nil
		})
		f.ok("Close beside reads", f.await("Close beside reads", func() error { return together(read, read, list, s.Close) }))
		f.endsClosed(s)
	}},
	{"law10/close and reopen", once, func(f *fixture) {
		blobs := f.puts(5)
		for range 3 {
			f.ok("Close", f.ready().Close())
			s := f.reopen()
			f.hasAll(s, blobs)
			f.lists(s, blobs)
		}
	}},
}

// endsClosed checks that All yields ErrClosed and nothing else.
func (f *fixture) endsClosed(s blobstor.Storage) {
	f.Helper()
	n := 0
	for info, err := range s.All(f.ctx, "") {
		if n++; n > 1 {
			f.Fatalf("All after Close goes on with %v, %v", info, err)
		}
		f.is("All after Close", err, blobstor.ErrClosed)
	}
	if n == 0 {
		f.Fatalf("All after Close: no error")
	}
}
