package storagetest

import (
	"github.com/granary-store/granary/blobstor"
)

// Law 11: sizes.
var sizes = []clause{
	{"law11/empty blob", writing, func(f *fixture) {
		s := f.ready()
		b, batched, known, unknown, nothing := f.new(0), f.new(0), f.new(0), f.new(0), f.new(0)
		f.putTo(s, &b)
		f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, items([]blob{batched})))
		f.stream(s, &known, 0, 1)
		f.stream(s, &unknown, -1, 1)
		nothing.data = nil
		f.putTo(s, &nothing)
		all := []blob{b, batched, known, unknown, nothing}
		for _, b := range all {
			hasEvery(f, s, b)
		}
		f.lists(s, all)
		f.ok("Delete", s.Delete(f.ctx, b.addr, b.at))
		f.lacks(s, b)
	}},
	{"law11/empty blob was put before", reading, func(f *fixture) {
		b := f.put(0)
		s := f.ready()
		hasEvery(f, s, b)
		f.lists(s, []blob{b})
	}},
	{"law11/blob of the limit", writing, func(f *fixture) {
		s := f.ready()
		b, streamed, batched := f.limit(0), f.limit(0), f.limit(0)
		f.putTo(s, &b)
		f.stream(s, &streamed, -1, 100_000)
		its := items([]blob{batched})
		f.ok("PutBatch", blobstor.PutBatch(f.ctx, s, its))
		for _, b := range []blob{b, streamed, batched} {
			hasEvery(f, s, b)
		}
	}},
	{"law11/one byte more than the limit", writing, func(f *fixture) {
		s := f.ready()
		kept := f.put(10)
		b := f.limit(1)
		_, err := s.Put(f.ctx, b.addr, b.data)
		f.is("Put above the limit", err, blobstor.ErrTooLarge)
		f.wrapped("Put", err, b.addr)
		if blobstor.IsFault(err) {
			f.Fatalf("Put above the limit is a fault: %v", err)
		}
		f.lacks(s, b)
		f.is("stream above the limit", copyIn(f, s, b), blobstor.ErrTooLarge)
		f.is("stream above the limit", f.copyKnown(s, b), blobstor.ErrTooLarge)
		f.lacks(s, b)
		f.lists(s, []blob{kept})
		if f.h.PowerLoss != nil {
			f.lists(f.powerLoss(), []blob{kept})
		}
	}},
	{"law11/batch with one above the limit", writing, func(f *fixture) {
		s := f.ready()
		blobs := []blob{f.new(10), f.limit(1), f.new(20)}
		its := items(blobs)
		f.is("PutBatch", blobstor.PutBatch(f.ctx, s, its), blobstor.ErrTooLarge)
		f.ok("Err of the first item", its[0].Err)
		f.is("Err of the item above the limit", its[1].Err, blobstor.ErrTooLarge)
		f.ok("Err of the last item", its[2].Err)
		f.lists(s, []blob{blobs[0], blobs[2]})
	}},
	{"law11/every size up to the limit", writing, func(f *fixture) {
		s := f.ready()
		var blobs []blob
		for n := 0; n < 70; n++ {
			b := f.new(n)
			f.putTo(s, &b)
			blobs = append(blobs, b)
		}
		f.hasAll(s, blobs)
	}},
}

// testable is the largest limit that the suite tries out.
const testable = 64 << 20 // 64 MiB

// limit returns a blob that is longer than the limit by more bytes.
func (f *fixture) limit(more int) blob {
	f.Helper()
	if f.h.Limit <= 0 || f.h.Limit > testable {
		f.Skipf("Harness.Limit is %d: not tried out", f.h.Limit)
	}
	return blob{addr: f.addr(), data: f.anyBytes(int(f.h.Limit) + more)}
}

// copyKnown streams the blob with its size announced.
func (f *fixture) copyKnown(s blobstor.Streamer, b blob) error {
	w, err := s.NewWriter(f.ctx, int64(len(b.data)))
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err = w.Write(b.data); err != nil {
		return err
	}
	_, err = w.Commit(b.addr)
	return err
}
