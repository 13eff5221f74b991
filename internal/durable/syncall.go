package durable

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/granary-store/granary/blobstor"
)

// SyncAll makes all names below d durable, and the data of the files as well where the system can do it in one
// call (Linux), or if files is set. It is for what a process that died left in the system's cache.
func (d *Dir) SyncAll(files bool) error {
	if err := d.o.before(OpSyncAll, d, "", nil); err != nil {
		return blobstor.Failed(err)
	}
	whole, err := d.h.syncFS()
	if err == nil && !whole {
		err = d.syncTree(files)
	}
	if err != nil {
		return blobstor.Failed(pathError("sync", filepath.Base(d.path), err))
	}
	d.o.after(OpSyncAll, d, "", nil)
	return nil
}

// syncTree syncs every directory below d, and every file if files is set, contents before names.
func (d *Dir) syncTree(files bool) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.syncEntry(name, files); err != nil {
			return err
		}
	}
	return d.h.sync()
}

func (d *Dir) syncEntry(name string, files bool) error {
	sub, err := d.Sub(name)
	if err == nil {
		return errors.Join(sub.syncTree(files), sub.Close())
	}
	if !errors.Is(err, syscall.ENOTDIR) || !files {
		return ignore(err, syscall.ENOTDIR)
	}
	f, err := d.OpenRW(name)
	if err != nil {
		return ignore(err, ErrNotRegular)
	}
	return errors.Join(datasync(&f.f), f.Close())
}

func ignore(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
