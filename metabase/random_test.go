package metabase

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// policy is a program's idea of what to ask for. All that it makes lies in the containers and under the IDs it lists.
type policy interface {
	act(rng *rand.Rand) action
	query(rng *rand.Rand) Query
	world() (containers, objects []blobstor.ID)
}

// action is something to do, on the database and on the model: entries to put, or marks to set.
type action struct {
	entries [][]Record
	force   bool
	mark    Mark
	addrs   []blobstor.Address
}

// longEnv is how many operations a long run of TestRandom has; seedEnv repeats one run.
const (
	longEnv = "GRANARY_METABASE_OPS"
	seedEnv = "GRANARY_METABASE_SEED"
)

func TestRandom(t *testing.T) {
	runs, steps := 4, 300
	if n, err := strconv.Atoi(os.Getenv(longEnv)); err == nil {
		runs, steps = 4, n
	} else if testing.Short() {
		runs, steps = 2, 200
	}
	for name, make := range map[string]func(rng *rand.Rand) policy{"plain": newPlain, "s3": newS3} {
		for seed := range uint64(runs) {
			if n, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
				seed = n
			}
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) { randomRun(t, seed, steps, make) })
		}
	}
}

func randomRun(t *testing.T, seed uint64, steps int, make func(rng *rand.Rand) policy) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, Options{NoSync: true, ScanLimit: 1 + rng.IntN(40), Ballast: -1, pending: 1 + rng.IntN(60)})
	r := run{T: t, rng: rng, w: w, m: newModel(), policy: make(rng)}
	for n := range steps {
		r.step()
		if n%4 == 0 || n == steps-1 {
			r.compare()
		}
		if r.Failed() {
			t.Fatalf("seed %d, last: %s", seed, r.last)
		}
	}
	w.check(t)
}

// run is a random run over a database and a model.
type run struct {
	*testing.T
	policy
	rng  *rand.Rand
	w    *world
	m    *model
	last string // what was done
}

// step does one thing and asks for a few.
func (r *run) step() {
	switch n := r.rng.IntN(100); {
	case n < 70:
		r.act(r.policy.act(r.rng))
	case n < 80:
		r.collect()
	case n < 84:
		d := uint64(1 + r.rng.IntN(3))
		r.last = fmt.Sprintf("%d epochs", d)
		r.w.epoch += d
		r.m.epoch += d
	case n < 87:
		r.last = "reopen"
		r.w.reopen(r)
	case n < 89:
		r.last = "compact"
		must(r, r.w.Compact(ctx))
	case n < 91:
		id := r.container()
		r.last = fmt.Sprintf("drop %x", id[:4])
		must(r, r.w.Drop(ctx, id))
		delete(r.m.of, id)
	case n == 91 && r.rng.IntN(3) == 0:
		r.last = "reset"
		must(r, r.w.Reset(ctx))
		clear(r.m.of)
	default:
		r.last = "look"
		must(r, r.w.Check(ctx))
		r.lists()
	}
	addr := blobstor.Address{Container: r.container()}
	got, err := r.w.Counters(ctx, addr.Container)
	if want := r.m.counters(addr.Container); err != nil || got != want {
		r.Errorf("counters %+v, want %+v: %v", got, want, err)
	}
	_, objects := r.world()
	addr.Object = pick(r.rng, objects)
	r.get(addr)
	r.search(r.query(r.rng))
}

func (r *run) container() blobstor.ID {
	cs, _ := r.world()
	return cs[r.rng.IntN(len(cs))]
}

// act does what the policy asks for.
func (r *run) act(a action) {
	r.last = fmt.Sprintf("%+v", a)
	if len(a.entries) == 0 {
		var want []error
		for _, addr := range a.addrs {
			want = append(want, r.m.mark(addr, a.mark))
		}
		r.same(r.w.Mark(ctx, a.mark, a.addrs...), errors.Join(want...))
		return
	}
	if len(a.entries) == 1 && !a.force {
		r.same(r.w.Put(ctx, a.entries[0]...), r.m.put(a.entries[0], false))
		return
	}
	es := make([]Entry, len(a.entries))
	for i := range es {
		es[i].Records = a.entries[i]
	}
	first := r.w.putEntries(ctx, es, a.force)
	for i := range es {
		r.same(es[i].Err, r.m.put(a.entries[i], a.force))
		if first == nil && es[i].Err != nil {
			r.Errorf("entry %d was refused, and the batch was not", i)
		}
	}
}

// same compares errors by what they match.
func (r *run) same(got, want error) {
	r.Helper()
	for _, e := range []error{ErrBuried, ErrGarbage, ErrExpired, ErrContainer, ErrHeld, ErrTarget, ErrRecord} {
		if errors.Is(got, e) != errors.Is(want, e) {
			r.Errorf("got %v, want %v", got, want)
		}
	}
	if (got == nil) != (want == nil) {
		r.Errorf("got %v, want %v", got, want)
	}
}

