package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/granary-store/granary/blobstor"
)

// Law 5: a damaged byte is never returned.
var integrity = []clause{
	{"law5/damage is ErrCorrupt", reading, func(f *fixture) {
		for _, n := range []int{1, 300, 70_000, 300_000} {
			f.corruptEverywhere(n)
		}
	}},
	{"law5/all else is served", reading, func(f *fixture) {
		others := f.puts(10)
		b := f.put(2500)
		others = append(others, f.put(123), f.put(66_000))
		s := f.ready()
		f.damage(b)
		_, err := s.Get(f.ctx, b.addr, b.at, nil)
		f.is("Get of a damaged blob", err, blobstor.ErrCorrupt)
		f.hasAll(s, others)
		f.listsPast(s, b, others)
	}},
	{"law5/damage does not stop open", once, func(f *fixture) {
		others := f.puts(6)
		b := f.put(2500)
		others = append(others, f.puts(3)...)
		f.damage(b)
		s := f.reopen()
		_, err := s.Get(f.ctx, b.addr, b.at, nil)
		f.is("Get of a damaged blob", err, blobstor.ErrCorrupt)
		f.hasAll(s, others)
		f.listsPast(s, b, others)
		f.putTo(s, &b)
		f.has(s, b)
		more := f.put(40)
		f.has(s, more)
	}},
	{"law5/damage is a fault", writing, func(f *fixture) {
		b := f.put(900)
		s := f.ready()
		f.damage(b)
		if _, err := s.Get(f.ctx, b.addr, b.at, nil); !blobstor.IsFault(err) {
			f.Fatalf("Get of a damaged blob: %v is no fault", err)
		}
	}},
}

// corruptEverywhere damages a blob of n bytes and reads it in every way.
func (f *fixture) corruptEverywhere(n int) {
	f.Helper()
	b := f.put(n)
	s := f.ready()
	f.damage(b)
	dst := []byte("prefix")
	got, err := s.Get(f.ctx, b.addr, b.at, dst)
	f.is("Get of a damaged blob", err, blobstor.ErrCorrupt)
	if string(got) != "prefix" {
		f.Fatalf("a failed Get returned %d bytes, want dst as it was", len(got))
	}
	p := make([]byte, len(b.data))
	_, _, err = blobstor.ReadRange(f.ctx, s, b.addr, b.at, p, 0)
	f.is("ReadRange of a damaged blob", err, blobstor.ErrCorrupt)
	_, err = blobstor.GetRange(f.ctx, s, b.addr, b.at, 0, int64(len(b.data)))
	f.is("GetRange of a damaged blob", err, blobstor.ErrCorrupt)
	f.corruptRanges(s, b)
	f.corruptReader(s, b, func(r blobstor.Reader) ([]byte, error) { return io.ReadAll(r) })
	f.corruptReader(s, b, func(r blobstor.Reader) ([]byte, error) {
		var buf bytes.Buffer
		_, err := r.WriteTo(&buf)
		return buf.Bytes(), err
	})
	f.corruptReader(s, b, func(r blobstor.Reader) ([]byte, error) {
		_, err := r.ReadAt(p, 0)
		return nil, err
	})
	if f.view == readOnly {
		f.raw = f.h.New(f) // a store that was made read-only takes no second blob
	}
}

// corruptRanges wants of each small range the right bytes or ErrCorrupt.
func (f *fixture) corruptRanges(s blobstor.Storage, b blob) {
	f.Helper()
	step := max(1, len(b.data)/16)
	bad := 0
	for off := 0; off < len(b.data); off += step {
		want := b.data[off:min(off+step, len(b.data))]
		got, err := blobstor.GetRange(f.ctx, s, b.addr, b.at, int64(off), int64(len(want)))
		if err == nil {
			f.same(got, want)
			continue
		}
		f.is("GetRange of a damaged blob", err, blobstor.ErrCorrupt)
		bad++
	}
	if bad == 0 {
		f.Fatalf("every range of a damaged blob of %d bytes was read, and right: Harness.Damage damaged nothing", len(b.data))
	}
}

// corruptReader wants ErrCorrupt, and before it none but right bytes.
func (f *fixture) corruptReader(s blobstor.BlobStor, b blob, read func(blobstor.Reader) ([]byte, error)) {
	f.Helper()
	r, err := s.NewReader(f.ctx, b.addr, b.at)
	if err == nil {
		defer r.Close()
		var got []byte
		if got, err = read(r); !bytes.HasPrefix(b.data, got) {
			f.Fatalf("the Reader of a damaged blob returned wrong bytes")
		}
	}
	f.is("Reader of a damaged blob", err, blobstor.ErrCorrupt)
}

// listsPast runs over All past damage: every other blob once, errors only about the damaged one.
func (f *fixture) listsPast(s blobstor.Storage, bad blob, others []blob) {
	f.Helper()
	seen := map[blobstor.Address]int{}
	for info, err := range s.All(f.ctx, "") {
		if err != nil {
			f.ok("All", aboutOne(err, bad.addr))
			continue
		}
		seen[info.Address]++
	}
	delete(seen, bad.addr)
	for _, b := range others {
		if seen[b.addr] != 1 {
			f.Fatalf("All beside a damaged blob yielded %v %d times", b.addr, seen[b.addr])
		}
	}
	if len(seen) != len(others) {
		f.Fatalf("All beside a damaged blob yielded %d others, want %d", len(seen), len(others))
	}
}

// aboutOne returns nil if err concerns the blob and so lets an iteration go on.
func aboutOne(err error, addr blobstor.Address) error {
	e, ok := errors.AsType[*blobstor.Error](err)
	if !ok || e.Address != addr && (!e.Address.IsZero() || e.Location == "") {
		return fmt.Errorf("%w does not name the damaged blob", err)
	}
	return nil
}
