package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
	"github.com/granary-store/granary/metabase"
)

var errStranger = errors.New("nothing that was ever put")

// Verify compares a stack that nobody changes with the ledger and returns all that is wrong. Of what was under way it
// notes how it ended. It may run before a first look by anyone else, so that it sees what an Open makes of a crash.
func (l *Ledger) Verify(ctx context.Context, s *Stack) error {
	v := &verifier{Ledger: l, Stack: s}
	for n, f := range l.fates {
		v.object(ctx, n, f)
	}
	v.listing(ctx)
	v.index(ctx, s.Index)
	v.reports(ctx)
	return errors.Join(v.errs...)
}

// VerifyRebuilt makes a metabase from the blobs and compares that with the ledger too.
func (l *Ledger) VerifyRebuilt(ctx context.Context, s *Stack) error {
	v := &verifier{Ledger: l, Stack: s}
	err := s.Rebuild(ctx, func(db *metabase.DB) error {
		for n, f := range l.fates {
			if f != there || n.Bare() {
				continue
			}
			rec, err := db.Get(ctx, n.Address())
			v.check(err, "rebuilt record of %d", n)
			if err == nil && rec.Size != int64(n.Size()) {
				v.add("rebuilt record of %d says %d bytes", n, rec.Size)
			}
		}
		return db.Check(ctx)
	})
	v.check(err, "rebuild")
	return errors.Join(v.errs...)
}

// maxErrors is how many errors are told. What is wrong once is often wrong everywhere.
const maxErrors = 20

type verifier struct {
	*Ledger
	*Stack
	errs  []error
	small int64 // blobs listed that are in blobovnicza
}

