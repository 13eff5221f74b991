package storagetest

import (
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Law 7: iteration.
var iteration = []clause{
	{"law7/yields every blob once", reading, func(f *fixture) {
		blobs := f.puts(40)
		f.lists(f.ready(), blobs)
	}},
	{"law7/may be left early", closes, func(f *fixture) {
		blobs := f.puts(8)
		s := f.ready()
		for stop := range blobs {
			n := 0
			for _, err := range s.All(f.ctx, "") {
				f.ok("All", err)
				if n++; n > stop {
					break
				}
			}
		}
		f.hasAll(s, blobs)
		f.lists(s, blobs)
		f.ok("Close", f.await("Close behind loops that were left", s.Close))
	}},
	{"law7/resumes behind every location", reading, func(f *fixture) {
		f.puts(25)
		s := f.ready()
		order := f.inOrder(s, "")
		for i, info := range order {
			rest := f.inOrder(s, info.Location)
			f.covers(fmt.Sprintf("All behind blob %d", i), rest, order[i+1:])
			for _, r := range rest {
				if r.Location < info.Location {
					f.Fatalf("All behind %q yielded %q", info.Location, r.Location)
				}
			}
		}
	}},
	{"law7/resumes page by page", reading, func(f *fixture) {
		blobs := f.puts(23)
		s := f.ready()
		seen := map[blobstor.Address]bool{}
		after := blobstor.Location("")
		for range 2 * len(blobs) {
			n := 0
			for info, err := range s.All(f.ctx, after) {
				f.ok("All", err)
				seen[info.Address], after = true, info.Location
				if n++; n == 4 {
					break
				}
			}
			if n < 4 {
				break
			}
		}
		if len(seen) != len(blobs) {
			f.Fatalf("pages held %d blobs, want %d", len(seen), len(blobs))
		}
	}},
	{"law7/resumes behind a deleted blob", writing, func(f *fixture) {
		f.puts(12)
		s := f.ready()
		order := f.inOrder(s, "")
		for i, info := range order[:8] {
			f.ok("Delete", s.Delete(f.ctx, info.Address, info.Location))
			f.covers(fmt.Sprintf("All behind deleted blob %d", i), f.inOrder(s, info.Location), order[i+1:])
		}
	}},
	{"law7/unusable location starts over", reading, func(f *fixture) {
		blobs := f.puts(7)
		s := f.ready()
		for _, after := range []blobstor.Location{"?", "lost/", "\xff", blobstor.Location(make([]byte, 999))} {
			if got := f.inOrder(s, after); len(got) != len(blobs) {
				f.Fatalf("All behind the unusable location %.20q yielded %d blobs, want %d", after, len(got), len(blobs))
			}
		}
	}},
	{"law7/resumes after reopen", once, func(f *fixture) {
		f.puts(15)
		order := f.inOrder(f.ready(), "")
		s := f.reopen()
		for i, info := range order {
			f.covers("All after reopen", f.inOrder(s, info.Location), order[i+1:])
		}
	}},
	{"law7/many blobs", once, func(f *fixture) {
		s := f.ready()
		blobs := f.batch(s, 600) // more than a storage would list in one piece
		f.lists(s, blobs)
		order := f.inOrder(s, "")
		for i := 0; i < len(order); i += 37 {
			f.covers("All", f.inOrder(s, order[i].Location), order[i+1:])
		}
	}},
	{"law7/delete in the loop", writing, func(f *fixture) {
		blobs := f.puts(20)
		s := f.ready()
		f.ok("loop", f.await("a loop that deletes", func() error {
			n := 0
			for info, err := range s.All(f.ctx, "") {
				if err != nil {
					return err
				}
				n++
				if err := s.Delete(f.ctx, info.Address, info.Location); err != nil {
					return err
				}
			}
			if n != len(blobs) {
				return fmt.Errorf("a loop that deletes saw %d blobs, want %d", n, len(blobs))
			}
			return nil
		}))
		f.lists(s, nil)
	}},
	{"law7/no lock is held across yield", writing, func(f *fixture) {
		blobs := f.puts(5)
		s := f.ready()
		n := 0
		for info, err := range s.All(f.ctx, "") {
			f.ok("All", err)
			if n++; n > len(blobs)+1 {
				break // puts of the loop may be yielded too
			}
			b, other := f.new(50), blob{addr: info.Address}
			f.ok("calls in a loop", f.await("a call inside a loop over All", func() error { return everyCall(f, s, b, other) }))
		}
	}},
	{"law7/beside puts and deletes", writing, besideWrites},
}

// inOrder returns what All yields.
func (f *fixture) inOrder(s blobstor.Storage, after blobstor.Location) (infos []blobstor.Info) {
	f.Helper()
	for info, err := range s.All(f.ctx, after) {
		f.ok("All", err)
		infos = append(infos, info)
	}
	return infos
}

// covers checks that got holds all that want holds.
func (f *fixture) covers(what string, got, want []blobstor.Info) {
	f.Helper()
	seen := map[blobstor.Address]bool{}
	for _, info := range got {
		seen[info.Address] = true
	}
	for _, info := range want {
		if !seen[info.Address] {
			f.Fatalf("%s misses %v", what, info.Address)
		}
	}
}

// everyCall uses the storage in all ways: it puts b and deletes it, and reads other.
func everyCall(f *fixture, s blobstor.Storage, b, other blob) error {
	if _, err := s.Put(f.ctx, b.addr, b.data); err != nil {
		return err
	}
	if _, err := s.Get(f.ctx, other.addr, "", nil); err != nil {
		return err
	}
	if _, err := s.Stat(f.ctx, b.addr, ""); err != nil {
		return err
	}
	for _, err := range s.All(f.ctx, "") {
		if err != nil {
			return err
		}
		break
	}
	return s.Delete(f.ctx, b.addr, "")
}

// besideWrites runs over All again and again while others put and delete: what stays is yielded once per run.
func besideWrites(f *fixture) {
	stay := f.puts(30)
	s := f.ready()
	churn := func() func() error {
		mine := make([]blob, 10)
		for i := range mine {
			mine[i] = f.new(i * 60)
		}
		return repeat(4, func() error {
			for _, b := range mine {
				if _, err := s.Put(f.ctx, b.addr, b.data); err != nil {
					return err
				}
			}
			return blobstor.DeleteBatch(f.ctx, s, items(mine))
		})
	}
	list := repeat(6, func() error {
		seen := map[blobstor.Address]int{}
		for info, err := range s.All(f.ctx, "") {
			if err != nil {
				return err
			}
			seen[info.Address]++
		}
		for _, b := range stay {
			if n := seen[b.addr]; n != 1 {
				return fmt.Errorf("All beside writes yielded a blob %d times", n)
			}
		}
		return nil
	})
	f.ok("All beside writes", f.await("All beside writes", func() error { return together(churn(), churn(), list) }))
	f.hasAll(s, stay)
	f.lists(s, stay)
}
