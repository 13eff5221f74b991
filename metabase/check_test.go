package metabase

import (
	"context"
	"errors"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// endsAfter is a context that ends when it was looked at some times.
type endsAfter struct {
	context.Context
	looks int
}

func (c *endsAfter) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestCheckEnds: a Check that ctx ends early, wherever it is, says so, and calls nothing damaged that it did not see.
func TestCheckEnds(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Ballast: -1})
	fillGolden(t, w)
	for looks := 0; ; looks++ {
		err := w.Check(&endsAfter{ctx, looks})
		if err == nil {
			break
		}
		wantIs(t, err, context.Canceled)
		if errors.Is(err, blobstor.ErrCorrupt) {
			t.Fatalf("after %d looks: %v", looks, err)
		}
	}
}
