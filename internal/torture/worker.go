package torture

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// worker changes objects of its own: nobody else does, so it knows what is there.
type worker struct {
	*driver
	rng  *rand.Rand
	next Object // never used
	step Object
	mine []Object // there
	past []Object // removed; may be put again
}

// work goes on until a call fails.
func (d *driver) work(ctx context.Context, g int) {
	w := &worker{driver: d, rng: rand.New(rand.NewPCG(d.Seed, uint64(g)))}
	w.next, w.step = d.First+Object(g), Object(d.Workers)
	for i := g; i < len(d.Old); i += d.Workers {
		w.mine = append(w.mine, d.Old[i])
	}
	for ctx.Err() == nil {
		what, err := w.act(ctx)
		if err != nil && ctx.Err() == nil {
			w.sayFailed(what, err)
			return
		}
	}
}

func (w *worker) act(ctx context.Context) (what string, err error) {
	switch k := w.rng.IntN(100); {
	case k < 45:
		return "put", w.put(ctx, w.fresh())
	case k < 55:
		return "put again", w.put(ctx, w.some(&w.mine, false))
	case k < 60:
		return "put back", w.put(ctx, w.some(&w.past, true))
	case k < 65:
		return "put batch", w.putBatch(ctx)
	case k < 80:
		return "remove", w.remove(ctx, 1)
	case k < 83:
		return "remove batch", w.remove(ctx, 4)
	}
	return "read", w.read(ctx, w.some(&w.mine, false))
}

func (w *worker) fresh() Object {
	n := w.next
	w.next += w.step
	return n
}

// none is no object.
const none Object = -1

// some returns an object of a list, which it takes out if wanted.
func (w *worker) some(list *[]Object, out bool) Object {
	if len(*list) == 0 {
		return none
	}
	i := w.rng.IntN(len(*list))
	n := (*list)[i]
	if out {
		(*list)[i] = (*list)[len(*list)-1]
		*list = (*list)[:len(*list)-1]
	}
	return n
}

func (w *worker) put(ctx context.Context, n Object) error {
	if n == none {
		return nil
	}
	w.begin(wordPutting, n)
	put := w.Put
	if w.rng.IntN(8) == 0 {
		put = w.PutStream
	}
	if err := put(ctx, n); err != nil {
		return err
	}
	w.keep(n)
	w.acknowledge(wordPut, n)
	return nil
}

func (w *worker) keep(n Object) {
	if !slices.Contains(w.mine, n) {
		w.mine = append(w.mine, n)
	}
}

func (w *worker) putBatch(ctx context.Context) error {
	ns := make([]Object, 1+w.rng.IntN(8))
	for i := range ns {
		ns[i] = w.fresh()
	}
	w.begin(wordPutting, ns...)
	if err := w.PutBatch(ctx, ns); err != nil {
		return err
	}
	w.mine = append(w.mine, ns...)
	w.acknowledge(wordPut, ns...)
	return nil
}

func (w *worker) remove(ctx context.Context, count int) error {
	var ns []Object
	for range count {
		if n := w.some(&w.mine, true); n != none {
			ns = append(ns, n)
		}
	}
	if len(ns) == 0 {
		return nil
	}
	w.begin(wordRemoving, ns...)
	if err := w.Remove(ctx, ns...); err != nil {
		return err
	}
	for _, n := range ns {
		if !n.once() {
			w.past = append(w.past, n)
		}
	}
	w.acknowledge(wordRemoved, ns...)
	return nil
}

// read compares all or a part of an object.
func (w *worker) read(ctx context.Context, n Object) (err error) {
	if n == none {
		return nil
	}
	var got []byte
	want := n.Data()
	if w.rng.IntN(2) == 0 {
		got, err = w.Blobs.Get(ctx, n.Address(), "", nil)
	} else {
		off := w.rng.IntN(len(want) + 1)
		want = want[off:][:w.rng.IntN(len(want)-off+1)]
		got, err = blobstor.GetRange(ctx, w.Blobs, n.Address(), "", int64(off), int64(len(want)))
	}
	if err == nil && !bytes.Equal(got, want) {
		w.sayWrong("object %d: %d bytes that differ from %d", n, len(got), len(want))
	}
	return err
}
