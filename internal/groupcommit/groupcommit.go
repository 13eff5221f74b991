// Package groupcommit lets many callers share one commit.
//
// The first caller that finds no commit running becomes the leader: it commits what has queued, wakes its
// group and hands over to the oldest caller that queued meanwhile. There is no timer and no goroutine of its
// own: an idle caller waits for exactly one commit, and the group grows with the time a commit takes.
package groupcommit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// ErrClosed is returned by Do after Close, and after a commit that panicked.
var ErrClosed = errors.New("groupcommit: closed")

// errDied is what the rest of a group gets whose commit panicked: nobody knows how far it came.
var errDied = errors.New("groupcommit: commit did not return")

// Limits bound one group; a single operation above MaxBytes forms a group of its own.
type Limits struct {
	MaxOps   int
	MaxBytes int64
}

// Op is one caller's operation as the commit function sees it.
type Op[T any] struct {
	Value T
	Err   error // set by the commit function to fail or refuse this operation alone

	size  int64
	taken bool      // left the queue: a leader owns it; guarded by Committer.mu
	wake  chan role // capacity 1, used once per Do
}

// role is what a waiting caller wakes up to.
type role bool

const (
	follower role = false // its operation is done
	leader   role = true  // its operation is still queued, and it must commit the next group
)

// Committer groups operations of type T. It is safe for concurrent use.
type Committer[T any] struct {
	commit func(group []*Op[T]) error
	tidy   func()
	yield  func() // runtime.Gosched, but in tests
	limits Limits
	pool   sync.Pool

	mu     sync.Mutex // guards all below and every Op's taken; never held across commit
	queue  []*Op[T]   // in order of arrival
	busy   bool       // a leader is at work or appointed
	closed bool
	idle   chan struct{} // closed when busy falls to false after Close

	group []*Op[T] // the leader's own
	hurry int      // how many groups are not gathered
	crowd int      // callers in sight when the last leader ended: its group, and who waited
}

// New returns a Committer that calls commit with each group, one at a time and in order of arrival. Commit sets
// the Err of operations that fail alone; the error it returns reaches all others of the group. The first operation
// is the one of the leader, in whose goroutine commit runs. Tidy, if not nil, runs when the group was woken and
// before the lead is handed over: nobody waits for it but the next group.
func New[T any](limits Limits, commit func(group []*Op[T]) error, tidy func()) *Committer[T] {
	c := &Committer[T]{commit: commit, tidy: tidy, yield: runtime.Gosched, limits: limits, idle: make(chan struct{})}
	c.pool.New = func() any { return &Op[T]{wake: make(chan role, 1)} }
	return c
}

// Do queues an operation of size bytes and returns its outcome. While it is queued, the end of ctx withdraws it:
// the context's error means that it did not happen. Once taken, Do waits for the outcome whatever ctx does. A
// panic in commit goes on in the leader; the other callers of the group get an error, later ones ErrClosed.
func (c *Committer[T]) Do(ctx context.Context, value T, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	op := c.pool.Get().(*Op[T])
	op.Value, op.Err, op.size, op.taken = value, nil, size, false
	op.Err = c.join(ctx, op)
	return c.release(op)
}

// join sees op through and returns its outcome.
func (c *Committer[T]) join(ctx context.Context, op *Op[T]) error {
	lead, err := c.enqueue(op)
	if err != nil {
		return err
	}
	if !lead {
		r, err := c.wait(ctx, op)
		if err != nil {
			return err
		}
		lead = r == leader
	}
	if lead {
		c.lead()
	}
	return op.Err
}

func (c *Committer[T]) release(op *Op[T]) error {
	err := op.Err
	var zero T
	op.Value = zero
	c.pool.Put(op)
	return err
}

// enqueue appends op and reports whether its caller must lead.
func (c *Committer[T]) enqueue(op *Op[T]) (lead bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, ErrClosed
	}
	c.queue = append(c.queue, op)
	lead = !c.busy
	c.busy = true
	return lead, nil
}

// wait returns the caller's role, or the context's error if the operation could be withdrawn.
func (c *Committer[T]) wait(ctx context.Context, op *Op[T]) (role, error) {
	select {
	case r := <-op.wake:
		return r, nil
	case <-ctx.Done():
		if c.withdraw(op) {
			return follower, ctx.Err()
		}
		return <-op.wake, nil
	}
}

