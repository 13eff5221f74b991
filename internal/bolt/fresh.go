package bolt

import (
	"errors"

	"github.com/granary-store/granary/internal/durable"
)

// build makes what a new store needs. After a crash it may find what it made before, and replaces it.
func build(d *durable.Dir, o *Options) error {
	f, err := newFresh(d, o)
	if err != nil {
		return err
	}
	if err = f.finish(); err == nil {
		err = f.temp.Replace(fileName)
	}
	if err != nil {
		return errors.Join(err, f.temp.Discard())
	}
	return errors.Join(d.WriteFile(markClean, nil), f.temp.Close()) // It syncs the directory, for both names.
}

// fresh is a bbolt file that has no name yet. Its commits are not synced; finish does it once for all.
type fresh struct {
	temp *durable.Temp
	h    *handle
}

// newFresh makes a file with the static buckets, all empty.
func newFresh(d *durable.Dir, o *Options) (*fresh, error) {
	temp, err := d.Temp()
	if err != nil {
		return nil, err
	}
	own := (&Options{Buckets: o.Buckets, NoSync: true}).withDefaults()
	h, err := openBolt(temp.File, &own)
	if err != nil {
		return nil, errors.Join(err, temp.Discard())
	}
	f := &fresh{temp, h}
	if err = f.write(f.makeBuckets); err != nil {
		return nil, errors.Join(err, f.discard())
	}
	return f, nil
}

func bucketNames(o *Options) [][]byte {
	names := make([][]byte, len(o.Buckets))
	for i, name := range o.Buckets {
		names[i] = []byte(name)
	}
	return names
}

// makeBuckets is the only place that makes buckets.
func (f *fresh) makeBuckets(tx *Tx) error {
	for _, name := range f.h.names {
		if _, err := tx.b.CreateBucket(name); err != nil {
			return err
		}
	}
	return nil
}

// write runs one write transaction. After an error the file is good for nothing but discard.
func (f *fresh) write(fn func(*Tx) error) error {
	lost, err := f.h.update(fn)
	if lost {
		return noSpace(errors.Unwrap(err)) // Nothing is uncertain: the file has no name.
	}
	return err
}

// finish takes the file from bbolt and makes its bytes durable.
func (f *fresh) finish() error {
	if err := f.h.closeBolt(); err != nil {
		return err
	}
	return f.temp.Datasync()
}

func (f *fresh) discard() error { return errors.Join(f.h.closeBolt(), f.temp.Discard()) }
