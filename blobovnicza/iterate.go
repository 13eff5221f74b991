package blobovnicza

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// readAhead is how many headers All reads at once: few enough that what it yields is fresh.
const readAhead = 64

// All walks leaf by leaf, file by file, in the order of offsets, so that a caller who reads along reads the disk
// front to back. What is live is decided when a leaf is reached; blobs that are put later into that leaf are not
// seen. A damaged range whose addresses are lost is an error with a location.
func (t *Tree) All(ctx context.Context, after blobstor.Location) iter.Seq2[blobstor.Info, error] {
	return func(yield func(blobstor.Info, error) bool) {
		from, behind, ok := parseLocation(after)
		if !ok || int(from) >= len(t.leaves) {
			from, behind = 0, place{}
		}
		for _, l := range t.leaves[from:] {
			w := walk{leaf: l, behind: behind}
			for more := true; more; {
				found, err := w.next(ctx)
				switch {
				case err != nil:
					yield(blobstor.Info{}, blobstor.Wrap("all", blobstor.Address{}, "", err))
					return
				case found == nil:
					more = false
				case !yield(found.info, found.err):
					return
				}
			}
			behind = place{}
		}
	}
}

// walk is an iteration over one leaf.
type walk struct {
	leaf    *leaf
	behind  place
	started bool
	todo    []live
	lost    []lostSpan // reported at the end
	ahead   []walked   // read, not yet yielded
	buf     []walked
}

// live is a record to visit.
type live struct {
	file  *file
	entry entry
}

// walked is what All yields for it.
type walked struct {
	info blobstor.Info
	err  error
}

// next returns the next blob, nil at the end. It is a call of the store of its own.
func (w *walk) next(ctx context.Context) (*walked, error) {
	call, err := w.leaf.tree.calls.enter(ctx, &blobstor.Address{})
	if err != nil {
		return nil, err
	}
	defer call.RUnlock()
	if len(w.ahead) == 0 {
		w.fill()
	}
	if len(w.ahead) == 0 {
		return nil, nil
	}
	found := &w.ahead[0]
	w.ahead = w.ahead[1:]
	return found, nil
}

// fill reads the next few headers.
func (w *walk) fill() {
	if !w.started {
		w.started, w.todo, w.lost = true, w.leaf.snapshot(w.behind), w.leaf.lost
		w.buf = make([]walked, 0, readAhead)
	}
	n := min(len(w.todo), readAhead)
	w.ahead = w.buf[:0]
	for _, rec := range w.todo[:n] {
		w.ahead = append(w.ahead, w.leaf.visit(rec))
	}
	if w.todo = w.todo[n:]; n == 0 {
		for _, lost := range w.lost {
			w.ahead = append(w.ahead, w.leaf.mourn(lost))
		}
		w.lost = nil
	}
}

// visit reads the header of a live record.
func (l *leaf) visit(rec live) walked {
	p := rec.entry.in(rec.file.number)
	h, err := rec.file.header(p.off)
	if err != nil {
		at := makeLocation(l.id, p)
		return walked{blobstor.Info{Location: at}, &blobstor.Error{Op: "all", Location: at, Err: err}}
	}
	return walked{info: infoOf(&h, l.id, p)}
}

// mourn reports a lost span.
func (l *leaf) mourn(lost lostSpan) walked {
	at := makeLocation(l.id, place{file: lost.file, off: lost.from})
	return walked{blobstor.Info{Location: at}, &blobstor.Error{Op: "all", Location: at,
		Err: fmt.Errorf("%w: %d bytes of records are lost", blobstor.ErrCorrupt, lost.to-lost.from)}}
}

// header reads the header that the index says lies at off.
func (f *file) header(off int64) (header, error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if err := f.readAt(s.record[:headerSize], off); err != nil {
		return header{}, err
	}
	h, ok := parseHeader(s.record[:headerSize], f.seed, off)
	if !ok {
		return header{}, blobstor.ErrCorrupt
	}
	return h, nil
}

// snapshot lists the live records behind a place in the order of their places. A record is live if it is a put
// and no newer file has one of its address. Only the active file changes meanwhile, so what it held is taken
// first, once for all comparisons: a blob that is healed now is found either here or there, never in both.
func (l *leaf) snapshot(behind place) []live {
	files := *l.files.Load()
	last := len(files) - 1
	active := files[last].index.sorted(l.tree.sortKey)
	var all []live
	for i, f := range files {
		if f.number < behind.file {
			continue
		}
		entries := active
		if i < last {
			entries = f.index.sorted(l.tree.sortKey)
		}
		start := len(all)
		for _, k := range entries {
			later := f.number > behind.file || k.entry.off() > behind.off
			if later && !k.entry.tombstone() && (i == last || !superseded(f, k, files[i+1:last], files[last], active)) {
				all = append(all, live{f, k.entry})
			}
		}
		slices.SortFunc(all[start:], func(a, b live) int { return cmp.Compare(a.entry, b.entry) })
	}
	return all
}

// superseded reports whether a newer file has a record of the address that k has in f.
func superseded(f *file, k keyed, full []*file, active *file, snapshot []keyed) bool {
	for i, _ := slices.BinarySearchFunc(snapshot, k.key, compareKey); i < len(snapshot) && snapshot[i].key == k.key; i++ {
		if sameAddress(f, k.entry, active, snapshot[i].entry) {
			return true
		}
	}
	for _, g := range full {
		if g.index.get(k.key, nil) == 0 {
			continue
		}
		h, err := f.header(k.entry.off())
		if err != nil || sameAddress(f, k.entry, g, g.index.get(k.key, &h.address)) {
			return true
		}
	}
	return false
}

func compareKey(k keyed, key uint64) int { return cmp.Compare(k.key, key) }

// sameAddress compares two records of one key. If either cannot be read, they are taken for one address's: that
// two addresses share a key is far less likely.
func sameAddress(f *file, a entry, g *file, b entry) bool {
	x, errX := f.header(a.off())
	y, errY := g.header(b.off())
	return errX != nil || errY != nil || x.address == y.address
}
