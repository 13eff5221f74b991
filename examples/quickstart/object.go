package main

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/granary-store/granary/blobstor"
)

// object is a file of the source directory and what became of it.
type object struct {
	file    string
	name    string // relative to the source directory, with slashes
	size    int64
	addr    blobstor.Address
	at      blobstor.Location
	sum     [sha256.Size]byte // of the content
	deleted bool
}

// container is the namespace of all objects here.
var container = blobstor.ID(sha256.Sum256([]byte("quickstart")))

// find lists the regular files of a directory.
func find(source string) ([]*object, error) {
	var objects []*object
	err := filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, file)
		objects = append(objects, &object{file: file, name: filepath.ToSlash(name), size: info.Size()})
		return err
	})
	return objects, err
}

// put stores the file. The object's ID is the SHA-256 of its name and content, so equal files stay apart.
func (o *object) put(ctx context.Context, s blobstor.BlobStor) error {
	if o.size > blobstor.DefaultSmall {
		return o.stream(ctx, s)
	}
	data, err := os.ReadFile(o.file)
	if err != nil {
		return err
	}
	o.sum = sha256.Sum256(data)
	o.addr = o.address(sha256.Sum256(append([]byte(o.name+"\x00"), data...)))
	o.at, err = s.Put(ctx, o.addr, data)
	return err
}

// stream stores a file of any size in little memory. The address is named last, when the hash is known.
func (o *object) stream(ctx context.Context, s blobstor.BlobStor) error {
	f, err := os.Open(o.file)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := s.NewWriter(ctx, o.size)
	if err != nil {
		return err
	}
	defer w.Close() // discards the blob unless it was committed
	id, sum := sha256.New(), sha256.New()
	id.Write([]byte(o.name + "\x00"))
	if _, err := io.Copy(io.MultiWriter(w, id, sum), f); err != nil {
		return err
	}
	sum.Sum(o.sum[:0])
	o.addr = o.address([sha256.Size]byte(id.Sum(nil)))
	o.at, err = w.Commit(o.addr)
	return err
}

func (o *object) address(id blobstor.ID) blobstor.Address {
	return blobstor.Address{Container: container, Object: id}
}

// delete removes the object from the store. The file stays.
func (o *object) delete(ctx context.Context, s blobstor.BlobStor) error {
	err := s.Delete(ctx, o.addr, o.at)
	o.deleted = err == nil
	return err
}