func (v *verifier) add(format string, args ...any) {
	if len(v.errs) < maxErrors {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *verifier) check(err error, format string, args ...any) {
	if err != nil {
		v.add("%s: %w", fmt.Sprintf(format, args...), err)
	}
}

// object verifies one object by reading blob and record.
func (v *verifier) object(ctx context.Context, n Object, f fate) {
	blob, err := v.Blobs.Get(ctx, n.Address(), "", nil)
	missing := errors.Is(err, blobstor.ErrNotFound)
	var data []byte
	if !missing {
		data = n.Data()
	}
	switch {
	case err != nil && !missing:
		v.add("object %d, %v: %w", n, f, err)
		return
	case !bytes.Equal(blob, data):
		v.add("object %d, %v: %d bytes that differ from the %d that were put", n, f, len(blob), n.Size())
		return
	}
	live := !missing
	if !n.Bare() {
		live = v.record(ctx, n, missing)
	}
	switch {
	case f == there && (missing || !live):
		v.add("object %d was put: blob missing %v, live %v", n, missing, live)
	case f == loose && live:
		v.add("object %d was removed and is back", n)
	case f == gone && !missing:
		v.add("object %d was removed for good and its blob is back", n)
	case f == maybe && live:
		v.fates[n] = there
	case f == maybe && missing && n.Bare():
		v.fates[n] = gone
	case f == maybe:
		v.fates[n] = loose
	}
	if live {
		v.part(ctx, n, data)
	}
}

// record verifies the record of an object and reports whether it can be seen.
func (v *verifier) record(ctx context.Context, n Object, missing bool) bool {
	rec, err := v.Index.Get(ctx, n.Address())
	if errors.Is(err, blobstor.ErrNotFound) {
		if st, err := v.Index.Status(ctx, n.Address()); v.fates[n] == gone && st.State != metabase.Missing {
			v.add("object %d is gone and has a record of state %d: %w", n, st.State, err)
		}
		return false
	}
	v.check(err, "record of %d", n)
	if err != nil {
		return false
	}
	if missing {
		v.add("object %d, %v: a record without its blob", n, v.fates[n])
	}
	want := record(n.Address(), int64(n.Size()), rec.Location)
	if rec.Size != want.Size || len(rec.Attrs) != len(want.Attrs) || rec.Attrs[0] != want.Attrs[0] || rec.Attrs[1] != want.Attrs[1] {
		v.add("object %d has the record %+v", n, rec)
	}
	if got, err := v.Blobs.Get(ctx, n.Address(), rec.Location, nil); err != nil || len(got) != n.Size() {
		v.add("object %d, where its record says: %d bytes, %w", n, len(got), err)
	}
	return true
}

// part reads a part of an object.
func (v *verifier) part(ctx context.Context, n Object, data []byte) {
	size := int64(len(data))
	off := size / 3
	got, err := blobstor.GetRange(ctx, v.Blobs, n.Address(), "", off, size/2)
	if err != nil || !bytes.Equal(got, data[off:off+size/2]) {
		v.add("object %d, a part of it: %d bytes, %w", n, len(got), err)
	}
}

// listing verifies what the storages list: all that is there, once, and nothing that is not.
func (v *verifier) listing(ctx context.Context) {
	seen := map[Object]bool{}
	for info, err := range v.Blobs.All(ctx, "") {
		if err != nil {
			v.add("listing: %w", err)
			continue
		}
		n, ok := objectAt(info.Address)
		f := v.fates[n]
		switch {
		case !ok || f == unheard:
			v.add("listing: %v is %w", info.Address, errStranger)
		case f == gone || seen[n] || info.Size != int64(n.Size()):
			v.add("listing: object %d, %v, %d bytes; came before %v", n, f, info.Size, seen[n])
		}
		seen[n] = true
		if strings.HasPrefix(string(info.Location), "small/") {
			v.small++
		}
	}
	for n, f := range v.fates {
		if f == there && !seen[n] {
			v.add("listing: object %d is not in it", n)
		}
	}
}

// index verifies what the metabase lists and finds.
func (v *verifier) index(ctx context.Context, db *metabase.DB) {
	listed := map[Object]bool{}
	var after blobstor.Address
	for {
		page, err := db.List(ctx, after, 1000)
		v.check(err, "list")
		for _, f := range page {
			n, ok := objectAt(f.Address)
			if !ok || v.fates[n] != there {
				v.add("list: object %d, %v", n, v.fates[n])
			}
			listed[n] = true
		}
		if err != nil || len(page) == 0 {
			break
		}
		after = page[len(page)-1].Address
	}
	found := v.search(ctx, db)
	for n, f := range v.fates {
		if want := f == there && !n.Bare(); listed[n] != want || found[n] != want {
			v.add("object %d, %v: listed %v, found %v", n, f, listed[n], found[n])
		}
	}
	v.check(db.Check(ctx), "check of the metabase")
}

// search finds all objects by an attribute.
func (v *verifier) search(ctx context.Context, db *metabase.DB) map[Object]bool {
	found := map[Object]bool{}
	for c := range byte(containers) {
		q := metabase.Query{Container: container(c), Filters: []metabase.Filter{{Key: "size", Op: metabase.GE, Value: "0"}}}
		for {
			page, err := db.Search(ctx, q)
			v.check(err, "search")
			for _, m := range page.Found {
				if n, ok := objectAt(m.Address); ok {
					found[n] = true
				}
			}
			if err != nil || !page.More {
				break
			}
			q.After = page.Next
		}
	}
	return found
}

// reports has the storages verify themselves.
func (v *verifier) reports(ctx context.Context) {
	small, err := v.Small.Check(ctx)
	if err == nil && small.Total.Objects != v.small {
		v.add("blobovnicza counts %d blobs and lists %d", small.Total.Objects, v.small)
	}
	v.check(errors.Join(err, smallFaults(small)), "check of blobovnicza")
	if lost := v.Small.Stats().Lost; lost > 0 {
		v.add("blobovnicza has lost %d ranges", lost)
	}
	large, err := v.Large.Scrub(ctx, nil)
	v.check(errors.Join(err, largeFaults(large)), "scrub of fstree")
}

// smallFaults returns what a report of blobovnicza finds wrong.
func smallFaults(r *blobovnicza.Report) (err error) {
	if r == nil || r.OK() {
		return nil
	}
	for i := range r.Files {
		if f := &r.Files[i]; !f.OK() {
			err = errors.Join(err, f.Err, fmt.Errorf("%+v", *f))
		}
	}
	for leaf, e := range r.Leaf {
		err = errors.Join(err, fmt.Errorf("leaf %d: %w", leaf, e))
	}
	return err
}

// largeFaults returns what a report of fstree finds wrong.
func largeFaults(r *fstree.ScrubReport) error {
	if r == nil || r.OK() {
		return nil
	}
	return errors.Join(append(r.Flaws, errors.New("not OK"))...)
}
