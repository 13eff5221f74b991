package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// This is the whole proof of a storage; hooks for power loss, damage and the like add to it.
func ExampleTest() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		storagetest.Test(t, storagetest.Harness{
			New: func(testing.TB) blobstor.Storage { return storagetest.NewMemory(0) },
		})
	}
}

// A program's reaction to a disk that fails can be tested without one.
func ExampleFault() {
	ctx := context.Background()
	disk := storagetest.NewFault(storagetest.NewMemory(0))
	disk.Fail(storagetest.Put, 2, syscall.EIO)
	for i := range 3 {
		_, err := disk.Put(ctx, blobstor.Address{Object: blobstor.ID{byte(i)}}, nil)
		fmt.Println(errors.Is(err, syscall.EIO), blobstor.IsFault(err))
	}
	// Output:
	// false false
	// true true
	// false false
}
