package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Rebuild makes the metabase of a shard that has lost it from the blobs. The node is not open. The new one gets its name
// when it is complete, so that one that was interrupted never serves; it is begun again.
func Rebuild(ctx context.Context, dir string, bad func(blobstor.Info, error)) error {
	s := &shard{dir: dir, health: newHealth()}
	if err := s.openBlobs(false); err != nil {
		return err
	}
	unfinished := filepath.Join(dir, "meta.new")
	err := os.RemoveAll(unfinished)
	if err == nil {
		err = rebuild(ctx, unfinished, s.blobs, bad)
	}
	if err = errors.Join(err, s.blobs.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, filepath.Join(dir, "meta")); err != nil { // also if there is one already
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable. Windows has no such call; NTFS journals its names.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// rebuild needs no epoch: it records everything, and the status decides later.
func rebuild(ctx context.Context, dir string, blobs blobstor.BlobStor, bad func(blobstor.Info, error)) error {
	db, err := metabase.Open(dir, &metabase.Options{Create: true})
	if err != nil {
		return err
	}
	_, err = metabase.Rebuild(ctx, db, blobs, parse, &metabase.RebuildOptions{Bad: bad})
	return errors.Join(err, db.Close())
}

// parse makes the records of a blob. It reads the header and nothing else; that is at hand.
func parse(info blobstor.Info, r io.ReaderAt) ([]metabase.Record, error) {
	buf := prefixes.Get().(*[prefixSize]byte)
	defer prefixes.Put(buf)
	got, err := r.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h, payload, err := decode(buf[:got])
	if err != nil {
		return nil, err
	}
	if h.Container != ID(info.Address.Container) {
		return nil, errHeader
	}
	return h.records(info.Address, info.Size-payload), nil // sizes are known: no storage here compresses
}
