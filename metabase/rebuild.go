package metabase

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// ParseFunc makes the records of a blob: its object's and behind it those that it is a part of. It reads only what it
// needs; the first 20 KiB are at hand. What it returns must not refer to what it read. It may be called by several
// goroutines at once.
type ParseFunc func(info blobstor.Info, r io.ReaderAt) ([]Record, error)

// RebuildOptions are what [Rebuild] can be told.
type RebuildOptions struct {
	// After is where an earlier call ended; "" is the beginning.
	After blobstor.Location

	// Bad gets every blob that is not recorded, and why: it cannot be read, is not understood, or its record is not
	// valid or of another address. Rebuild goes on. Nil ignores them.
	Bad func(info blobstor.Info, err error)
}

// Rebuild records the objects of all blobs of a storage, in the order of its All. It records everything, also what is
// buried or has expired, and lets the status decide, so the order does not matter: a lock or a tombstone may come
// before its target. It returns a location to go on behind, After if nothing was committed; when it ends early, because
// ctx ended, the database or iteration failed or the disk is full ([ErrPressed]), what lies before that location is
// durable. It cannot know marks, nor removals that were interrupted before the blob went. The database is usually fresh
// or was [DB.Reset] before.
func Rebuild(ctx context.Context, db *DB, from blobstor.BlobStor, parse ParseFunc, o *RebuildOptions) (resume blobstor.Location, err error) {
	if o == nil {
		o = &RebuildOptions{}
	}
	r := rebuild{db: db, from: from, parse: parse, bad: o.Bad}
	return r.run(ctx, o.After)
}

// How many blobs are recorded with one commit, and the bytes of changes in one. The file's tree has the keys in another
// order than the blobs come in, so the larger a commit, the fewer times each of its pages is written.
const (
	rebuildBatch = 16 << 10
	rebuildBytes = 64 << 20
)

type rebuild struct {
	db    *DB
	from  blobstor.BlobStor
	parse ParseFunc
	bad   func(blobstor.Info, error)
}

func (r *rebuild) run(ctx context.Context, resume blobstor.Location) (blobstor.Location, error) {
	batch := make([]blobstor.Info, 0, rebuildBatch)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := r.record(ctx, batch); err != nil {
			return err
		}
		resume, batch = batch[len(batch)-1].Location, batch[:0]
		return nil
	}
	for info, err := range r.from.All(ctx, resume) {
		if err != nil {
			e, ok := errors.AsType[*blobstor.Error](err)
			if !ok || e.Address.IsZero() && e.Location == "" {
				err = errors.Join(err, flush())
				return resume, err
			}
			r.report(blobstor.Info{Address: e.Address, Location: e.Location, Size: -1}, err)
			continue
		}
		if batch = append(batch, info); len(batch) == rebuildBatch {
			if err := flush(); err != nil {
				return resume, err
			}
		}
	}
	err := flush()
	return resume, err
}

func (r *rebuild) report(info blobstor.Info, err error) {
	if r.bad != nil {
		r.bad(info, err)
	}
}

// readers is how many goroutines read and parse.
const readers = 4

// record reads and records the blobs of a batch.
func (r *rebuild) record(ctx context.Context, batch []blobstor.Info) error {
	es := make([]Entry, len(batch))
	var wg sync.WaitGroup
	for k := range readers {
		wg.Go(func() {
			p := prefixReader{ctx: ctx, s: r.from}
			for i := k; i < len(batch); i += readers {
				es[i].Records, es[i].Err = r.read(&p, batch[i])
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err // what could not be read for that is no bad blob
	}
	good, of := es[:0:0], []int(nil)
	for i := range es {
		if es[i].Err != nil {
			r.report(batch[i], es[i].Err)
			continue
		}
		good, of = append(good, es[i]), append(of, i)
	}
	if err := r.db.putAll(ctx, good, true); err != nil {
		return blobstor.Wrap("rebuild", blobstor.Address{}, "", err)
	}
	for k := range good {
		if err := good[k].Err; errors.Is(err, ErrPressed) {
			return blobstor.Wrap("rebuild", blobstor.Address{}, "", err) // which speaks against no blob
		} else if err != nil {
			r.report(batch[of[k]], err)
		}
	}
	return nil
}

// read returns the records of a blob.
func (r *rebuild) read(p *prefixReader, info blobstor.Info) ([]Record, error) {
	if err := p.open(info); err != nil {
		return nil, err
	}
	recs, err := r.parse(info, p)
	switch {
	case err != nil:
		return nil, blobstor.Wrap("parse", info.Address, info.Location, err)
	case len(recs) == 0 || recs[0].Address != info.Address:
		return nil, blobstor.Wrap("parse", info.Address, info.Location, ErrRecord)
	}
	recs[0].Location = info.Location
	return recs, nil
}

// prefixSize is how much of a blob is read at once: the header of an object, and all of a small one.
const prefixSize = 20 << 10

// prefixReader reads a blob of which it has the beginning.
type prefixReader struct {
	ctx  context.Context
	s    blobstor.Storage
	info blobstor.Info
	buf  [prefixSize]byte
	n    int
	size int64
}

func (p *prefixReader) open(info blobstor.Info) (err error) {
	p.info = info
	p.n, p.size, err = blobstor.ReadRange(p.ctx, p.s, info.Address, info.Location, p.buf[:], 0)
	return err
}

func (p *prefixReader) ReadAt(b []byte, off int64) (n int, err error) {
	if off < int64(p.n) && off >= 0 {
		n = copy(b, p.buf[off:p.n])
	}
	if n < len(b) && off+int64(n) < p.size {
		var more int
		more, _, err = blobstor.ReadRange(p.ctx, p.s, p.info.Address, p.info.Location, b[n:], off+int64(n))
		n += more
	}
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}