// withdraw takes op out of the queue unless a leader has taken it or it was appointed leader itself.
func (c *Committer[T]) withdraw(op *Op[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.taken {
		return false
	}
	for i, q := range c.queue {
		if q == op {
			c.queue = slices.Delete(c.queue, i, i+1)
			return true
		}
	}
	return false
}

// lead commits one group, which holds the leader's own operation, and hands over.
func (c *Committer[T]) lead() {
	c.gather()
	group := c.take()
	own := group[0]
	err := c.run(group)
	for _, op := range group {
		if op.Err == nil {
			op.Err = err
		}
		if op != own {
			op.wake <- follower
		}
	}
	c.tidyUp()
	c.handOver(len(group))
}

// tidyUp runs tidy. If that does not return the committer closes, as after a commit that does not.
func (c *Committer[T]) tidyUp() {
	if c.tidy == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			c.abandon(c.group[:1]) // the others were woken; the leader is unwinding
		}
	}()
	c.tidy()
	returned = true
}

// gather lets the callers run that the last leader woke, for they are about to queue again: it costs this group
// next to nothing, and keeps it from being a small one that all the others wait for. It gives up when yielding the
// processor brings nobody, or takes so long that others than the callers must have had it.
func (c *Committer[T]) gather() {
	if c.hurry > 0 {
		c.hurry--
		return
	}
	idle := 0
	for n := c.queued(); n < min(c.crowd, c.limits.MaxOps) && idle < patience; {
		begin := time.Now()
		c.yield()
		if time.Since(begin) > slowYield {
			c.hurry = hurried
			return
		}
		before := n
		if n = c.queued(); n > before {
			idle = 0
		} else {
			idle++
		}
	}
}

const (
	// patience is how often a leader yields in vain. Processors that share the callers take turns, so once is too
	// early: of 100 callers it gathered 64, with 10 yields 77 and with 30 yields 81, for a few microseconds at most.
	patience = 30

	// slowYield is how long a yield may take before the next few groups, hurried of them, do without: with
	// goroutines about that compute, each yield lasts until one of them is preempted, which takes milliseconds.
	slowYield = 4 * time.Millisecond
	hurried   = 8
)

func (c *Committer[T]) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// take moves the head of the queue, as much as the limits allow, into the group.
func (c *Committer[T]) take() []*Op[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var bytes int64
	n := 0
	for n < len(c.queue) && n < c.limits.MaxOps {
		bytes += c.queue[n].size
		if n > 0 && bytes > c.limits.MaxBytes {
			break
		}
		c.queue[n].taken = true
		n++
	}
	clear(c.group) // or the pool would keep alive what the last group held
	c.group = append(c.group[:0], c.queue[:n]...)
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	return c.group
}

// run calls commit. If it does not return (a panic, or Goexit in a test) the group fails, the committer closes,
// and the unwinding goes on in the leader.
func (c *Committer[T]) run(group []*Op[T]) (err error) {
	returned := false
	defer func() {
		if !returned {
			c.abandon(group)
		}
	}()
	err = c.commit(group)
	returned = true
	return err
}

// abandon fails the group and all that is queued, and closes the committer.
func (c *Committer[T]) abandon(group []*Op[T]) {
	c.mu.Lock()
	rest := c.queue
	c.queue, c.closed, c.busy = nil, true, false
	close(c.idle)
	c.mu.Unlock()
	for _, op := range group[1:] {
		op.Err = errDied
		op.wake <- follower
	}
	for _, op := range rest {
		op.Err = ErrClosed
		op.wake <- follower
	}
}

// handOver appoints the oldest waiting caller as the next leader, or goes idle.
func (c *Committer[T]) handOver(served int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crowd = served + len(c.queue)
	if len(c.queue) > 0 {
		next := c.queue[0]
		next.taken = true
		next.wake <- leader
		return
	}
	c.busy = false
	if c.closed {
		close(c.idle)
	}
}

// Close refuses new operations and returns when those queued before were committed. It may be called again.
func (c *Committer[T]) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		if !c.busy {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	<-c.idle
}
