package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// tour is one run through the life of a store, and what there is to tell about it.
type tour struct {
	dir      string
	writers  int
	progress io.Writer

	source  string
	objects []*object
	deleted []*object
	commits commits
	groups  int64 // commits that the puts took
	ops     int64 // puts that were in them
	took    map[string]time.Duration
	routes  []*route
	disk    int64 // bytes of all files in dir, before the deletes
}

// run stores the files below source and returns the first difference it finds.
func (t *tour) run(ctx context.Context, source string) error {
	var err error
	t.source, t.took = source, make(map[string]time.Duration)
	if t.objects, err = find(source); err != nil {
		return err
	}
	if len(t.objects) == 0 || t.writers < 1 {
		return fmt.Errorf("%d files in %s, %d writers: nothing to prove", len(t.objects), source, t.writers)
	}
	s, err := open(t.dir, true, &t.commits)
	if err != nil {
		return err
	}
	if err := errors.Join(t.fill(ctx, s), s.Close()); err != nil {
		return err
	}
	if s, err = open(t.dir, false, new(commits)); err != nil {
		return err
	}
	return errors.Join(t.recheck(ctx, s), s.Close())
}

// fill puts every object, proves it, and deletes a tenth.
func (t *tour) fill(ctx context.Context, s blobstor.BlobStor) error {
	if err := t.each(ctx, s, "put", t.objects, (*object).put); err != nil {
		return err
	}
	t.groups, t.ops = t.commits.groups.Load(), t.commits.ops.Load()
	if err := t.measure(ctx, s); err != nil {
		return err
	}
	if err := t.each(ctx, s, "get", t.objects, (*object).verify); err != nil {
		return err
	}
	if err := t.each(ctx, s, "ranges", t.objects, (*object).verifyRanges); err != nil {
		return err
	}
	for i := 0; i < len(t.objects); i += 10 {
		t.deleted = append(t.deleted, t.objects[i])
	}
	return t.each(ctx, s, "delete", t.deleted, (*object).delete)
}

// recheck proves, in a store that was closed and opened, that what is there is right and what is gone is gone.
func (t *tour) recheck(ctx context.Context, s blobstor.BlobStor) error {
	if err := t.each(ctx, s, "get again", t.objects, (*object).verify); err != nil {
		return err
	}
	return verifyListing(ctx, s, t.objects)
}

// each calls do for all objects from as many goroutines as there are writers, and stops at the first error.
func (t *tour) each(ctx context.Context, s blobstor.BlobStor, what string, objects []*object,
	do func(*object, context.Context, blobstor.BlobStor) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	stop := t.report(what, &done, len(objects))
	start := time.Now()
	var wg sync.WaitGroup
	for range t.writers {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(objects)) || ctx.Err() != nil {
					return
				}
				if err := do(objects[i], ctx, s); err != nil {
					cancel(fmt.Errorf("%s %s: %w", what, objects[i].name, err))
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	t.took[what] = time.Since(start)
	stop()
	return context.Cause(ctx)
}

// report prints how far a step has come, once a second and when it stops.
func (t *tour) report(what string, done *atomic.Int64, of int) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(t.progress, "%s: %d of %d\n", what, done.Load(), of)
			case <-end:
				fmt.Fprintf(t.progress, "%s: %d of %d, done\n", what, done.Load(), of)
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}
