package bolt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

const (
	maxDepth  = 64  // of a tree, those of buckets inside included; bbolt's are at most a few high
	maxErrors = 100 // that Check returns
)

// Check reads every page: each must be sound, with its keys in order and within what the page above says, and must be
// reached once or be free. It returns what it finds joined, at most a hundred errors, each of which matches
// blobstor.ErrCorrupt; or the error that ended it, as that of ctx. It needs two bits of memory for each page of the
// file. Commits go on meanwhile, but the pages they free stay unused until the check ends. Close waits for it, and so
// do all calls once a commit has found the disk full.
func (db *DB) Check(ctx context.Context) error {
	if err := db.lockWrites(ctx); err != nil {
		return err
	}
	unlock := sync.OnceFunc(func() { <-db.writing })
	defer unlock()
	h, err := db.begin()
	if err != nil {
		return err
	}
	defer db.end(h)
	// The transaction keeps the pages of the commit that the metas name, once commits go on.
	return h.view(func(*Tx) error {
		size, err := h.file.Size()
		if err != nil {
			return err
		}
		now, _, err := readMetas(h.file, size)
		if err != nil {
			return err
		}
		unlock()
		return checkGraph(ctx, h.file, now)
	})
}

// graph is a walk over all pages of a commit.
type graph struct {
	pages
	ctx        context.Context //nolint:containedctx // of the one call that it lives for
	used, free bitmap
	bufs       [maxDepth][]byte // one page for each level of the walk
	errs       []error
	ended      error // what ended the walk before its time
}

func checkGraph(ctx context.Context, r io.ReaderAt, m *meta) error {
	g := &graph{pages: pages{r, *m}, ctx: ctx, used: newBitmap(m.end), free: newBitmap(m.end)}
	h, err := g.eachFree(func(id uint64) error {
		g.free.set(id)
		return nil
	})
	g.report(err)
	g.use(h)
	g.walk(g.root, 0, nil, nil)
	if len(g.errs) == 0 && g.ended == nil {
		g.checkAll() // Else what is below a damaged page would only be named again.
	}
	return errors.Join(append(g.errs, g.ended)...)
}

// report keeps a finding, or ends the walk if err is none.
func (g *graph) report(err error) {
	switch {
	case err == nil || g.ended != nil:
	case !errors.Is(err, blobstor.ErrCorrupt):
		g.ended = err
	case len(g.errs) == maxErrors-1:
		g.ended = corrupt("there is more")
	default:
		g.errs = append(g.errs, err)
	}
}

// use marks a page and its overflow, and reports whether all of it was neither in use nor free.
func (g *graph) use(h header) bool {
	for id := h.id; id <= h.id+uint64(h.overflow); id++ {
		switch {
		case !g.has(id, 0):
			return false // It was reported when the header was read.
		case g.free.has(id):
			g.report(corrupt("page %d is in use and free", id))
			return false
		case g.used.has(id):
			g.report(corrupt("page %d is reached twice", id))
			return false
		}
		g.used.set(id)
	}
	return true
}

// walk checks a page and all below it, whose keys must not be less than low, and less than high unless that is nil.
func (g *graph) walk(id uint64, depth int, low, high []byte) {
	if g.ended == nil {
		g.ended = g.ctx.Err()
	}
	if g.ended != nil {
		return
	}
	if depth == maxDepth {
		g.report(corrupt("page %d is %d levels deep", id, depth))
		return
	}
	p, ok := g.read(id, &g.bufs[depth])
	if !ok {
		return
	}
	if n := p.len(); n > 0 && (bytes.Compare(p.key(0), low) < 0 || high != nil && bytes.Compare(p.key(n-1), high) >= 0) {
		g.report(corrupt("page %d has keys that the page above does not lead to", id))
	}
	for i := range p.len() {
		child := p.child(i)
		switch {
		case p.kind == typeLeaf && child == 0:
		case p.kind == typeLeaf:
			g.walk(child, depth+1, nil, nil)
		case i+1 < p.len():
			g.walk(child, depth+1, p.key(i), p.key(i+1))
		default:
			g.walk(child, depth+1, p.key(i), high)
		}
	}
}

// read reads a page that has not been reached before.
func (g *graph) read(id uint64, buf *[]byte) (page, bool) {
	if *buf == nil {
		*buf = make([]byte, pageSize)
	}
	h, err := g.header(id, *buf)
	if err != nil {
		g.report(err)
		return page{}, false
	}
	if !g.use(h) {
		return page{}, false
	}
	p, err := g.body(h, buf)
	g.report(err)
	return p, err == nil
}

// checkAll looks for pages that nothing leads to.
func (g *graph) checkAll() {
	lost, first := 0, uint64(0)
	for id := uint64(firstPage); id < g.end; id++ {
		if g.used.has(id) || g.free.has(id) {
			continue
		}
		if lost == 0 {
			first = id
		}
		lost++
	}
	if lost > 0 {
		g.report(corrupt("%d pages are neither in use nor free, the first is %d", lost, first))
	}
}

// bitmap is a set of pages.
type bitmap []uint64

func newBitmap(n uint64) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) has(id uint64) bool { return b[id/64]>>(id%64)&1 != 0 }
func (b bitmap) set(id uint64)      { b[id/64] |= 1 << (id % 64) }
