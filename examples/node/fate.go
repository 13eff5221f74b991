package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// protect is the chapter of the lock.
func (s *story) protect(ctx context.Context) error {
	if _, err := s.node.Lock(ctx, s.cat, 20); err != nil {
		return err
	}
	if _, err := s.node.Delete(ctx, s.cat, 30); !errors.Is(err, metabase.ErrHeld) {
		return fmt.Errorf("delete of a locked object: %v", err)
	}
	fmt.Println("cat.txt is locked and cannot be deleted")
	return nil
}

// age lets epochs pass.
func (s *story) age(ctx context.Context) error {
	s.node.SetEpoch(11)
	if _, _, err := s.node.Head(ctx, s.dog); !errors.Is(err, metabase.ErrExpired) {
		return fmt.Errorf("head of an expired object: %v", err)
	}
	s.node.SetEpoch(21) // the lock is over
	if _, err := s.node.Delete(ctx, s.cat, 30); err != nil {
		return err
	}
	removed, err := s.node.GC(ctx)
	if err != nil {
		return err
	}
	fmt.Println("dog.mp4 expired, cat.txt was deleted; with the lock on both disks there went blobs:", removed)
	return nil
}

// fail damages a disk and reads what is on it until there are too many faults.
func (s *story) fail(ctx context.Context) error {
	fox, err := s.node.PutStream(ctx, named("fox.mp4"), strings.NewReader(strings.Repeat("ring ", 100_000)))
	if err != nil {
		return err
	}
	disk, _, err := s.node.find(ctx, fox.blob())
	if err != nil {
		return err
	}
	if err := damage(filepath.Join(disk.dir, "large")); err != nil {
		return err
	}
	for !disk.sick() {
		if _, err := s.node.Range(ctx, fox, 0, 500_000); !errors.Is(err, blobstor.ErrCorrupt) {
			return fmt.Errorf("read of a damaged object: %v", err)
		}
	}
	<-disk.settled
	_, err = disk.blobs.Put(ctx, s.cat.blob(), nil)
	fmt.Printf("%d faults: disk is read-only: %t\n", disk.faults.Load(), errors.Is(err, blobstor.ErrReadOnly))
	_, err = s.node.Put(ctx, named("owl.txt"), nil) // on the other one
	return err
}

// damage changes a byte in the middle of every blob of an fstree, as a bad disk might.
func damage(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || len(d.Name()) < 100 { // no address
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		data[len(data)/2]++
		return os.WriteFile(name, data, 0o600)
	})
}
