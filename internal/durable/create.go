package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// makePath makes the store's directory and those above it that are missing, each durable in the one above.
func makePath(o *origin, path string) error {
	if _, err := os.Stat(filepath.Join(path, descriptorName)); err == nil {
		return nil // A descriptor is written only after this was done.
	}
	if isFile(path) {
		return nil // OpenStore says it better.
	}
	parent := filepath.Dir(path)
	if parent == path {
		return nil
	}
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		if err := makePath(o, parent); err != nil {
			return err
		}
	} else if err != nil {
		return pathError("stat", filepath.Base(parent), err)
	}
	h, err := openHandle(parent)
	if err != nil {
		return pathError("open", filepath.Base(parent), err)
	}
	d := newDir(o, h, parent)
	return errors.Join(d.MakeDirs(filepath.Base(path)), d.Close())
}

// create makes the store: the new descriptor under another name, what the package builds, then the final name.
// After a crash in between, the next create starts again at the first step; nothing was acknowledged yet.
func (s *Store) create(o *StoreOptions) error {
	if err := s.checkEmpty(o); err != nil {
		return err
	}
	s.Descriptor = o.newDescriptor()
	if err := s.Dir.WriteFile(buildingName, s.encode()); err != nil {
		return err
	}
	if o.Build != nil {
		if err := o.Build(s.Dir, s.Descriptor); err != nil {
			return err
		}
	}
	if err := s.Dir.Rename(buildingName, descriptorName); err != nil {
		return err
	}
	s.Created = true
	return s.Dir.Sync()
}

func (o *StoreOptions) newDescriptor() Descriptor {
	desc := o.Descriptor
	rand.Read(desc.ID[:]) // It never fails: the program would have ended.
	for i, n := range o.Defaults {
		if desc.Shape[i] == 0 {
			desc.Shape[i] = n
		}
	}
	desc.Owner = slices.Clone(o.Owner)
	return desc
}

// checkEmpty refuses a directory that holds what is not ours. A whole new descriptor of the wanted kind proves
// that the rest comes from a create that did not end.
func (s *Store) checkEmpty(o *StoreOptions) error {
	building, err := readDescriptor(s.Dir, buildingName)
	if err == nil && building.Kind == o.Kind {
		return nil
	}
	names, err := s.Dir.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, temp := isTemp(name); temp || name == lockName || name == "lost+found" || name == buildingName {
			continue
		}
		return fmt.Errorf("%w: the directory holds no store, but %q", blobstor.ErrLayout, name)
	}
	return nil
}
