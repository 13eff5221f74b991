// Node is the storage of a node on two disks, to be read: own addresses, streams, headers and ranges, searches over all
// shards, tombstones and locks, epochs and garbage, a disk with faults, a lost index, parts of erasure-coded objects.
// There is one file for each; node.go and shard.go put them together, and story.go uses them.
//
//	go run .
//
// What it prints, and what each file does, is checked by the examples in the tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run tells the story in a temporary directory.
func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "granary-node-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return tell(ctx, filepath.Join(dir, "disk0"), filepath.Join(dir, "disk1"))
}

// tell has two parts. Between them the first disk loses its index.
func tell(ctx context.Context, disks ...string) error {
	n, err := Open(true, disks...)
	if err != nil {
		return err
	}
	s := story{node: n}
	if err := errors.Join(s.chapters(ctx, s.store, s.read, s.protect, s.age), n.Close()); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(disks[0], "meta")); err != nil {
		return err
	}
	if err := Rebuild(ctx, disks[0], nil); err != nil {
		return err
	}
	fmt.Println("the index of a disk was lost and made again from the blobs")
	if s.node, err = Open(false, disks...); err != nil {
		return err
	}
	s.node.SetEpoch(21)
	return errors.Join(s.chapters(ctx, s.search, s.fail), s.node.Close())
}
