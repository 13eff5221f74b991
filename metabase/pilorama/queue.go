package pilorama

import (
	"context"
	"sync"
)

// queues are the places in which writes to trees wait for their commits. A tree has a fixed number of them, so that the
// load on one can neither fill the memory nor keep others out; who finds none waits for one.
type queues struct {
	limit int

	mu sync.Mutex
	of map[Tree]*queue // those that somebody is in, or waits for
}

type queue struct {
	places chan struct{}
	users  int
}

// join waits for a place in the queue of a tree; leave gives it back. An error is that of ctx.
func (q *queues) join(ctx context.Context, tree Tree) (leave func(), err error) {
	of := q.use(tree)
	select {
	case of.places <- struct{}{}:
		return func() {
			<-of.places
			q.unuse(tree, of)
		}, nil
	case <-ctx.Done():
		q.unuse(tree, of)
		return nil, ctx.Err()
	}
}

func (q *queues) use(tree Tree) *queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.of[tree]
	if of == nil {
		if q.of == nil {
			q.of = make(map[Tree]*queue)
		}
		of = &queue{places: make(chan struct{}, q.limit)}
		q.of[tree] = of
	}
	of.users++
	return of
}

func (q *queues) unuse(tree Tree, of *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(q.of, tree)
	}
}
