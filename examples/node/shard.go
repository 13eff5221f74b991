package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
	"github.com/granary-store/granary/metabase"
)

// shard is what a disk holds: blobs, routed by size, and the index of them.
type shard struct {
	health
	dir   string
	small *blobovnicza.Tree
	large *fstree.Tree
	blobs *blobstor.Router // over small and large
	db    *metabase.DB
}

// openShard opens a shard. With create it makes one where there is none; without it, a disk that was not mounted is an
// error and no empty shard.
func openShard(dir string, create bool, meta metabase.Options) (s *shard, err error) {
	s = &shard{dir: dir, health: newHealth()}
	if err := s.openBlobs(create); err != nil {
		return nil, err
	}
	meta.Hooks = s.hooks()
	if s.db, err = metabase.Open(filepath.Join(dir, "meta"), &meta); err != nil {
		return nil, errors.Join(err, s.blobs.Close())
	}
	go s.watch(s.setReadOnly)
	return s, nil
}

// openBlobs opens the storages. Their hooks may be called from now on.
func (s *shard) openBlobs(create bool) (err error) {
	hooks := s.hooks()
	s.small, err = blobovnicza.Open(filepath.Join(s.dir, "small"), &blobovnicza.Options{Create: create, Hooks: hooks})
	if err != nil {
		return err
	}
	s.large, err = fstree.Open(filepath.Join(s.dir, "large"), &fstree.Options{Create: create, Hooks: hooks})
	if err != nil {
		return errors.Join(err, s.small.Close())
	}
	s.blobs, err = blobstor.New(
		blobstor.Route{Name: "small", MaxSize: blobstor.DefaultSmall, Storage: s.small},
		blobstor.Route{Name: "large", Storage: s.large},
	)
	if err != nil {
		return errors.Join(err, s.small.Close(), s.large.Close())
	}
	return nil
}

// put does the two steps of a put, for an address that is locked and cannot be read here: the blob becomes durable, then
// its record. A crash in between leaves a blob that nobody knows of.
func (s *shard) put(ctx context.Context, recs []metabase.Record, write func() (blobstor.Location, error)) error {
	at, err := write()
	if err != nil {
		return err
	}
	recs[0].Location = at
	err = s.db.Put(ctx, recs...)
	if metabase.IsRefusal(err) {
		// Nothing was recorded. The blob goes, or a rebuild would record it.
		return errors.Join(err, s.blobs.Delete(context.WithoutCancel(ctx), recs[0].Address, at))
	}
	return err
}

// setReadOnly refuses writes, those of the background included.
func (s *shard) setReadOnly(ctx context.Context) error {
	return errors.Join(
		s.db.SetReadOnly(ctx, true),
		s.small.SetReadOnly(ctx, true),
		s.large.SetReadOnly(ctx, true),
	)
}

func (s *shard) close() error {
	return errors.Join(s.unwatch(), s.db.Close(), s.blobs.Close())
}
