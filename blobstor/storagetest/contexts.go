package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// Law 9: contexts.
var contexts = []clause{
	{"law9/cancelled before a read", writing, func(f *fixture) {
		b := f.put(100)
		s := f.ready()
		for name, ctx := range ended() {
			for _, op := range lookups {
				f.is(op.name+" with a context "+name, op.do(ctx, s, b.addr, b.at), ctx.Err())
			}
			n := 0
			for info, err := range s.All(ctx, "") {
				if n++; err == nil || n > 1 {
					f.Fatalf("All with a context %s: step %d is %v, %v", name, n, info, err)
				}
				f.is("All with a context "+name, err, ctx.Err())
			}
			if n == 0 {
				f.Fatalf("All with a context %s: no error", name)
			}
		}
	}},
	{"law9/cancelled before a write", writing, func(f *fixture) {
		s := f.ready()
		kept := f.put(100)
		for name, ctx := range ended() {
			b := f.new(50)
			_, err := s.Put(ctx, b.addr, b.data)
			f.is("Put with a context "+name, err, ctx.Err())
			if blobstor.IsFault(err) {
				f.Fatalf("Put with a context %s is a fault: %v", name, err)
			}
			f.is("Delete with a context "+name, s.Delete(ctx, kept.addr, kept.at), ctx.Err())
			its := items([]blob{b, f.new(5)})
			f.is("PutBatch with a context "+name, blobstor.PutBatch(ctx, s, its), ctx.Err())
			for _, it := range its {
				f.is("Err of an item", it.Err, ctx.Err())
			}
			its = items([]blob{kept})
			f.is("DeleteBatch with a context "+name, blobstor.DeleteBatch(ctx, s, its), ctx.Err())
			f.is("Err of an item", its[0].Err, ctx.Err())
			w, err := s.NewWriter(ctx, -1)
			if err == nil {
				_, err = w.Commit(b.addr)
				w.Close()
			}
			f.is("stream with a context "+name, err, ctx.Err())
			f.lacks(s, b)
		}
		f.has(s, kept)
		f.lists(s, []blob{kept})
	}},
	{"law9/cancelled in the loop", writing, func(f *fixture) {
		f.puts(6)
		s := f.ready()
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		n := 0
		for _, err := range s.All(ctx, "") {
			n++
			if err != nil {
				f.is("All whose context ended", err, context.Canceled)
				continue
			}
			cancel()
			if n > 2 {
				f.Fatalf("All goes on after its context ended")
			}
		}
		if n != 2 {
			f.Fatalf("All whose context ended in the first step took %d, want 2", n)
		}
	}},
	{"law9/cancelled reader", writing, func(f *fixture) {
		b := f.put(3000)
		s := f.ready()
		ctx, cancel := context.WithCancel(f.ctx)
		r, err := s.NewReader(ctx, b.addr, b.at)
		f.ok("NewReader", err)
		defer r.Close()
		_, err = r.Read(make([]byte, 1))
		f.ok("Read", err)
		_, err = r.Seek(0, io.SeekStart)
		f.ok("Seek", err)
		cancel()
		_, err = r.ReadAt(make([]byte, 10), 0)
		f.is("ReadAt whose context ended", err, context.Canceled)
		_, err = r.Read(make([]byte, 10))
		f.is("Read whose context ended", err, context.Canceled)
	}},
	{"law9/cancelled writer", writing, func(f *fixture) {
		s := f.ready()
		b := f.new(3000)
		ctx, cancel := context.WithCancel(f.ctx)
		w, err := s.NewWriter(ctx, -1)
		f.ok("NewWriter", err)
		_, err = w.Write(b.data)
		f.ok("Write", err)
		cancel()
		_, err = w.Commit(b.addr)
		f.is("Commit whose context ended", err, context.Canceled)
		w.Close()
		f.lacks(s, b)
		f.lists(s, nil)
	}},
	{"law9/cancelled while others write", once, cancelledInQueue},
}

// ended returns contexts that are over.
func ended() map[string]context.Context {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	cancel()
	return map[string]context.Context{"cancelled": cancelled, "past its deadline": late}
}

// cancelledInQueue cancels half of many puts at once: what got a context error is not there, all else is.
func cancelledInQueue(f *fixture) {
	s := f.ready()
	blobs := make([]blob, 40)
	errs := make([]error, len(blobs))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range blobs {
		blobs[i] = f.new(2000)
		with := f.ctx
		if i%2 == 1 {
			with = ctx
		}
		all.Go(func() {
			if i == len(blobs)/2 {
				cancel()
			}
			mine := append([]byte(nil), blobs[i].data...)
			blobs[i].at, errs[i] = s.Put(with, blobs[i].addr, mine)
			mangle(mine) // the storage must not look at it any more
		})
	}
	f.ok("puts", f.await("puts of which some are cancelled", func() error { all.Wait(); return nil }))
	var kept []blob
	for i, b := range blobs {
		switch {
		case errs[i] == nil:
			kept = append(kept, b)
		case i%2 == 1 && errors.Is(errs[i], context.Canceled):
			f.lacks(s, b)
		default:
			f.ok(fmt.Sprintf("Put %d", i), errs[i])
		}
	}
	f.hasAll(s, kept)
	f.lists(s, kept)
}