// collect collects until nothing goes any more; some blobs cannot be removed.
func (r *run) collect() {
	limit, stuck := 1+r.rng.IntN(4), r.rng.IntN(5)
	r.last = fmt.Sprintf("collect by %d, every fifth is stuck at %d", limit, stuck)
	for idle := 0; idle < 40; {
		n, err := r.w.Collect(ctx, limit, func(_ context.Context, items []blobstor.Item) error {
			for i := range items {
				it := &items[i]
				if !r.m.goes(it.Address) {
					r.Errorf("%x is collected", it.Address.Object[:4])
				}
				switch k := int(it.Address.Object[3]+it.Address.Object[31]) % 5; {
				case k == stuck:
					it.Err = errors.New("stuck")
				case k == 1:
					it.Err = blobstor.ErrNotFound
				}
			}
			for i := range items {
				if items[i].Err == nil || errors.Is(items[i].Err, blobstor.ErrNotFound) {
					r.m.forget(items[i].Address)
				}
			}
			return nil
		})
		if n > 0 {
			idle = 0
		} else if idle++; err == nil {
			break // nothing goes
		}
	}
	r.m.each(func(_ *contents, rec *Record) {
		id := rec.Address.Object
		if r.m.goes(rec.Address) && int(id[3]+id[31])%5 != stuck {
			r.Errorf("%x was not collected: %+v", id[:4], r.m.statusOf(rec.Address))
		}
	})
}

// compare asks about everything.
func (r *run) compare() {
	containers, objects := r.world()
	for _, c := range containers {
		got, err := r.w.Counters(ctx, c)
		if want := r.m.counters(c); err != nil || got != want {
			r.Errorf("counters %+v, want %+v: %v", got, want, err)
		}
		for _, o := range objects {
			addr := blobstor.Address{Container: c, Object: o}
			got, err := r.w.Status(ctx, addr)
			if want := r.m.statusOf(addr); err != nil || got != want {
				r.Errorf("%x: status %+v, want %+v: %v", o[:4], got, want, err)
			}
		}
	}
}

func (r *run) get(addr blobstor.Address) {
	got, err := r.w.Get(ctx, addr)
	s := r.m.statusOf(addr)
	r.same(err, s.State.Err())
	if err == nil && !reflect.DeepEqual(got, *r.m.of[addr.Container].recs[addr.Object]) {
		r.Errorf("got %+v", got)
	}
	ok, err := r.w.Exists(ctx, addr)
	if ok != (s.State == Available) || (err != nil) != (s.State > Available) {
		r.Errorf("exists: %v, %v, want %+v", ok, err, s)
	}
}

// search pages through the results of a query.
func (r *run) search(q Query) {
	want := r.m.search(q)
	got := pages(r, r.w.DB, q)
	if !reflect.DeepEqual(got, want) {
		r.Errorf("%+v:\n got %+v\nwant %+v", q, got, want)
	}
}

func pages(tb testing.TB, db *DB, q Query) (all []Match) {
	tb.Helper()
	for n := 0; ; n++ {
		p, err := db.Search(ctx, q)
		must(tb, err)
		if len(p.Found) > q.Limit || n > 1000 {
			tb.Fatalf("%+v: page %d has %d", q, n, len(p.Found))
		}
		all = append(all, p.Found...)
		if !p.More {
			return all
		}
		q.After = p.Next
	}
}

// lists pages through all objects, and those that expired.
func (r *run) lists() {
	keys, limit := []string{"k", "n"}[:r.rng.IntN(3)], 1+r.rng.IntN(9)
	var got []Found
	for after := (blobstor.Address{}); ; after = got[len(got)-1].Address {
		page, err := r.w.List(ctx, after, limit, keys...)
		must(r, err)
		got = append(got, page...)
		if len(page) < limit {
			break
		}
	}
	if want := r.m.list(keys); !reflect.DeepEqual(got, want) {
		r.Errorf("list:\n got %+v\nwant %+v", got, want)
	}
	want := r.m.expired()
	for after := (blobstor.Address{}); ; {
		page, err := r.w.Expired(ctx, after, limit)
		must(r, err)
		for _, f := range page {
			if !want[f.Address] {
				r.Errorf("%x is no candidate, or came twice", f.Address.Object[:4])
			}
			delete(want, f.Address)
			after = f.Address
		}
		if len(page) < limit {
			break
		}
	}
	if len(want) > 0 {
		r.Errorf("expired: %d are missing", len(want))
	}
	ids, err := r.w.Containers(ctx)
	if err != nil || len(ids) != len(r.m.of) || slices.ContainsFunc(ids, func(id blobstor.ID) bool { return r.m.of[id] == nil }) {
		r.Errorf("containers %v, %v, want %d", ids, err, len(r.m.of))
	}
}
