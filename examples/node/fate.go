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
	_, err := s.node.Delete(ctx, s.cat, 30)
	if err := expect(err, metabase.ErrHeld); err != nil {
		return err
	}
	fmt.Println("cat.txt is locked and cannot be deleted")
	return nil
}

// age lets epochs pass.
func (s *story) age(ctx context.Context) error {
	s.node.SetEpoch(11)
	_, _, err := s.node.Head(ctx, s.dog)
	if err := expect(err, metabase.ErrExpired); err != nil {
		return err
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
	for range faultLimit {
		_, err := s.node.Range(ctx, fox, 0, 500_000)
		if err := expect(err, blobstor.ErrCorrupt); err != nil {
			return err
		}
	}
	<-disk.settled
	_, err = disk.blobs.Put(ctx, s.cat.blob(), nil)
	if err := expect(err, blobstor.ErrReadOnly); err != nil {
		return err
	}
	fmt.Println("a disk is read-only after faults:", disk.faults.Load())
	_, err = s.node.Put(ctx, named("owl.txt"), nil) // on the other one
	return err
}

// expect returns an error unless one that must come did.
func expect(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return errors.Join(errors.New("not as expected: "+want.Error()), err)
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
