package bolt

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

// maxRecent is how many pages Open reads of the last commit and the one before. They are sorted, so that a disk that
// seeks reads as many in about a second.
const maxRecent = 256

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{blobstor.ErrCorrupt}, args...)...)
}

// verify looks at a file before bbolt does.
func verify(f *durable.File, trusted trust) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	return verifyFile(f, size, trusted)
}

func verifyFile(r io.ReaderAt, size int64, trusted trust) error {
	now, before, err := readMetas(r, size)
	switch {
	case err != nil:
		return err
	case before == nil && trusted == trustClosed:
		return corrupt("one meta page is damaged, and with it perhaps the last commit")
	case trusted == trustNothing:
		return checkGraph(context.Background(), r, now)
	}
	v := recent{pages: pages{r, *now}, left: maxRecent, seen: map[uint64]bool{}}
	if trusted == trustCommits {
		if before == nil {
			before = &meta{} // It was being written; its pages are not known.
		}
		if err := v.compare(before.root); err != nil {
			return err
		}
	}
	return v.checkFree()
}

// recent walks what the last commit wrote: the pages that the tree has now, and that of the commit before had not.
// Both trees are walked level by level, as far as they differ. The fresh pages of a level are sorted.
type recent struct {
	pages
	left int // how many pages may still be read
	seen map[uint64]bool
	buf  []byte
}

// compare walks the tree, as far as it differs from the older one below the page before.
func (v *recent) compare(before uint64) error {
	known := map[uint64]bool{before: true} // the older tree's pages, as far as they are known
	old, fresh := []uint64{before}, []uint64{v.root}
	for len(fresh) > 0 && v.left > 0 {
		slices.Sort(fresh)
		old = v.older(old, fresh, known)
		next, err := v.level(fresh, known)
		if err != nil {
			return err
		}
		fresh = next
	}
	return nil
}

// older returns the children of those pages of the older tree that the newer has not. What cannot be read was given
// to a commit that did not end, which is no damage.
func (v *recent) older(old, fresh []uint64, known map[uint64]bool) (next []uint64) {
	for _, id := range old {
		if _, both := slices.BinarySearch(fresh, id); both || v.left <= 0 {
			continue
		}
		children, err := v.children(id)
		if err != nil {
			continue
		}
		for _, child := range children {
			known[child] = true
		}
		next = append(next, children...)
	}
	return next
}

// level checks the pages that the older tree has not, and returns their children.
func (v *recent) level(fresh []uint64, known map[uint64]bool) (next []uint64, err error) {
	for _, id := range fresh {
		if known[id] || v.left <= 0 {
			continue
		}
		if v.seen[id] {
			return nil, corrupt("page %d is reached twice", id)
		}
		v.seen[id] = true
		children, err := v.children(id)
		if err != nil {
			return nil, err
		}
		next = append(next, children...)
	}
	return next, nil
}

func (v *recent) children(id uint64) (ids []uint64, err error) {
	v.buf = slices.Grow(v.buf[:0], pageSize)[:pageSize]
	h, err := v.header(id, v.buf)
	if err != nil {
		return nil, err
	}
	v.left -= 1 + int(h.overflow/64) // A long page takes more time, but no more seeks.
	p, err := v.body(h, &v.buf)
	if err != nil {
		return nil, err
	}
	for i := range p.len() {
		if child := p.child(i); child != 0 {
			ids = append(ids, child)
		}
	}
	return ids, nil
}

// checkFree reads the freelist, as bbolt will, and looks for the pages seen.
func (v *recent) checkFree() error {
	_, err := v.eachFree(func(id uint64) error {
		if v.seen[id] || id == v.root || id == v.freelist {
			return corrupt("page %d is in use and free", id)
		}
		return nil
	})
	return err
}
