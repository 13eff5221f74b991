package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/metabase/pilorama"
)

// link carries the operations of one replica to another. What is lost on the way is not kept: it is in the log, and the
// link notes from which time on it has to be read again. So a link takes no more memory when the other end is away.
type link struct {
	from, to *replica
	delay    time.Duration
	loss     float64
	rng      *rand.Rand
	cut      atomic.Bool
	queue    chan message
	inside   atomic.Int64 // messages in the queue or being delivered

	mu     sync.Mutex
	behind map[pilorama.Tree]uint64 // the first time that has to be sent again
	err    error
}

type message struct {
	tree pilorama.Tree
	ops  []pilorama.Operation
	due  time.Time
}

const (
	queued  = 1000 // messages
	batched = 1000 // operations
	retry   = 50 * time.Millisecond
)

func newLink(from, to *replica, delay time.Duration, loss float64, seed uint64) *link {
	return &link{from: from, to: to, delay: delay, loss: loss, rng: rand.New(rand.NewPCG(seed, 0)),
		queue: make(chan message, queued), behind: make(map[pilorama.Tree]uint64)}
}

// send takes operations that were committed. It does not wait: if the queue is full they are left to the log.
func (l *link) send(tree pilorama.Tree, ops []pilorama.Operation) {
	l.inside.Add(1)
	select {
	case l.queue <- message{tree, ops, time.Now().Add(l.delay)}:
	default:
		l.lost(tree, ops)
		l.inside.Add(-1)
	}
}

func (l *link) lost(tree pilorama.Tree, ops []pilorama.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range ops {
		if at, ok := l.behind[tree]; !ok || ops[i].Time < at {
			l.behind[tree] = ops[i].Time
		}
	}
}

// idle reports whether the other end has everything.
func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.behind) == 0 && l.inside.Load() == 0
}

func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *link) run(ctx context.Context) {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-l.queue:
			l.deliver(ctx, m)
		case <-tick.C:
			l.catchUp(ctx)
		}
	}
}

// deliver waits until a message is due and applies it, with those behind it that are due too, and the next.
func (l *link) deliver(ctx context.Context, m message) {
	time.Sleep(time.Until(m.due))
	batches := map[pilorama.Tree][]pilorama.Operation{m.tree: m.ops}
	messages, ops := 1, len(m.ops)
	for more := true; more && ops < batched && len(l.queue) > 0; {
		next := <-l.queue
		batches[next.tree] = append(batches[next.tree], next.ops...)
		messages, ops = messages+1, ops+len(next.ops)
		more = time.Now().After(next.due)
	}
	for tree, ops := range batches {
		l.apply(ctx, tree, ops)
	}
	l.inside.Add(int64(-messages))
}

// apply hands operations to the other end, unless they are lost.
func (l *link) apply(ctx context.Context, tree pilorama.Tree, ops []pilorama.Operation) {
	if l.cut.Load() || l.rng.Float64() < l.loss {
		l.lost(tree, ops)
		return
	}
	err := l.to.db.ApplyBatch(ctx, tree, ops)
	if err == nil && l.rng.Float64() < l.loss { // it arrived, but the answer did not
		err = l.to.db.ApplyBatch(ctx, tree, ops)
	}
	if err != nil {
		l.lost(tree, ops)
		l.fail(ctx, err)
	}
}

func (l *link) fail(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() == nil && l.err == nil {
		l.err = err
	}
}

// catchUp sends from the log what was lost. Only this replica's own operations, which it logged in the order of their
// times: those of others have links of their own.
func (l *link) catchUp(ctx context.Context) {
	if l.cut.Load() {
		return
	}
	l.mu.Lock()
	behind := l.behind
	l.behind = make(map[pilorama.Tree]uint64)
	if len(behind) > 0 {
		l.inside.Add(1)
		defer l.inside.Add(-1)
	}
	l.mu.Unlock()
	for tree, at := range behind {
		l.sendLog(ctx, tree, at)
	}
}

// sendLog sends this replica's own operations from a time on.
func (l *link) sendLog(ctx context.Context, tree pilorama.Tree, at uint64) {
	others := func(op pilorama.Operation) bool { return op.Time%l.from.clock.Size != l.from.clock.Position }
	for {
		log, err := l.from.db.OpLog(ctx, tree, at, batched)
		if err != nil {
			l.fail(ctx, err)
		}
		if len(log) == 0 {
			return
		}
		at = log[len(log)-1].Time + 1
		if own := slices.DeleteFunc(log, others); len(own) > 0 {
			l.apply(ctx, tree, own)
		}
	}
}
