package blobovnicza

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// readAhead is how many blobs All takes up at once, in one call of the store.
const readAhead = 256

// All walks leaf by leaf, file by file, in the order of offsets, so that a caller who reads along reads the disk
// front to back. What is live is decided when a leaf is reached; blobs that are put later into that leaf are not
// seen. Files that compaction replaces meanwhile stay until the leaf is done. It reads indexes, not blobs: one whose
// record is damaged is yielded like any other, and is ErrCorrupt when it is read. A damaged range whose addresses are
// lost is an error with a location, ErrCorrupt, behind the leaf's blobs.
func (t *Tree) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		from, behind, ok := parseLocation(after)
		if !ok || int(from) >= len(t.leaves) {
			from, behind = 0, place{}
		}
		for _, l := range t.leaves[from:] {
			if !l.walk(ctx, behind, yield) {
				return
			}
			behind = place{}
		}
	}
}

// walk yields the leaf's blobs and reports whether to go on.
func (l *leaf) walk(ctx context.Context, behind place, yield func(blobstor.Info, error) bool) bool {
	w := walk{leaf: l, behind: behind}
	defer w.end()
	for {
		found, err := w.next(ctx)
		if err != nil {
			yield(blobstor.Info{}, blobstor.Wrap("all", blobstor.Address{}, "", err))
			return false
		}
		if len(found) == 0 {
			return true
		}
		for i := range found {
			if i > 0 && l.tree.mayGoOn(ctx) != nil {
				break // next says why
			}
			if !yield(found[i].info, found[i].err) {
				return false
			}
		}
	}
}

// mayGoOn returns the error with which a call would end now.
func (t *Tree) mayGoOn(ctx context.Context) error {
	call, err := t.calls.enter(ctx, &blobstor.Address{})
	if err == nil {
		call.RUnlock()
	}
	return err
}

// walk is an iteration over one leaf.
type walk struct {
	leaf   *leaf
	behind place
	pinned *version
	views  []*view    // yet to be walked
	rows   []row      // live, of the first of them
	todo   []uint64   // what of rows is yet to be visited, in the order of offsets: offset/8, and the row's index
	lost   []lostSpan // reported at the end
	buf    []walked
}

// walked is what All yields for a blob.
type walked struct {
	info blobstor.Info
	err  error
}

// next returns the next few blobs, nil at the end. It is a call of the store of its own.
func (w *walk) next(ctx context.Context) ([]walked, error) {
	t := w.leaf.tree
	call, err := t.calls.enter(ctx, &blobstor.Address{})
	if err != nil {
		return nil, err
	}
	defer call.RUnlock()
	if w.pinned == nil {
		if err := w.begin(); err != nil {
			return nil, err
		}
	}
	w.buf = w.buf[:0]
	for len(w.buf) == 0 && len(w.views) > 0 {
		if err := w.fill(); err != nil {
			return nil, err
		}
	}
	if len(w.buf) == 0 {
		w.mourn()
	}
	return w.buf, nil
}

// begin decides what is live.
func (w *walk) begin() (err error) {
	l := w.leaf
	if err := l.use(); err != nil {
		return err
	}
	w.pinned = l.pin()
	l.mu.Lock()
	w.lost = l.lost
	l.mu.Unlock()
	if w.views, err = liveViews(w.pinned); err != nil {
		return err
	}
	for len(w.views) > 0 && w.views[0].number < w.behind.file {
		w.views = w.views[1:]
	}
	return w.open()
}

func (w *walk) end() {
	if w.pinned == nil {
		return
	}
	call, err := w.leaf.tree.calls.enter(context.Background(), &blobstor.Address{})
	if err != nil {
		return // the store is closed, and its files are gone
	}
	defer call.RUnlock()
	if err := w.leaf.unpin(w.pinned); err != nil {
		w.leaf.tree.log.Warn("files not removed", "leaf", w.leaf.id, "err", err)
	}
}

// open lists what is to be visited in the first view.
func (w *walk) open() error {
	if len(w.views) == 0 {
		return nil
	}
	v, n := w.views[0], 0
	w.rows, w.todo = w.rows[:0], w.todo[:0]
	for e, err := range v.stream() {
		if errors.Is(err, errHealed) {
			return w.open()
		}
		if err != nil {
			return err
		}
		if v.live.has(n) && !e.entry.tombstone() && (v.number > w.behind.file || e.entry.off() > w.behind.off) {
			w.todo = append(w.todo, uint64(e.entry.off()/align)<<32|uint64(len(w.rows)))
			w.rows = append(w.rows, e)
		}
		n++
	}
	slices.Sort(w.todo) // and not the rows, which are large
	return nil
}

// fill takes up the next few blobs of the first view; behind the last ones, the view is done.
func (w *walk) fill() error {
	v, n := w.views[0], min(len(w.todo), readAhead)
	for _, at := range w.todo[:n] {
		e := &w.rows[uint32(at)]
		h := header{kind: kindPut, address: e.address, length: e.entry.length()}
		w.buf = append(w.buf, walked{info: infoOf(&h, w.leaf.id, e.entry.in(v.number))})
	}
	if w.todo = w.todo[n:]; len(w.todo) > 0 {
		return nil
	}
	w.views = w.views[1:]
	return w.open()
}

// mourn reports the damaged ranges.
func (w *walk) mourn() {
	for _, lost := range w.lost {
		w.report(place{file: lost.file, off: lost.from},
			fmt.Errorf("%w: %d bytes of records are lost", blobstor.ErrCorrupt, lost.to-lost.from))
	}
	w.lost = nil
}

func (w *walk) report(p place, err error) {
	at := makeLocation(w.leaf.id, p)
	w.buf = append(w.buf, walked{blobstor.Info{Location: at}, &blobstor.Error{Op: "all", Location: at, Err: err}})
}
