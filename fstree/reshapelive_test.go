package fstree

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestReshapeBesideCalls reshapes a tree in full use, forth and back. Blobs that are there throughout are always
// found, by All once; what others do with few blobs holds as in TestMixed.
func TestReshapeBesideCalls(t *testing.T) {
	eachPair(t, func(t *testing.T, old, depth int) {
		tree := create(t, Options{Depth: option(old)})
		lasting := map[blobstor.Address]int{}
		for n := 100; n < 160; n++ {
			lasting[put(t, tree, n, n)] = n
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		stop := make(chan struct{})
		var all sync.WaitGroup
		work := func(g uint64, step func(rng *rand.Rand) error) {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, g))
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := step(rng); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for g := range uint64(4) {
			work(g, func(rng *rand.Rand) error { return mixedStep(tree, rng.IntN(8), rng.IntN(7)) })
		}
		work(4, func(rng *rand.Rand) error { return lastingStep(tree, 100+rng.IntN(60)) })
		work(5, func(*rand.Rand) error { return lastingAll(tree, lasting) })
		work(6, func(*rand.Rand) error {
			if r, err := tree.Scrub(ctx, nil); err != nil || !r.OK() || r.Blobs < int64(len(lasting)) {
				return fmt.Errorf("scrub: %+v, %w", r, err)
			}
			return nil
		})
		rounds := 4
		if testing.Short() {
			rounds = 2
		}
		for range rounds {
			check(t, tree.Reshape(ctx, depth))
			check(t, tree.Reshape(ctx, old))
		}
		close(stop)
		all.Wait()
		model := map[int]int{}
		for info, err := range tree.All(ctx, "") {
			check(t, err)
			if n, ok := lasting[info.Address]; ok {
				model[n] = n
			} else {
				check(t, tree.Delete(ctx, info.Address, ""))
			}
		}
		checkAll(t, tree, model)
		checkPlaces(t, tree, model, old)
	})
}

// lastingStep reads a blob that is there in all ways, and puts it again.
func lastingStep(tree *Tree, n int) error {
	for name, read := range readings {
		got, err := read(tree, address(n))
		if err != nil || string(got) != string(content(n, n)) {
			return fmt.Errorf("blob %d, %s: %d bytes, %w", n, name, len(got), err)
		}
	}
	_, err := tree.Put(ctx, address(n), content(n, n))
	return err
}

// lastingAll checks that All yields each lasting blob once, and all in order.
func lastingAll(tree *Tree, lasting map[blobstor.Address]int) error {
	seen, last := map[blobstor.Address]bool{}, blobstor.Location("")
	for info, err := range tree.All(ctx, "") {
		if err != nil {
			return err
		}
		if seen[info.Address] || info.Location < last {
			return fmt.Errorf("All yields %v again, or too late", info)
		}
		seen[info.Address], last = true, info.Location
	}
	for addr, n := range lasting {
		if !seen[addr] {
			return fmt.Errorf("All does not yield blob %d", n)
		}
	}
	return nil
}
