package blobovnicza

import (
	"context"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// gate lets calls in until it is shut, and the shutting wait for those inside. It is striped by address, because
// every call changes its stripe twice and one stripe would travel between the processors.
type gate struct {
	stripes [gateStripes]stripe
	shut    bool // guarded by all stripes
}

const gateStripes = 16

type stripe struct {
	sync.RWMutex
	_ [40]byte // to the end of the cache line
}

// enter begins a call about an address. If it returns no error the call ends with RUnlock of the stripe.
func (g *gate) enter(ctx context.Context, addr *blobstor.Address) (*stripe, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &g.stripes[addr.Object[0]%gateStripes]
	s.RLock()
	if g.shut {
		s.RUnlock()
		return nil, blobstor.ErrClosed
	}
	return s, nil
}

// close shuts the gate and returns when all calls have left. It reports whether it was open.
func (g *gate) close() bool {
	for i := range g.stripes {
		g.stripes[i].Lock()
		defer g.stripes[i].Unlock()
	}
	was := g.shut
	g.shut = true
	return !was
}
