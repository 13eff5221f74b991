package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Chores are the names of all that may go on beside the workers.
var Chores = []string{"collect", "compact", "iterate", "reshape", "check", "compact index", "rebuild"}

// chore does one of them again and again until a call fails.
func (d *driver) chore(ctx context.Context, name string, rng *rand.Rand) {
	do := map[string]func(context.Context, *rand.Rand) error{
		"collect":       d.collect,
		"compact":       func(ctx context.Context, _ *rand.Rand) error { return d.Small.Compact(ctx) },
		"compact index": func(ctx context.Context, _ *rand.Rand) error { return d.Index.Compact(ctx) },
		"reshape":       func(ctx context.Context, r *rand.Rand) error { return d.Large.Reshape(ctx, r.IntN(3)) },
		"iterate":       d.iterate,
		"check":         d.check,
		"rebuild":       d.rebuild,
	}[name]
	for ctx.Err() == nil {
		if err := do(ctx, rng); err != nil && ctx.Err() == nil {
			d.sayFailed(name, err)
			return
		}
		select { // What never rests leaves nothing to the others.
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.IntN(8)) * time.Millisecond):
		}
	}
}

func (d *driver) collect(ctx context.Context, _ *rand.Rand) error {
	gone, err := d.Collect(ctx)
	for _, n := range gone {
		d.acknowledge(wordGone, n)
	}
	return err
}

// iterate lists all blobs: those that are there throughout come once.
func (d *driver) iterate(ctx context.Context, _ *rand.Rand) error {
	before := d.snapshot()
	seen := map[Object]int{}
	for info, err := range d.Blobs.All(ctx, "") {
		if err != nil {
			return err
		}
		n, ok := objectAt(info.Address)
		if !ok {
			d.sayWrong("listing: %v was never put", info.Address)
		}
		seen[n]++
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	after := d.snapshot()
	for n := range before {
		if since, ok := after[n]; ok && since == before[n] && seen[n] != 1 {
			d.sayWrong("listing: object %d came %d times", n, seen[n])
		}
	}
	return nil
}

func (d *driver) check(ctx context.Context, rng *rand.Rand) error {
	switch rng.IntN(3) {
	case 0:
		return d.Index.Check(ctx)
	case 1:
		r, err := d.Small.Check(ctx)
		return errors.Join(err, smallFaults(r))
	}
	r, err := d.Large.Scrub(ctx, nil)
	return errors.Join(err, largeFaults(r))
}

// rebuild makes a metabase from the blobs: it has all that is there throughout.
func (d *driver) rebuild(ctx context.Context, _ *rand.Rand) error {
	before := d.snapshot()
	return d.Rebuild(ctx, func(db *metabase.DB) error {
		after := d.snapshot()
		for n, since := range before {
			if again, ok := after[n]; !ok || again != since || n.Bare() {
				continue
			}
			_, err := db.Get(ctx, n.Address())
			if errors.Is(err, blobstor.ErrNotFound) {
				d.sayWrong("rebuild: object %d is not in it", n)
			} else if err != nil {
				return err
			}
		}
		return db.Check(ctx)
	})
}
