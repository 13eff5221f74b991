package pilorama

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// TestDiskFills fills a disk to the last byte: what was acknowledged stays, what was not may be applied again, Truncate
// and Drop make room, and all goes on.
func TestDiskFills(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a file system of its own is needed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) })
	w := &world{dir: filepath.Join(root, "trees"), opts: Options{Create: true, Ballast: 4 << 20}}
	w.reopen(t)
	defer w.Close()
	must(t, w.Apply(ctx, doomed, op(1, Root, 1)))
	fat := strings.Repeat("x", 1000)
	batch := func(n uint64) (ops []Operation) {
		for i := range uint64(100) {
			ops = append(ops, op(n*100+i+1, Root, NodeID(n*100+i+1), "fat", fat))
		}
		return ops
	}
	n := uint64(0)
	for ; ; n++ {
		if err := w.ApplyBatch(ctx, tree, batch(n)); err != nil {
			refused(t, err, blobstor.ErrNoSpace)
			break
		}
	}
	if n == 0 {
		t.Fatal("nothing fits")
	}
	log, err := w.OpLog(ctx, tree, 0, 1<<20)
	if err != nil || len(log) != int(n)*100 && len(log) != int(n)*100+100 {
		t.Errorf("%d operations of %d batches, %v", len(log), n, err)
	}
	refused(t, w.ApplyBatch(ctx, tree, batch(n+1)), blobstor.ErrNoSpace)
	w.wantTree(t, log...)
	must(t, w.Truncate(ctx, tree, 1000))
	must(t, w.Drop(ctx, doomed))
	must(t, w.Close())
	w.reopen(t)
	w.check(t)
	must(t, w.Drop(ctx, tree))
	must(t, syscall.Mount("", root, "", syscall.MS_REMOUNT, "size=64m"))
	refused(t, w.ApplyBatch(ctx, tree, batch(n)), ErrPressed) // and finds that there is room again
	must(t, w.ApplyBatch(ctx, tree, batch(n)))
	w.wantTree(t, batch(n)...)
}
