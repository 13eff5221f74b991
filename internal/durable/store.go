package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/granary-store/granary/blobstor"
)

// The names that a store's directory has of this package.
const (
	lockName       = "LOCK"           // locked while the store is open; never removed, for a lock is on a file, not on a name
	descriptorName = "DESCRIPTOR"     // present once the store is complete
	buildingName   = "DESCRIPTOR.new" // present from the first step of making a store to the last
)

// StoreOptions says which store is wanted.
type StoreOptions struct {
	// Descriptor is what the store must be: Kind and Format must be equal, Owner and each field of Shape if they
	// are set, that is, not empty and not zero. ID is ignored.
	Descriptor

	// Defaults are the fields of Shape that a new store gets where Descriptor leaves them unset.
	Defaults [4]uint32

	Create   bool // make the store if the directory is missing or empty
	ReadOnly bool // change nothing, and share the store with other read-only opens
	Tap      Tap  // nil outside tests

	// Perm are the permissions of files that are made, 0o600 if zero; directories get x besides where files have r.
	// The umask takes from both. What is there already stays as it is.
	Perm fs.FileMode

	// NamedTemp gives temporaries names even where the system could do without.
	NamedTemp bool

	// Build makes what a new store needs before its first use, on Create. It may be called again after a crash
	// and then finds what it has made before.
	Build func(d *Dir, desc Descriptor) error
}

// Store is an open store: its directory, what its descriptor says, and the lock, which Close releases.
type Store struct {
	Dir *Dir
	Descriptor
	Created bool // this open made it

	lock *File
}

// OpenStore opens the store in the directory path. It returns an error that matches blobstor.ErrInUse if it is
// open already, here or in another process, and blobstor.ErrLayout if the directory is no store, or another one,
// or its descriptor is damaged. A directory without a descriptor is a store only with Create, so that an
// unmounted disk never becomes an empty store. Options that make no sense are an error before anything is touched.
func OpenStore(path string, o StoreOptions) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	orig := newOrigin(o.Tap)
	orig.named = o.NamedTemp
	if o.Perm != 0 {
		orig.perm = o.Perm
	}
	if o.Create {
		if err := makePath(orig, path); err != nil {
			return nil, err
		}
	}
	d, err := openTop(orig, path)
	if err != nil {
		return nil, err
	}
	s := &Store{Dir: d}
	if err := s.open(&o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (o *StoreOptions) check() error {
	if o.Create && o.ReadOnly {
		return errors.New("durable: a store cannot be created read-only")
	}
	if o.Perm&^fs.ModePerm != 0 || o.Perm != 0 && o.Perm&0o600 != 0o600 {
		return fmt.Errorf("durable: permissions %v, the owner must read and write: %w", o.Perm, fs.ErrInvalid)
	}
	return o.Descriptor.check()
}

// openTop opens the store's own directory. Here symbolic links are followed: the program chose the path.
func openTop(o *origin, path string) (*Dir, error) {
	h, err := openHandle(path)
	switch {
	case err == nil:
		return newDir(o, h, path), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no such directory: %w", blobstor.ErrLayout, pathError("open", filepath.Base(path), err))
	case isFile(path):
		return nil, fmt.Errorf("%w: %s is a file, not a directory", blobstor.ErrLayout, filepath.Base(path))
	}
	return nil, pathError("open", filepath.Base(path), err)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func (s *Store) open(o *StoreOptions) (err error) {
	if err = s.takeLock(o.ReadOnly); err != nil {
		return err
	}
	s.Descriptor, err = readDescriptor(s.Dir, descriptorName)
	switch {
	case err == nil:
		return s.match(&o.Descriptor)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !o.Create:
		return fmt.Errorf("%w: there is no store here", blobstor.ErrLayout)
	}
	return s.create(o)
}

// takeLock locks the store, for this open alone or shared between read-only ones.
func (s *Store) takeLock(shared bool) error {
	how := openOrNew
	if shared {
		how = readOnly
	}
	f, err := s.Dir.open(lockName, how)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no store here", blobstor.ErrLayout)
	}
	if err != nil {
		return err
	}
	if err = lock(&f.f, shared); err != nil {
		return errors.Join(err, f.Close())
	}
	s.lock = f
	if err = s.sameLock(); err != nil {
		return err
	}
	return lockDir(s.Dir.h, shared)
}

// sameLock checks that the file that was locked still bears the name: a lock on a removed file keeps nobody out.
func (s *Store) sameLock() error {
	again, err := s.Dir.open(lockName, readOnly)
	if err != nil {
		return err
	}
	defer again.Close()
	same, err := again.Same(s.lock)
	if err == nil && !same {
		err = fmt.Errorf("%w: the lock was replaced", blobstor.ErrInUse)
	}
	return err
}

// readDescriptor reads a descriptor file. A missing one is fs.ErrNotExist.
func readDescriptor(d *Dir, name string) (Descriptor, error) {
	f, err := d.Open(name)
	if errors.Is(err, ErrNotRegular) {
		return Descriptor{}, fmt.Errorf("%w: %w", blobstor.ErrLayout, err)
	}
	if err != nil {
		return Descriptor{}, err
	}
	defer f.Close()
	b := make([]byte, descriptorSize+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return Descriptor{}, err
	}
	return decodeDescriptor(b[:n])
}

// SetShape changes the shape that the descriptor states. When it returns nil the new one is durable; otherwise
// either may be there at the next open. The store must not be open read-only. It is not safe for concurrent use.
func (s *Store) SetShape(shape [4]uint32) error {
	desc := s.Descriptor
	desc.Shape = shape
	if err := s.Dir.WriteFile(descriptorName, desc.encode()); err != nil {
		return err
	}
	s.Shape = shape
	return nil
}

// Close releases the lock and the directory. To close the file of the lock would not be enough: a child process that is
// being started has all files of this one until it executes its program.
func (s *Store) Close() error {
	var err error
	if s.lock != nil {
		err = errors.Join(unlockDir(s.Dir.h), s.lock.Unlock(), s.lock.Close())
	}
	return errors.Join(err, s.Dir.Close())
}
