package torture

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
	"github.com/granary-store/granary/metabase"
)

// Stack is all of Granary, wired as a node would.
type Stack struct {
	Small *blobovnicza.Tree
	Large *fstree.Tree
	Blobs *blobstor.Router // over both
	Index *metabase.DB

	locks *blobstor.Locks
	dir   string
}

// Options say how a stack is opened.
type Options struct {
	Create   bool
	ReadOnly bool
	Ballast  int64 // of the metabase, none if zero
	Flat     bool  // fstree has no directories, if it is new
}

// fileSize makes a blobovnicza full after some ten blobs: files are sealed, indexed and compacted all the time.
const fileSize = 128 << 10

// Open opens the stack in the directory dir.
func Open(dir string, o Options) (*Stack, error) {
	s := &Stack{locks: blobstor.NewLocks(), dir: dir}
	if err := s.openBlobs(o); err != nil {
		return nil, err
	}
	var err error
	if s.Index, err = s.openIndex("meta", o); err != nil {
		return nil, errors.Join(err, s.Blobs.Close())
	}
	return s, nil
}

func (s *Stack) openBlobs(o Options) (err error) {
	s.Small, err = blobovnicza.Open(filepath.Join(s.dir, "small"), &blobovnicza.Options{
		Create: o.Create, ReadOnly: o.ReadOnly, Width: 2, Depth: 1, FileSize: fileSize,
		Compact: blobovnicza.CompactOptions{DeadRatio: 0.1},
	})
	if err != nil {
		return err
	}
	large := &fstree.Options{Create: o.Create, ReadOnly: o.ReadOnly}
	if o.Flat {
		large.Depth = -1
	}
	s.Large, err = fstree.Open(filepath.Join(s.dir, "large"), large)
	if err != nil {
		return errors.Join(err, s.Small.Close())
	}
	s.Blobs, err = blobstor.New(
		blobstor.Route{Name: "small", MaxSize: smallMax, Storage: s.Small},
		blobstor.Route{Name: "large", Storage: s.Large},
	)
	return err
}

func (s *Stack) openIndex(name string, o Options) (*metabase.DB, error) {
	if o.Ballast == 0 {
		o.Ballast = -1
	}
	return metabase.Open(filepath.Join(s.dir, name), &metabase.Options{
		Create: o.Create, ReadOnly: o.ReadOnly, Ballast: o.Ballast, Locks: s.locks,
	})
}

// Close closes all of it.
func (s *Stack) Close() error { return errors.Join(s.Index.Close(), s.Blobs.Close()) }

// Put stores an object: the blob, then its record.
func (s *Stack) Put(ctx context.Context, n Object) error {
	return s.put(ctx, n, func(a blobstor.Address) (blobstor.Location, error) { return s.Blobs.Put(ctx, a, n.Data()) })
}

// PutStream is Put by a Writer that does not know the size beforehand.
func (s *Stack) PutStream(ctx context.Context, n Object) error {
	return s.put(ctx, n, func(a blobstor.Address) (blobstor.Location, error) {
		w, err := s.Blobs.NewWriter(ctx, -1)
		if err != nil {
			return "", err
		}
		defer w.Close()
		if _, err := w.Write(n.Data()); err != nil {
			return "", err
		}
		return w.Commit(a)
	})
}

func (s *Stack) put(ctx context.Context, n Object, write func(blobstor.Address) (blobstor.Location, error)) error {
	a := n.Address()
	defer s.locks.Lock(a)()
	at, err := write(a)
	if err != nil || n.Bare() {
		return err
	}
	return s.Index.Put(ctx, record(a, int64(n.Size()), at))
}

// PutBatch stores objects that were never there before, so that Collect, which the locks are for, does not meet them.
func (s *Stack) PutBatch(ctx context.Context, ns []Object) error {
	items := make([]blobstor.Item, len(ns))
	for i, n := range ns {
		items[i] = blobstor.Item{Address: n.Address(), Data: n.Data()}
	}
	if err := s.Blobs.PutBatch(ctx, items); err != nil {
		return err
	}
	var entries []metabase.Entry
	for i, n := range ns {
		if !n.Bare() {
			r := record(items[i].Address, int64(n.Size()), items[i].Location)
			entries = append(entries, metabase.Entry{Records: []metabase.Record{r}})
		}
	}
	return s.Index.PutBatch(ctx, entries)
}

// record makes the record of an object from what a rebuild knows too.
func record(a blobstor.Address, size int64, at blobstor.Location) metabase.Record {
	n, _ := objectAt(a)
	return metabase.Record{Address: a, Size: size, Location: at, Attrs: []metabase.Attr{
		{Key: "parity", Value: []string{"even", "odd"}[n%2]},
		{Key: "size", Value: strconv.FormatInt(size, 10)},
	}}
}

// Remove makes objects invisible, durably: the blobs of bare ones go at once, the others are marked for Collect.
func (s *Stack) Remove(ctx context.Context, ns ...Object) error {
	var items []blobstor.Item
	var marked []blobstor.Address
	for _, n := range ns {
		if n.Bare() {
			items = append(items, blobstor.Item{Address: n.Address()})
		} else {
			marked = append(marked, n.Address())
		}
	}
	var err error
	if len(marked) > 0 {
		err = s.Index.Mark(ctx, metabase.Garbage, marked...)
	}
	switch len(items) {
	case 0:
	case 1:
		err = errors.Join(err, s.Blobs.Delete(ctx, items[0].Address, ""))
	default:
		err = errors.Join(err, s.Blobs.DeleteBatch(ctx, items))
	}
	return err
}

// Collect removes marked objects, and returns those that are gone for good when it returns.
func (s *Stack) Collect(ctx context.Context) (gone []Object, err error) {
	_, err = s.Index.Collect(ctx, 100, func(ctx context.Context, items []blobstor.Item) error {
		err := s.Blobs.DeleteBatch(ctx, items)
		for i := range items {
			if n, ok := objectAt(items[i].Address); ok && (items[i].Err == nil || errors.Is(items[i].Err, blobstor.ErrNotFound)) {
				gone = append(gone, n)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// Rebuild makes a metabase of another name from the blobs, calls look with it and closes it.
func (s *Stack) Rebuild(ctx context.Context, look func(*metabase.DB) error) error {
	db, err := s.openIndex("again", Options{Create: true})
	if err != nil {
		return err
	}
	err = db.Reset(ctx)
	if err == nil {
		var bad error
		note := func(_ blobstor.Info, err error) {
			if !errors.Is(err, errBare) && !errors.Is(err, blobstor.ErrNotFound) { // removed meanwhile
				bad = errors.Join(bad, err)
			}
		}
		_, err = metabase.Rebuild(ctx, db, s.Blobs, parse, &metabase.RebuildOptions{Bad: note})
		err = errors.Join(err, bad)
	}
	if err == nil && look != nil {
		err = look(db)
	}
	return errors.Join(err, db.Close())
}

var errBare = errors.New("a blob that has no record")

// parse makes the record of a blob.
func parse(info blobstor.Info, _ io.ReaderAt) ([]metabase.Record, error) {
	n, ok := objectAt(info.Address)
	if !ok {
		return nil, errStranger
	}
	if n.Bare() {
		return nil, errBare
	}
	return []metabase.Record{record(info.Address, info.Size, info.Location)}, nil
}
