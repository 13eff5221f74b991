// Plugin is a storage of one's own as a route: small objects go to a journal that this program implements, one
// file and a map; large ones to Granary's fstree. The router does not know the difference.
//
//	go run ./examples/plugin
//
// What makes it safe to do is main_test.go: package storagetest holds the journal to the laws of the contract.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// open wires the two routes. Create makes what is not there.
func open(dir string) (*blobstor.Router, error) {
	small, err := openJournal(filepath.Join(dir, "journal"))
	if err != nil {
		return nil, err
	}
	large, err := fstree.Open(filepath.Join(dir, "large"), &fstree.Options{Create: true})
	if err != nil {
		return nil, errors.Join(err, small.Close())
	}
	return blobstor.New(
		blobstor.Route{Name: "journal", MaxSize: 64 << 10, Storage: small},
		blobstor.Route{Name: "large", Storage: large},
	)
}

// run stores three objects, opens the store again and looks where they are.
func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "granary-plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := store(ctx, dir, 5, 64<<10, 1<<20); err != nil {
		return err
	}
	return list(ctx, dir)
}

// store puts one object of each size.
func store(ctx context.Context, dir string, sizes ...int) error {
	s, err := open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	container := blobstor.ID(sha256.Sum256([]byte("container")))
	for _, size := range sizes {
		data := make([]byte, size)
		addr := blobstor.Address{Container: container, Object: sha256.Sum256(data)}
		if _, err := s.Put(ctx, addr, data); err != nil {
			return err
		}
	}
	return nil
}

// list reads every object back. A location that a router returned begins with the name of the route.
func list(ctx context.Context, dir string) error {
	s, err := open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	for info, err := range s.All(ctx, "") {
		if err != nil {
			return err
		}
		data, err := s.Get(ctx, info.Address, info.Location, nil)
		if err != nil {
			return err
		}
		route, _, _ := strings.Cut(string(info.Location), "/")
		fmt.Printf("%s: %d bytes\n", route, len(data))
	}
	return nil
}
