package durable

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func want(kind string) Descriptor { return Descriptor{Kind: kind, Format: 1} }

func openStore(t *testing.T, path string, o StoreOptions) *Store {
	t.Helper()
	s, err := OpenStore(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// refused opens a store and checks that the error matches is.
func refused(t *testing.T, path string, o StoreOptions, is error) {
	t.Helper()
	s, err := OpenStore(path, o)
	if err == nil {
		s.Close()
		t.Fatal("the store opened")
	}
	if !errors.Is(err, is) {
		t.Fatalf("got %v, want %v", err, is)
	}
}

func TestStoreCreateAndReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	refused(t, path, StoreOptions{Descriptor: want("x")}, blobstor.ErrLayout)
	o := StoreOptions{Descriptor: want("x"), Create: true, Defaults: [4]uint32{7, 8}}
	o.Owner = []byte("me")
	o.Shape[1] = 9
	s := openStore(t, path, o)
	if !s.Created || s.Shape != [4]uint32{7, 9} || string(s.Owner) != "me" || s.ID == [16]byte{} {
		t.Fatalf("descriptor %+v", s.Descriptor)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, path, StoreOptions{Descriptor: want("x")})
	if again.Created || again.ID != s.ID || again.Shape != s.Shape || !bytes.Equal(again.Owner, s.Owner) {
		t.Fatalf("descriptor %+v, want %+v", again.Descriptor, s.Descriptor)
	}
}

// TestStorePathFails: what is told is that a level could not be made, and not what followed from that.
func TestStorePathFails(t *testing.T) {
	o := StoreOptions{Descriptor: want("x"), Create: true, Tap: vetoes(func(op Op, _ string) error {
		if op == OpMkdir {
			return fs.ErrPermission
		}
		return nil
	})}
	_, err := OpenStore(filepath.Join(t.TempDir(), "a", "b"), o)
	checkIs(t, err, fs.ErrPermission)
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Op == "stat" {
		t.Error(err)
	}
}

// TestStoreClosedDuringFork: another goroutine starts a child process, which for a moment has the file of the lock and the
// directory too.
func TestStoreClosedDuringFork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	s := openStore(t, path, StoreOptions{Descriptor: want("x"), Create: true})
	inherited, err := s.lock.Dup()
	check(t, err)
	defer inherited.Close()
	check(t, s.Dir.h.do(func(fd int) error {
		again, err := dupFD(fd)
		if err == nil {
			dir := os.NewFile(uintptr(again), path)
			t.Cleanup(func() { dir.Close() })
		}
		return err
	}))
	if runtime.GOOS == "windows" {
		t.Skip("no child has files of its parent")
	}
	refused(t, path, StoreOptions{Descriptor: want("x")}, blobstor.ErrInUse)
	check(t, s.Close())
	openStore(t, path, StoreOptions{Descriptor: want("x")})
}

// TestStoreLockRemoved: the file of the lock is removed, as one that looks stale may be. It lets nobody in.
func TestStoreLockRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it cannot be removed")
	}
	path := filepath.Join(t.TempDir(), "a")
	o := StoreOptions{Descriptor: want("x"), Create: true}
	s := openStore(t, path, o)
	check(t, os.Remove(filepath.Join(path, lockName)))
	refused(t, path, o, blobstor.ErrInUse)
	check(t, s.Close())
	openStore(t, path, o)
}

func TestStoreSetShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	o := StoreOptions{Descriptor: want("x"), Create: true, Defaults: [4]uint32{7}}
	o.Owner = []byte("me")
	s := openStore(t, path, o)
	before := s.Descriptor
	check(t, s.SetShape([4]uint32{1, 2, 3, 4}))
	for range 2 {
		if s.Shape != [4]uint32{1, 2, 3, 4} || s.ID != before.ID || string(s.Owner) != "me" {
			t.Fatalf("descriptor %+v", s.Descriptor)
		}
		check(t, s.Close())
		s = openStore(t, path, StoreOptions{Descriptor: want("x")})
	}
}

