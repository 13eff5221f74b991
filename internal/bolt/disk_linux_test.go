package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"unsafe"

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

// TestDiskFills fills a disk to the last byte: commits fail clean, the ballast lets others pass, and comes back when
// there is room.
func TestDiskFills(t *testing.T) {
	root := mount(t, "size=10m")
	dir := filepath.Join(root, "store")
	db := reopen(t, dir, Options{Ballast: 2 << 20})
	check(t, os.WriteFile(filepath.Join(root, "filler"), make([]byte, 3<<20), 0o600))
	n := 0
	for ; ; n++ {
		if err := db.Update(putting(n*100, n*100+100, 1000)); err != nil {
			checkIs(t, err, blobstor.ErrUncertain, blobstor.ErrNoSpace)
			if blobstor.IsFault(err) {
				t.Errorf("a full disk is a fault: %v", err)
			}
			break
		}
		if db.Pressed() {
			t.Fatal("pressed before the disk was full")
		}
	}
	if !db.Pressed() || n == 0 {
		t.Fatalf("pressed %v after %d commits", db.Pressed(), n)
	}
	check(t, db.Check(ctx))
	keys := len(contents(t, db, apples))
	if keys != n*100 && keys != n*100+100 {
		t.Fatalf("%d keys after %d commits", keys, n)
	}
	for i := range 10 { // The ballast is room for this.
		check(t, db.Update(func(tx *Tx) error { return tx.Bucket(apples).Delete(key(i)) }))
	}
	if !db.Pressed() {
		t.Error("the ballast was retaken on a full disk")
	}
	checkIs(t, db.Compact(ctx), blobstor.ErrNoSpace)
	check(t, db.Close())
	db = reopen(t, dir, Options{Ballast: 2 << 20})
	if got := len(contents(t, db, apples)); got != keys-10 || !db.Pressed() {
		t.Errorf("%d keys, want %d; pressed %v", got, keys-10, db.Pressed())
	}
	check(t, os.Remove(filepath.Join(root, "filler")))
	put(t, db, 0, 1, 1)
	if db.Pressed() {
		t.Error("the ballast was not retaken")
	}
	check(t, db.Check(ctx))
}

func TestReadOnlyFileSystem(t *testing.T) {
	root := mount(t, "size=64m")
	db := reopen(t, filepath.Join(root, "store"), Options{})
	put(t, db, 0, 100, 10)
	check(t, db.Close())
	check(t, syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	dir := db.store.Dir.Path()
	_, err := Open(dir, options(Options{}))
	checkIs(t, err, syscall.EROFS)
	db = reopen(t, dir, Options{ReadOnly: true})
	check(t, db.Check(ctx))
	if n := len(contents(t, db, apples)); n != 100 {
		t.Errorf("%d keys", n)
	}
}

// hookWrites puts hook around bbolt's writes, which it counts from 1. It reaches into bbolt, which has no place for it.
func (db *DB) hookWrites(hook func(n int, b []byte, off int64, write func(b []byte) (int, error)) (int, error)) {
	ops := reflect.ValueOf(db.cur.db).Elem().FieldByName("ops").FieldByName("writeAt")
	writeAt := (*func([]byte, int64) (int, error))(unsafe.Pointer(ops.UnsafeAddr()))
	file, n := db.cur.os, 0
	*writeAt = func(b []byte, off int64) (int, error) {
		n++
		return hook(n, b, off, func(b []byte) (int, error) { return file.WriteAt(b, off) })
	}
}

// breakSync gives bbolt's file another descriptor, which takes neither writes nor syncs.
func (db *DB) breakSync(t *testing.T) {
	t.Helper()
	var p [2]int
	check(t, syscall.Pipe(p[:]))
	check(t, syscall.Dup3(p[1], int(db.cur.os.Fd()), syscall.O_CLOEXEC))
	syscall.Close(p[0])
	syscall.Close(p[1])
}

// TestWriteFails lets each write of a commit fail, half done.
func TestWriteFails(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT} {
		for n := 1; ; n++ {
			db := create(t, Options{})
			put(t, db, 0, 500, 100)
			want := contents(t, db, apples)
			db.hookWrites(func(i int, b []byte, _ int64, write func([]byte) (int, error)) (int, error) {
				if i == n {
					m, _ := write(b[:len(b)/2])
					return m, cause
				}
				return write(b)
			})
			err := db.Update(putting(500, 600, 100))
			if err == nil {
				if n < 5 {
					t.Errorf("only %d writes", n)
				}
				break
			}
			checkIs(t, err, blobstor.ErrUncertain, cause)
			if full := cause != syscall.EIO; full != errors.Is(err, blobstor.ErrNoSpace) || full == blobstor.IsFault(err) {
				t.Errorf("%v", err)
			}
			if cause == syscall.EIO {
				checkIs(t, db.Update(putting(0, 1, 1)), blobstor.ErrFailed)
				check(t, db.Close())
				db = reopen(t, db.store.Dir.Path(), Options{})
			}
			if got := len(contents(t, db, apples)); got != len(want) && got != len(want)+100 {
				t.Errorf("write %d: %d keys", n, got)
			}
			check(t, db.Check(ctx))
			put(t, db, 600, 700, 100)
			check(t, db.Check(ctx))
		}
	}
}

// TestSyncFails lets what follows each write of a commit fail: another write, or a sync. After the meta page it is the
// commit that the map shows and nobody knows the disk to have.
func TestSyncFails(t *testing.T) {
	seen := map[bool]int{}
	for n := 1; ; n++ {
		db := create(t, Options{})
		put(t, db, 0, 500, 100)
		db.hookWrites(func(i int, b []byte, _ int64, write func([]byte) (int, error)) (int, error) {
			m, err := write(b)
			if i == n {
				db.breakSync(t)
			}
			return m, err
		})
		err := db.Update(putting(500, 600, 100))
		if err == nil {
			break
		}
		checkIs(t, err, blobstor.ErrUncertain)
		checkIs(t, db.View(func(*Tx) error { return nil }), blobstor.ErrFailed)
		check(t, db.Close())
		db = reopen(t, db.store.Dir.Path(), Options{})
		got := len(contents(t, db, apples))
		seen[got == 600]++
		if got != 500 && got != 600 {
			t.Errorf("write %d: %d keys", n, got)
		}
		check(t, db.Check(ctx))
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("commits there or not: %v, want both", seen)
	}
}
