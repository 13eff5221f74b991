package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/granary-store/granary/metabase/pilorama"
)

// replica is one node: a database, and links to all others.
type replica struct {
	db    *pilorama.DB
	clock pilorama.Clock
	links []*link
}

// add makes a node and tells the others.
func (r *replica) add(ctx context.Context, tree pilorama.Tree, path []string, meta []pilorama.Attr) error {
	ops, err := r.db.AddByPath(ctx, tree, r.clock, path, meta)
	if err != nil {
		return err
	}
	for _, l := range r.links {
		l.send(tree, ops)
	}
	return nil
}

// cluster is all replicas.
type cluster struct {
	settings
	replicas []*replica
	running  sync.WaitGroup
}

func newCluster(s settings) (*cluster, error) {
	c := &cluster{settings: s}
	for i := range s.replicas {
		db, err := pilorama.Open(filepath.Join(s.dir, fmt.Sprint("replica", i)), &pilorama.Options{Create: true, NoSync: !s.sync})
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.replicas = append(c.replicas, &replica{db: db, clock: pilorama.Clock{Position: uint64(i), Size: uint64(s.replicas)}})
	}
	for i, from := range c.replicas {
		for j, to := range c.replicas {
			if i != j {
				from.links = append(from.links, newLink(from, to, s.delay, s.loss, uint64(i*s.replicas+j)))
			}
		}
	}
	return c, nil
}

// start lets the links run until ctx ends.
func (c *cluster) start(ctx context.Context) {
	for l := range c.links {
		c.running.Go(func() { l.run(ctx) })
	}
}

// links yields all links.
func (c *cluster) links(yield func(*link) bool) {
	for _, r := range c.replicas {
		for _, l := range r.links {
			if !yield(l) {
				return
			}
		}
	}
}

// cut cuts the first replica off, or connects it again.
func (c *cluster) cut(on bool) {
	for l := range c.links {
		if l.from == c.replicas[0] || l.to == c.replicas[0] {
			l.cut.Store(on)
		}
	}
}

func (c *cluster) close() error {
	c.running.Wait()
	var errs []error
	for _, r := range c.replicas {
		errs = append(errs, r.db.Close())
	}
	return errors.Join(errs...)
}

// settle waits until every replica has every operation.
func (c *cluster) settle(ctx context.Context) error {
	for {
		idle := true
		for l := range c.links {
			if err := l.failure(); err != nil {
				return err
			}
			idle = idle && l.idle()
		}
		if idle {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wantOne compares all trees of all replicas.
func (c *cluster) wantOne(ctx context.Context) error {
	for _, tree := range []pilorama.Tree{versions, system} {
		var first string
		for i, r := range c.replicas {
			sum, n, err := r.sum(ctx, tree)
			if err != nil {
				return fmt.Errorf("replica %d: %w", i, err)
			}
			if got := fmt.Sprintf("%d nodes, sum %x", n, sum[:8]); i == 0 {
				first = got
			} else if got != first {
				return fmt.Errorf("tree %s: replica 0 has %s, replica %d has %s", tree.Name, first, i, got)
			}
		}
		fmt.Fprintf(c.progress, "one tree %s in all replicas: %s\n", tree.Name, first)
	}
	return nil
}

// sum hashes a whole tree.
func (r *replica) sum(ctx context.Context, tree pilorama.Tree) (sum [32]byte, n int, err error) {
	h := sha256.New()
	all := json.NewEncoder(h)
	for _, top := range []pilorama.NodeID{pilorama.Root, pilorama.Trash} {
		for e, err := range r.db.Subtree(ctx, tree, top, 0, "") {
			if err != nil {
				return sum, n, err
			}
			if err := all.Encode(e.Node); err != nil {
				return sum, n, err
			}
			n++
		}
	}
	return [32]byte(h.Sum(nil)), n, nil
}
