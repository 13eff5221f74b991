package blobovnicza

import (
	"path/filepath"
	"sync"

	"github.com/granary-store/granary/internal/durable"
)

// asideTap knows the files that were set aside: only into these can be written on a full disk.
type asideTap struct {
	next durable.Tap

	mu    sync.Mutex
	files map[string]bool // paths of data files that were
}

// has reports whether the file under a path has space of its own.
func (a *asideTap) has(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := filepath.Base(path)
	return a.files[path] || name == reserveName || name == spareName
}

func (a *asideTap) Before(op durable.Op, path string, f *durable.File) error {
	return a.next.Before(op, path, f)
}

// After notes what gets the name of a data file by a rename: others get theirs by a link.
func (a *asideTap) After(op durable.Op, path string, f *durable.File) {
	a.next.After(op, path, f)
	if op == durable.OpRename && filepath.Ext(path) == dataSuffix {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.files == nil {
			a.files = map[string]bool{}
		}
		a.files[path] = true
	}
}
