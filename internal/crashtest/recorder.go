package crashtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/granary-store/granary/internal/durable"
)

// Recorder remembers what would survive a loss of power at any moment: of a file the bytes as of before its last
// good sync, of a directory the names as of before its last good sync. It does not follow renamed directories,
// and takes two syncs of one file or directory at the same moment for one.
type Recorder struct {
	root string

	mu      sync.Mutex
	files   map[identity]*file
	dirs    map[string]names    // durable names by directory; the paths are full
	pending map[target]snapshot // of syncs that run
}

// target is what a sync works on. The path alone does not tell files apart: one that was moved away still goes by
// its old name, which another may have.
type target struct {
	path string
	f    *durable.File
}

// file is an inode; names share it.
type file struct{ synced []byte }

// names are the entries of a directory; nil is a directory among them.
type names map[string]*file

// snapshot is what a sync will have made durable once it has succeeded.
type snapshot struct {
	content map[*file][]byte
	dirs    map[string]names
}

// NewRecorder returns a recorder for what happens below the directory root. What is there already is durable.
func NewRecorder(root string) (*Recorder, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &Recorder{root: root, files: map[identity]*file{}, dirs: map[string]names{}, pending: map[target]snapshot{}}
	s, err := r.tree(root)
	if err != nil {
		return nil, err
	}
	r.commit(s)
	return r, nil
}

// Before takes the snapshot of what a sync is about to make durable.
func (r *Recorder) Before(op durable.Op, path string, f *durable.File) error {
	if !r.covers(path) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var s snapshot
	var err error
	switch op {
	case durable.OpSync:
		s, err = r.content(f)
	case durable.OpSyncDir:
		s, err = r.names(path)
	case durable.OpSyncAll:
		s, err = r.tree(path)
	default:
		return nil
	}
	r.pending[target{path, f}] = s
	return err
}

// After records the snapshot as durable.
func (r *Recorder) After(op durable.Op, path string, f *durable.File) {
	if !r.covers(path) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch op {
	case durable.OpSync, durable.OpSyncDir, durable.OpSyncAll:
		r.commit(r.pending[target{path, f}])
		delete(r.pending, target{path, f})
	case durable.OpMkdir:
		r.dirs[path] = names{}
	case durable.OpCreate:
		// The number of a removed inode may have been given to this file, whose bytes are new; durable names of
		// the old one keep the old bytes.
		if info, err := f.Stat(); err == nil && info.Size() == 0 {
			r.files[identify(info)] = &file{}
		}
	}
}

// PowerLoss writes what is durable into the directory dst, which it makes.
func (r *Recorder) PowerLoss(dst string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(r.root, dst)
}

func (r *Recorder) write(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for name, f := range r.dirs[from] {
		var err error
		if f == nil {
			err = r.write(filepath.Join(from, name), filepath.Join(to, name))
		} else {
			err = os.WriteFile(filepath.Join(to, name), f.synced, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) covers(path string) bool {
	return path == r.root || strings.HasPrefix(path, r.root+string(filepath.Separator))
}

func (r *Recorder) commit(s snapshot) {
	for f, b := range s.content {
		f.synced = b
	}
	maps.Copy(r.dirs, s.dirs)
}

func (r *Recorder) file(info fs.FileInfo) *file {
	id := identify(info)
	if r.files[id] == nil {
		r.files[id] = &file{}
	}
	return r.files[id]
}

// content is the snapshot for the sync of a file, which may have no name.
func (r *Recorder) content(f *durable.File) (snapshot, error) {
	info, err := f.Stat()
	if err != nil {
		return snapshot{}, err
	}
	b := make([]byte, info.Size())
	n, _ := f.PeekAt(b, 0)
	return snapshot{content: map[*file][]byte{r.file(info): b[:n]}}, nil
}

// names is the snapshot for the sync of a directory.
func (r *Recorder) names(path string) (snapshot, error) {
	entries, err := os.ReadDir(path)
	found := names{}
	for _, e := range entries {
		if e.IsDir() {
			found[e.Name()] = nil
		} else if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			found[e.Name()] = r.file(info)
		}
	}
	return snapshot{dirs: map[string]names{path: found}}, err
}

// tree is the snapshot for the sync of everything below path.
func (r *Recorder) tree(path string) (snapshot, error) {
	all := snapshot{content: map[*file][]byte{}, dirs: map[string]names{}}
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		if e.IsDir() {
			s, err := r.names(p)
			maps.Copy(all.dirs, s.dirs)
			return err
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			return ignoreMissing(err)
		}
		b, err := os.ReadFile(p)
		all.content[r.file(info)] = b
		return ignoreMissing(err)
	})
	return all, err
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
