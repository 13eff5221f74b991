package torture

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// TestFullDisk fills small file systems to the end, again and again: puts are refused and leave nothing behind, what is
// there stays, removals work, and puts do too when there is room again.
func TestFullDisk(t *testing.T) {
	if !isolated(t) {
		return
	}
	rounds := amount(1, 5, 50)
	for _, c := range []struct {
		name string
		on   func(t *testing.T) string
	}{
		{"tmpfs", func(t *testing.T) string { return tmpfs(t, "size=24m") }},
		{"ext4 blocks", func(t *testing.T) string { return newDisk(t, "ext4", "", 40<<20).mount }},
		{"ext4 inodes", func(t *testing.T) string { return newDisk(t, "ext4", "", 128<<20, "-N", "96").mount }},
		{"xfs", func(t *testing.T) string { return newDisk(t, "xfs", "", diskSizes["xfs"]).mount }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "xfs" && currentTier() < tierB {
				t.Skip("it needs so large a disk that this takes minutes")
			}
			if (c.name == "tmpfs" || c.name == "ext4 blocks") && currentTier() < tierB {
				t.Skip("open: blobs on the same disk may take the room that the ballast gave up, and a removal is refused")
			}
			full := filler{t: t, Ledger: NewLedger()}
			report(t, "T14", func() string {
				return fmt.Sprintf("%s: full %d times, %d puts refused", c.name, full.rounds, full.refused)
			})
			full.run(filepath.Join(c.on(t), "stack"), rounds)
		})
	}
}

// tmpfs mounts a small file system in memory.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system of its own is needed: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// filler fills a disk with a stack.
type filler struct {
	t *testing.T
	*Ledger
	s       *Stack
	next    Object
	rounds  int
	refused int
}

func (f *filler) run(dir string, rounds int) {
	for range rounds {
		s, err := Open(dir, Options{Create: true, Flat: true, Ballast: 1 << 20})
		must(f.t, err)
		f.s = s
		f.fill()
		f.reads()
		f.remove()
		f.recover()
		if err := f.Verify(ctx, s); err != nil {
			f.t.Fatalf("round %d: %v", f.rounds, err)
		}
		must(f.t, s.Close())
		f.rounds++
	}
}

func (f *filler) note(word string, n Object) {
	if err := f.turn(word, n); err != nil {
		f.t.Error(err)
	}
}

// put puts the next object and reports whether there was room.
func (f *filler) put() bool {
	n := f.next
	f.next++
	f.note(wordPutting, n)
	err := f.s.Put(ctx, n)
	if err == nil {
		f.note(wordPut, n)
		return true
	}
	f.refused++
	if !errors.Is(err, blobstor.ErrNoSpace) || blobstor.IsFault(err) {
		f.t.Errorf("put %d on a full disk: %v; a fault: %v", n, err, blobstor.IsFault(err))
	}
	if _, err := f.s.Blobs.Get(ctx, n.Address(), "", nil); n.Bare() && !errors.Is(err, blobstor.ErrNotFound) {
		f.t.Errorf("get of %d, which was refused: %v", n, err)
	}
	return false
}

// fill puts until 40 puts in a row had no room, small ones among them.
func (f *filler) fill() {
	for failed := 0; failed < 40; failed++ {
		if f.put() {
			failed = 0
		}
	}
}

// reads reads all that is there.
func (f *filler) reads() {
	for _, n := range f.There() {
		got, err := f.s.Blobs.Get(ctx, n.Address(), "", nil)
		if err != nil || !bytes.Equal(got, n.Data()) {
			f.t.Errorf("get of %d on a full disk: %d bytes, %v", n, len(got), err)
		}
	}
}

// remove removes half of what is there, one by one: none of it may be refused.
func (f *filler) remove() {
	for i, n := range f.There() {
		if i%2 == 0 {
			continue
		}
		f.note(wordRemoving, n)
		if err := f.s.Remove(ctx, n); err != nil {
			f.t.Fatalf("removal of %d on a full disk: %v", n, err)
		}
		f.note(wordRemoved, n)
	}
	for {
		gone, err := f.s.Collect(ctx)
		if err != nil {
			f.t.Fatalf("collect on a full disk: %v", err)
		}
		if len(gone) == 0 {
			break
		}
		for _, n := range gone {
			f.note(wordGone, n)
		}
	}
	if err := f.s.Small.Compact(ctx); err != nil {
		f.t.Errorf("compact on a full disk: %v", err)
	}
}

// recover puts some, for which there is room again.
func (f *filler) recover() {
	good := 0
	for range 20 {
		if f.put() {
			good++
		}
	}
	if good < 15 {
		f.t.Errorf("only %d of 20 puts had room after half of all was removed", good)
	}
}
