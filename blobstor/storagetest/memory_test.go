package storagetest

import (
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestMemory(t *testing.T) {
	t.Run("no limit", func(t *testing.T) { Test(t, MemoryHarness(0)) })
	t.Run("limit 64 KiB", func(t *testing.T) { Test(t, MemoryHarness(64<<10)) })
	t.Run("limit 50", func(t *testing.T) { Test(t, MemoryHarness(50)) })
	t.Run("limit 1", func(t *testing.T) { Test(t, MemoryHarness(1)) })
}

func BenchmarkMemory(b *testing.B) {
	Bench(b, func(testing.TB) blobstor.Storage { return NewMemory(0) })
}
