package storagetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

// Law 3: a location is a hint.
var locations = []clause{
	{"law3/own locations", reading, func(f *fixture) {
		blobs := f.puts(12)
		s := f.ready()
		f.hasAll(s, blobs)
		infos := f.list(s, "")
		for _, b := range blobs {
			info, err := s.Stat(f.ctx, b.addr, b.at)
			f.ok("Stat", err)
			if all := infos[b.addr].Location; info.Location != all {
				f.Fatalf("Stat says %q, All says %q", info.Location, all)
			}
			if len(b.at) > blobstor.MaxLocation || len(info.Location) > blobstor.MaxLocation {
				f.Fatalf("a location of %d bytes, the most are %d", max(len(b.at), len(info.Location)), blobstor.MaxLocation)
			}
			b.at = info.Location
			f.has(s, b)
		}
	}},
	{"law3/locations sort in All's order", reading, func(f *fixture) {
		f.puts(20)
		last := blobstor.Location("")
		for info, err := range f.ready().All(f.ctx, "") {
			f.ok("All", err)
			if info.Location < last {
				f.Fatalf("All yielded %q behind %q", info.Location, last)
			}
			last = info.Location
		}
	}},
	{"law3/a location lasts", once, func(f *fixture) {
		blobs := f.puts(8)
		before := f.list(f.ready(), "")
		s := f.reopen()
		for _, b := range blobs {
			info, err := s.Stat(f.ctx, b.addr, b.at)
			f.ok("Stat", err)
			if old := before[b.addr].Location; info.Location != old {
				f.Fatalf("a reopen changed location %q to %q", old, info.Location)
			}
		}
	}},
	{"law3/garbage locations", reading, func(f *fixture) {
		b, other := f.put(700), f.put(800)
		missing := f.new(1)
		s := f.ready()
		info, err := s.Stat(f.ctx, b.addr, "")
		f.ok("Stat", err)
		for _, at := range garbage(b.at, other.at) {
			hinted := b
			hinted.at = at
			hasEvery(f, s, hinted)
			got, err := s.Stat(f.ctx, b.addr, at)
			f.ok("Stat", err)
			if got != info {
				f.Fatalf("Stat with location %q: %+v, without: %+v", at, got, info)
			}
			missing.at = at
			f.lacks(s, missing)
		}
	}},
	{"law3/delete with a garbage location", writing, func(f *fixture) {
		s := f.ready()
		other := f.put(800)
		for i := range garbage("", "") {
			b := f.put(700)
			at := garbage(b.at, other.at)[i]
			missing := f.addr()
			f.is("Delete of a missing blob", s.Delete(f.ctx, missing, at), blobstor.ErrNotFound)
			f.ok(fmt.Sprintf("Delete with location %q", at), s.Delete(f.ctx, b.addr, at))
			b.at = at
			f.lacks(s, b)
		}
		f.lists(s, []blob{other})
	}},
	{"law3/a hint never brings back a deleted blob", once, func(f *fixture) {
		s := f.ready()
		blobs := f.puts(6)
		for _, b := range blobs[1:] {
			f.ok("Delete", s.Delete(f.ctx, b.addr, ""))
			f.lacks(s, b)
			f.is("Delete of a deleted blob", s.Delete(f.ctx, b.addr, b.at), blobstor.ErrNotFound)
		}
		f.lists(s, blobs[:1])
		if f.h.Reopen != nil {
			s = f.reopen()
			for _, b := range blobs[1:] {
				f.lacks(s, b)
			}
		}
	}},
	{"law3/stale location", once, func(f *fixture) {
		s := f.ready()
		b := f.put(500)
		old := b.at
		f.ok("Delete", s.Delete(f.ctx, b.addr, old))
		f.puts(5)
		f.putTo(s, &b)
		b.at = old
		hasEvery(f, s, b)
		if f.h.Reopen != nil {
			hasEvery(f, f.reopen(), b)
		}
	}},
	{"law3/location of a damaged copy", once, func(f *fixture) {
		s := f.ready()
		b := f.put(4000)
		old := b.at
		f.damage(b)
		f.putTo(s, &b)
		b.at = old
		hasEvery(f, s, b)
	}},
}

// garbage are locations that lead nowhere, or to something else, made in part of two real ones.
func garbage(own, other blobstor.Location) []blobstor.Location {
	flipped := []byte(own + "\x00")
	flipped[len(flipped)/2] ^= 0x55
	route, _, _ := strings.Cut(string(own), "/")
	return []blobstor.Location{
		"", "?", "/", "//", "small/", "nowhere/12345678", "\x00",
		blobstor.Location(route + "/"), blobstor.Location(route + "/\xff\xff"),
		blobstor.Location(strings.Repeat("\x00", 8)), blobstor.Location(strings.Repeat("\xff", 8)),
		blobstor.Location(strings.Repeat("\x00", 14)), blobstor.Location(strings.Repeat("\xff", 14)),
		blobstor.Location(strings.Repeat("\xff", blobstor.MaxLocation)),
		blobstor.Location(strings.Repeat("a", blobstor.MaxLocation+1)), blobstor.Location(strings.Repeat("z", 1000)),
		other, own + "\x00", own[:len(own)/2], blobstor.Location(flipped),
	}
}

// hasEvery reads the blob in every way there is, with the location it bears.
func hasEvery(f *fixture, s blobstor.BlobStor, b blob) {
	f.Helper()
	f.has(s, b)
	p := make([]byte, len(b.data)+1)
	n, size, err := blobstor.ReadRange(f.ctx, s, b.addr, b.at, p, 0)
	f.ok(fmt.Sprintf("ReadRange with location %q", b.at), err)
	if size != int64(len(b.data)) {
		f.Fatalf("ReadRange: size %d, want %d", size, len(b.data))
	}
	f.same(p[:n], b.data)
	r, err := s.NewReader(f.ctx, b.addr, b.at)
	f.ok(fmt.Sprintf("NewReader with location %q", b.at), err)
	var buf bytes.Buffer
	_, err = r.WriteTo(&buf)
	f.ok("WriteTo", err)
	f.same(buf.Bytes(), b.data)
	f.ok("Close of the Reader", r.Close())
}
