package fstree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// mount mounts a small file system, or skips the test where that is not allowed.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system of its own is needed: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestFullDisk fills a disk: puts fail clean, the rest goes on, puts work again when there is room.
func TestFullDisk(t *testing.T) {
	for _, rename := range []bool{false, true} {
		t.Run(fmt.Sprintf("rename=%v", rename), func(t *testing.T) {
			dir := filepath.Join(mount(t, "size=4m"), "store")
			tree := reopen(t, dir, Options{rename: rename})
			model := map[int]int{}
			n := 0
			for ; ; n++ {
				size := 1 + n%10*20_000
				_, err := tree.Put(ctx, address(n), content(n, size))
				if err != nil {
					checkIs(t, err, blobstor.ErrNoSpace)
					if blobstor.IsFault(err) {
						t.Fatalf("a full disk is a fault: %v", err)
					}
					break
				}
				model[n] = size
			}
			lacks(t, tree, n)
			for i := range 20 { // To the last byte.
				if _, err := tree.Put(ctx, address(n+1+i), content(n+1+i, 4000)); err == nil {
					model[n+1+i] = 4000
				}
			}
			checkIs(t, streamedSize(tree, 5000, 3<<20), blobstor.ErrNoSpace)
			put(t, tree, 1, model[1]) // It is there, so it needs no room.
			checkAll(t, tree, model)
			check(t, tree.Close())
			tree = reopen(t, dir, Options{rename: rename})
			checkAll(t, tree, model)
			for i := range n / 2 {
				check(t, tree.Delete(ctx, address(i), ""))
				delete(model, i)
			}
			put(t, tree, 5001, 300_000)
			model[5001] = 300_000
			checkAll(t, tree, model)
			if got, want := files(t, tree), len(model); got != want {
				t.Fatalf("%d files for %d blobs", got, want)
			}
		})
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	root := mount(t, "size=4m")
	dir := filepath.Join(root, "store")
	tree := reopen(t, dir, Options{})
	put(t, tree, 1, 1000)
	check(t, tree.Close())
	check(t, syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err := Open(dir, nil)
	checkIs(t, err, blobstor.ErrReadOnly)
	a := reopen(t, dir, Options{ReadOnly: true})
	b := reopen(t, dir, Options{ReadOnly: true})
	for _, tree := range []*Tree{a, b} {
		checkAll(t, tree, map[int]int{1: 1000})
		_, err = tree.Put(ctx, address(2), nil)
		checkIs(t, err, blobstor.ErrReadOnly)
		checkIs(t, tree.Delete(ctx, address(1), ""), blobstor.ErrReadOnly)
		_, err = tree.NewWriter(ctx, 1)
		checkIs(t, err, blobstor.ErrReadOnly)
		checkIs(t, tree.SetReadOnly(ctx, false), blobstor.ErrReadOnly)
		check(t, tree.SetReadOnly(ctx, true))
	}
}

// TestFewFiles runs in a process that may have 64 files open.
func TestFewFiles(t *testing.T) {
	cmd := again(t, "files", filepath.Join(memory(t), "store"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func init() { children["files"] = childFiles }

// childFiles uses more directories than may be open, then opens Readers until no file can be opened any more:
// that is an error of its own, and passes.
func childFiles(dir string) error {
	few := syscall.Rlimit{Cur: 64, Max: 64}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		return err
	}
	tree, err := Open(dir, &Options{Create: true})
	if err != nil {
		return err
	}
	for n := range 500 {
		if _, err := tree.Put(ctx, address(n), content(n, n)); err != nil {
			return err
		}
	}
	var readers []blobstor.Reader
	for n := range 100 {
		r, err := tree.NewReader(ctx, address(n), "")
		if err != nil {
			if !errors.Is(err, syscall.EMFILE) || blobstor.IsFault(err) {
				return fmt.Errorf("reader %d: %w", n, err)
			}
			break
		}
		readers = append(readers, r)
	}
	if len(readers) < 40 || len(readers) == 100 {
		return fmt.Errorf("%d readers", len(readers))
	}
	if _, err := tree.Put(ctx, address(600), nil); !errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("put without files: %v", err)
	}
	for _, r := range readers {
		r.Close()
	}
	for n := range 500 {
		got, err := tree.Get(ctx, address(n), "", nil)
		if err != nil || len(got) != n {
			return fmt.Errorf("blob %d: %d bytes, %v", n, len(got), err)
		}
	}
	if _, err := tree.Put(ctx, address(600), nil); err != nil {
		return err
	}
	return tree.Close()
}

// TestPermissions: nobody but the owner reads what is stored.
func TestPermissions(t *testing.T) {
	tree := create(t, Options{})
	put(t, tree, 1, 10)
	info, err := os.Stat(pathOf(tree, address(1)))
	check(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("files are %v", info.Mode())
	}
	info, err = os.Stat(filepath.Dir(pathOf(tree, address(1))))
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("directories are %v", info.Mode())
	}
}

// TestRoomIsReserved: a writer of a known size has its room from the start, and gives it back if it is closed; for
// what does not fit nothing is written at all.
func TestRoomIsReserved(t *testing.T) {
	const size = 16 << 20
	tree := reopen(t, filepath.Join(mount(t, "size=24m"), "store"), Options{})
	before := tree.Stats().Free
	w, err := tree.NewWriter(ctx, size)
	check(t, err)
	if taken := before - tree.Stats().Free; taken < size {
		t.Fatalf("%d bytes are reserved", taken)
	}
	_, err = tree.NewWriter(ctx, size)
	checkIs(t, err, blobstor.ErrNoSpace)
	_, err = tree.Put(ctx, address(1), make([]byte, size))
	checkIs(t, err, blobstor.ErrNoSpace)
	if taken := before - tree.Stats().Free; taken > size+size/4 {
		t.Fatalf("%d bytes are taken", taken)
	}
	check(t, w.Close())
	if taken := before - tree.Stats().Free; taken != 0 {
		t.Fatalf("%d bytes are not given back", taken)
	}

	stream(t, tree, 2, size, true)
	info, err := os.Stat(pathOf(tree, address(2)))
	check(t, err)
	if disk := info.Sys().(*syscall.Stat_t).Blocks * 512; disk > storedSize(size)+4096 {
		t.Fatalf("a file of %d bytes takes %d", info.Size(), disk)
	}
	has(t, tree, 2, size)
}
