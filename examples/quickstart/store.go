package main

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
)

// open opens the store in dir, and makes it first if create is set. Small objects share append-only files, large
// ones have a file each; the router decides by size. Closing the router closes both.
func open(dir string, create bool, seen *commits) (*blobstor.Router, error) {
	small, err := blobovnicza.Open(filepath.Join(dir, "small"), &blobovnicza.Options{
		Create: create,
		Hooks:  blobstor.Hooks{Commit: seen.add},
	})
	if err != nil {
		return nil, err
	}
	large, err := fstree.Open(filepath.Join(dir, "large"), &fstree.Options{Create: create})
	if err != nil {
		return nil, errors.Join(err, small.Close())
	}
	return blobstor.New(
		blobstor.Route{Name: "small", MaxSize: blobstor.DefaultSmall, Storage: small},
		blobstor.Route{Name: "large", Storage: large},
	)
}

// commits counts group commits: how many writers shared one sync.
type commits struct{ groups, ops atomic.Int64 }

func (c *commits) add(ops int, _ int64, _, _ time.Duration) {
	c.groups.Add(1)
	c.ops.Add(int64(ops))
}
