package fstree

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// contestants put a blob each in their own way. open makes a fresh store in an empty directory.
var contestants = []struct {
	name string
	open func(b *testing.B, dir string, sync bool) (put func(addr blobstor.Address, data []byte) error)
}{
	{"tmpfile", treePuts(false)},
	{"rename", treePuts(true)},
}

// BenchmarkPut measures puts; one op is one. Files are removed at the end of the process only, for a file system
// is slow for minutes after many removals. Keep the bytes of a cell below 256 MiB with -benchtime.
func BenchmarkPut(b *testing.B) {
	for _, sync := range []bool{true, false} {
		for _, size := range []int{1 << 10, 1 << 20} {
			for _, threads := range []int{1, 20, 100} {
				for _, c := range contestants { // The innermost loop, so that contestants meet the same disk.
					name := fmt.Sprintf("writer=%s/sync=%s/size=%s/threads=%d", c.name, onOff(sync), sizeName(size), threads)
					b.Run(name, func(b *testing.B) {
						benchPut(b, c.open(b, benchDir(b), sync), size, threads)
					})
				}
			}
		}
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func sizeName(size int) string {
	switch {
	case size < 1<<20:
		return fmt.Sprintf("%dKiB", size>>10)
	case size < 1<<30:
		return fmt.Sprintf("%dMiB", size>>20)
	}
	return fmt.Sprintf("%dGiB", size>>30)
}

func benchPut(b *testing.B, put func(blobstor.Address, []byte) error, size, threads int) {
	data := content(1, size)
	addrs := make([]blobstor.Address, b.N)
	rng := rand.NewChaCha8([32]byte{3})
	for i := range addrs {
		rng.Read(addrs[i].Container[:])
		rng.Read(addrs[i].Object[:])
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	inParallel(b, threads, func(i int) error { return put(addrs[i], data) })
}

// inParallel shares b.N calls among the threads.
func inParallel(b *testing.B, threads int, call func(i int) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
}

func treePuts(rename bool) func(b *testing.B, dir string, sync bool) func(blobstor.Address, []byte) error {
	return func(b *testing.B, dir string, sync bool) func(blobstor.Address, []byte) error {
		tree := reopen(b, dir, Options{NoSync: !sync, rename: rename})
		openAll(b, tree)
		return func(addr blobstor.Address, data []byte) error {
			_, err := tree.Put(ctx, addr, data)
			return err
		}
	}
}

// openAll opens and syncs the first level, as it is in a store that has been in use for a while.
func openAll(b *testing.B, tree *Tree) {
	for n := range 256 {
		ref, err := tree.dirs.get(rootKey.child(byte(n)), true)
		check(b, err)
		check(b, ref.Sync())
		tree.dirs.put(ref)
	}
}

var (
	benchRoot  string
	benchCount int
)

// benchDir returns the path of a fresh directory that does not exist yet.
func benchDir(b *testing.B) string {
	b.Helper()
	if benchRoot == "" {
		root, err := os.MkdirTemp("", "fstree-bench")
		check(b, err)
		benchRoot = root
		spread(root)
	}
	benchCount++
	return filepath.Join(benchRoot, fmt.Sprint(benchCount))
}

// BenchmarkRange reads a small range of a large blob, and the blob whole, from the page cache.
func BenchmarkRange(b *testing.B) {
	const size = 10 << 20
	tree := create(b, Options{})
	put(b, tree, 1, size)
	for _, length := range []int{4 << 10, size} {
		name := "size=10MiB/len=" + sizeName(length)
		b.Run(name, func(b *testing.B) {
			p := make([]byte, length)
			rng := rand.New(rand.NewPCG(1, 2))
			b.SetBytes(int64(length))
			b.ReportAllocs()
			for b.Loop() {
				off := rng.Int64N(int64(size - length + 1))
				if _, _, err := tree.ReadRange(ctx, address(1), "", p, off); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGet reads small blobs whole, from the page cache. engine=granary and engine=pread fill a buffer that is
// there; the other two allocate what they return.
func BenchmarkGet(b *testing.B) {
	tree := reopen(b, benchDir(b), Options{})
	for n, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		path := pathOf(tree, put(b, tree, n, size))
		buf := make([]byte, size)
		for _, e := range []struct {
			name string
			get  func() error
		}{
			{"granary", func() error { _, err := tree.Get(ctx, address(n), "", buf[:0]); return err }},
			{"pread", func() error { return readPlain(path, buf) }},
			{"granary-alloc", func() error { _, err := tree.Get(ctx, address(n), "", nil); return err }},
			{"readfile", func() error { _, err := os.ReadFile(path); return err }},
		} {
			b.Run("size="+sizeName(size)+"/engine="+e.name, func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					check(b, e.get())
				}
			})
		}
	}
}

func readPlain(path string, p []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadFull(f, p)
	return err
}

func BenchmarkWriteTo(b *testing.B) {
	const size = 64 << 20
	tree := create(b, Options{})
	put(b, tree, 1, size)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		r, err := tree.NewReader(ctx, address(1), "")
		check(b, err)
		if _, err := r.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
		check(b, r.Close())
	}
}
