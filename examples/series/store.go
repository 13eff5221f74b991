package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
)

// store is a store of small objects that counts what is done to it.
type store struct {
	blobstor.BlobStor
	tree *blobovnicza.Tree

	puts atomic.Int64
	wait atomic.Int64 // ns that all puts took together
}

func open(dir string, create bool) (*store, error) {
	tree, err := blobovnicza.Open(filepath.Join(dir, "small"), &blobovnicza.Options{Create: create})
	if err != nil {
		return nil, err
	}
	return &store{BlobStor: blobstor.Stream(tree), tree: tree}, nil
}

// interval is how often the store is looked at.
const interval = 10 * time.Millisecond

// load puts objects until ctx ends, and calls tick meanwhile.
func (s *store) load(ctx context.Context, writers int, tick func(context.Context, time.Time) error) error {
	var all sync.WaitGroup
	errs := make([]error, writers+1)
	for w := range writers {
		all.Go(func() { errs[w] = s.write(ctx, uint64(w)) })
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for errs[writers] == nil {
		select {
		case at := <-ticks.C:
			errs[writers] = tick(context.WithoutCancel(ctx), at)
			continue
		case <-ctx.Done():
		}
		break
	}
	all.Wait()
	return errors.Join(errs...)
}

// write puts objects of 1 to 16 KiB until ctx ends.
func (s *store) write(ctx context.Context, writer uint64) error {
	data := make([]byte, 16<<10)
	for n := uint64(0); ctx.Err() == nil; n++ {
		binary.BigEndian.PutUint64(data, writer<<48|n)
		object := data[:(1+n%16)<<10]
		addr := blobstor.Address{Container: objects, Object: sha256.Sum256(object)}
		begin := time.Now()
		_, err := s.Put(ctx, addr, object)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		s.puts.Add(1)
		s.wait.Add(int64(time.Since(begin)))
	}
	return nil
}

var objects = container("objects")

// container is where objects of one kind are.
func container(name string) blobstor.ID { return sha256.Sum256([]byte(name)) }
