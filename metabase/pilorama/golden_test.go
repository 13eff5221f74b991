package pilorama

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/granary-store/granary/blobstor"
)

var update = flag.Bool("update", false, "write the golden database of the current version anew")

// The golden database, what must be in it, key by key, and what it must answer.
const (
	goldenDir     = "testdata/golden/v1"
	goldenKeys    = "testdata/golden/v1.keys"
	goldenAnswers = "testdata/golden/v1.answers"

	bolted = 4096 // bytes of a page of the file
)

// fillGolden writes at least one of everything that the layout knows.
func fillGolden(tb testing.TB, w *world) {
	tb.Helper()
	file := w.addPath(tb, "dir/a\x00b", "k", "v", "", "")
	w.addPath(tb, "dir/a\x00b", "k", "2")
	_, err := w.Add(ctx, tree, Clock{3, 7}, Root, nil)
	must(tb, err)
	must(tb, w.ApplyBatch(ctx, tree, []Operation{
		op(100, 55, 1<<40, "x", "y"), op(101, 1<<40, 55), op(102, 1<<40, 1<<40), op(99, 1<<40, 55, FileName, "late"), op(98, Root, 56, FileName, ""),
	}))
	_, err = w.Move(ctx, tree, alone, file, Root, named("moved", "k", "v"))
	must(tb, err)
	_, err = w.Remove(ctx, tree, alone, 56)
	must(tb, err)
	short := Tree{tree.Container, "short\x00"}
	must(tb, w.ApplyBatch(ctx, short, []Operation{op(1, Root, 1), op(2, 1, 2), op(3, Root, 2, FileName, "z")}))
	must(tb, w.Truncate(ctx, short, 3))
	must(tb, w.Apply(ctx, doomed, op(1, Root, 1, FileName, "left"))) // what a crash leaves of a Drop
	must(tb, w.sweep(ctx, func(t *txn) error { return t.forget(doomed) }))
}

// told lists what the database answers.
func (w *world) told(tb testing.TB) string {
	tb.Helper()
	var text strings.Builder
	say := func(what string, answer any, err error) {
		fmt.Fprintf(&text, "%s: %q, %v\n", what, fmt.Sprintf("%+v", answer), err == nil)
	}
	for c := byte(1); c <= 2; c++ {
		names, err := w.List(ctx, blobstor.ID{c})
		say("list", names, err)
		for _, name := range names {
			tree := Tree{blobstor.ID{c}, name}
			height, last, err := w.Span(ctx, tree)
			say("span", []uint64{height, last}, err)
			log, err := w.OpLog(ctx, tree, height, 99)
			say("log", log, err)
			for _, top := range []NodeID{Root, Trash, 55, 1 << 40} {
				for e, err := range w.Subtree(ctx, tree, top, 0, "") {
					say(fmt.Sprintf("subtree %d, cursor %x", top, e.Cursor()), e.Node, err)
				}
			}
			for op, err := range w.Base(ctx, tree) {
				say("base", op, err)
			}
		}
	}
	for _, latest := range []bool{false, true} {
		found, err := w.GetByPath(ctx, tree, []string{"dir", "a\x00b"}, latest)
		say("by path", found, err)
	}
	return text.String()
}

// sameText compares with a golden file, or writes it.
func sameText(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
		must(tb, os.MkdirAll(filepath.Dir(path), 0o777))
		must(tb, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	must(tb, err)
	if got == string(want) {
		return
	}
	gots, wants := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gots), len(wants)) {
		if i >= len(gots) || i >= len(wants) || gots[i] != wants[i] {
			tb.Fatalf("%s, from line %d on:\n got %q\nwant %q", path, i+1, gots[min(i, len(gots)):], wants[min(i, len(wants)):])
		}
	}
}

// TestGoldenKeys: what is written has the keys and values of version 1, to the byte.
func TestGoldenKeys(t *testing.T) {
	w := newWorld(t, Options{Ballast: -1, Owner: []byte("golden")})
	fillGolden(t, w)
	sameText(t, goldenKeys, w.dump(t))
	if !*update {
		return
	}
	sameText(t, goldenAnswers, w.told(t))
	must(t, w.Close())
	must(t, os.RemoveAll(goldenDir))
	must(t, os.CopyFS(goldenDir, os.DirFS(w.dir)))
	path := filepath.Join(goldenDir, "bolt")
	b, err := os.ReadFile(path)
	must(t, err)
	end := max(binary.LittleEndian.Uint64(b[16+40:]), binary.LittleEndian.Uint64(b[bolted+16+40:])) // of the pages in use, in both metas
	must(t, os.Truncate(path, int64(end)*bolted))
}

// TestGoldenDatabase: every database of version 1 opens in every later release, is whole, answers as it did and can be
// written, on a machine of the same byte order.
func TestGoldenDatabase(t *testing.T) {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) != 1 {
		t.Skip("the file's library writes in the order of the machine; the golden database is little-endian")
	}
	w := &world{dir: filepath.Join(t.TempDir(), "trees")}
	must(t, os.CopyFS(w.dir, os.DirFS(goldenDir)))
	for _, o := range []Options{{ReadOnly: true}, {Owner: []byte("golden"), Ballast: -1}} {
		w.opts = o
		w.reopen(t)
		w.check(t)
		sameText(t, goldenKeys, w.dump(t))
		sameText(t, goldenAnswers, w.told(t))
	}
	w.addPath(t, "dir/new")
	must(t, w.Apply(ctx, tree, op(97, Root, 55)))
	w.check(t)
	for c := range byte(3) {
		must(t, w.Drop(ctx, Tree{Container: blobstor.ID{c}}))
	}
	if n := w.keys(t); n != 2 {
		t.Errorf("%d keys are left", n)
	}
	must(t, w.Close())
}
