package fstree

import "sync"

// gate counts the calls inside and lets the last one out be waited for. The zero value is open.
type gate struct {
	mu     sync.Mutex
	inside int
	closed error         // what enter returns; nil while the gate is open
	empty  chan struct{} // closed once nobody is inside; nil while the gate is open
}

// enter admits a call, which must leave, or returns the reason why not.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.inside++
	}
	return g.closed
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.closed != nil {
		close(g.empty)
	}
}

// shut admits no more calls and returns a channel that is closed once nobody is inside. Of several reasons the
// first one stays.
func (g *gate) shut(why error) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed, g.empty = why, make(chan struct{})
		if g.inside == 0 {
			close(g.empty)
		}
	}
	return g.empty
}

// open admits calls again.
func (g *gate) open() {
	g.mu.Lock()
	g.closed, g.empty = nil, nil
	g.mu.Unlock()
}