func TestStoreLock(t *testing.T) {
	path := t.TempDir()
	rw := StoreOptions{Descriptor: want("x"), Create: true}
	ro := StoreOptions{Descriptor: want("x"), ReadOnly: true}
	s := openStore(t, path, rw)
	refused(t, path, rw, blobstor.ErrInUse)
	refused(t, path, ro, blobstor.ErrInUse)
	s.Close()
	a, b := openStore(t, path, ro), openStore(t, path, ro)
	refused(t, path, rw, blobstor.ErrInUse)
	a.Close()
	refused(t, path, rw, blobstor.ErrInUse)
	b.Close()
	openStore(t, path, rw)
}

// TestStoreLockReplaced: a lock on a file that lost its name meanwhile keeps nobody out, and so is none.
func TestStoreLockReplaced(t *testing.T) {
	path := t.TempDir()
	openStore(t, path, StoreOptions{Descriptor: want("x"), Create: true}).Close()
	replaced := 0
	o := StoreOptions{Descriptor: want("x"), Tap: vetoes(func(op Op, file string) error {
		if op != OpOpen || filepath.Base(file) != lockName {
			return nil
		}
		replaced++ // The lock is taken, and about to be compared with what bears its name.
		return errors.Join(os.Remove(file), os.WriteFile(file, nil, 0o600))
	})}
	refused(t, path, o, blobstor.ErrInUse)
	if replaced != 1 {
		t.Fatalf("replaced %d times", replaced)
	}
	o.Tap = nil
	openStore(t, path, o)
}

func TestStoreRefuses(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "store")
	create := StoreOptions{Descriptor: want("x"), Create: true}
	s := openStore(t, path, create)
	s.Close()

	other := create
	other.Kind = "y"
	refused(t, path, other, blobstor.ErrLayout)
	future := create
	future.Format = 2
	refused(t, path, future, blobstor.ErrLayout)
	owned := create
	owned.Owner = []byte("you")
	refused(t, path, owned, blobstor.ErrLayout)
	shaped := create
	shaped.Shape[2] = 4
	refused(t, path, shaped, blobstor.ErrLayout)

	good, err := os.ReadFile(filepath.Join(path, descriptorName))
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		os.WriteFile(filepath.Join(path, descriptorName), bad, 0o600)
		refused(t, path, create, blobstor.ErrLayout)
		os.WriteFile(filepath.Join(path, descriptorName), good[:i], 0o600)
		refused(t, path, create, blobstor.ErrLayout)
	}
	os.WriteFile(filepath.Join(path, descriptorName), good, 0o600)
	openStore(t, path, create).Close()

	file := filepath.Join(base, "file")
	os.WriteFile(file, nil, 0o600)
	refused(t, file, create, blobstor.ErrLayout)
	refused(t, file, StoreOptions{Descriptor: want("x")}, blobstor.ErrLayout)

	used := filepath.Join(base, "used")
	os.MkdirAll(filepath.Join(used, "photos"), 0o700)
	refused(t, used, create, blobstor.ErrLayout)
}

func TestStoreCreateContinues(t *testing.T) {
	path := t.TempDir()
	o := StoreOptions{Descriptor: want("x"), Create: true}
	stop := errors.New("stop")
	o.Build = func(d *Dir, _ Descriptor) error { return errors.Join(d.MakeDirs("00"), stop) }
	refused(t, path, o, stop)
	refused(t, path, StoreOptions{Descriptor: want("x")}, blobstor.ErrLayout)
	other := StoreOptions{Descriptor: want("y"), Create: true}
	refused(t, path, other, blobstor.ErrLayout)
	o.Build = func(d *Dir, _ Descriptor) error { return d.MakeDirs("00", "01") }
	openStore(t, path, o)
	if _, err := os.Stat(filepath.Join(path, buildingName)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestStoreRefusesPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for _, perm := range []fs.FileMode{0o400, 0o200, 0o044, 0o1600, fs.ModeSetgid | 0o600, fs.ModeDir | 0o700} {
		refused(t, path, StoreOptions{Descriptor: want("x"), Create: true, Perm: perm}, fs.ErrInvalid)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
