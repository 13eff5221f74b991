package fstree

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

func TestOptions(t *testing.T) {
	bad := Options{Create: true, ReadOnly: true, NoSync: true, Owner: make([]byte, 65), Depth: 4, MaxSize: -1}
	err := bad.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 5 {
		t.Fatalf("Validate reports %v", err)
	}
	if _, err := Open(t.TempDir(), &bad); err == nil {
		t.Fatal("a store opened with bad options")
	}
	check(t, (&Options{Depth: -5, MaxSize: math.MaxInt32}).Validate())
}

func TestOpenRefuses(t *testing.T) {
	base := memory(t)
	dir := filepath.Join(base, "store")
	refused := func(dir string, o Options, want error) {
		t.Helper()
		tree, err := Open(dir, &o)
		if err == nil {
			tree.Close()
		}
		checkIs(t, err, want)
		if _, ok := errors.AsType[*blobstor.Error](err); !ok {
			t.Fatalf("%T is not wrapped", err)
		}
	}
	refused(dir, Options{}, blobstor.ErrLayout)
	_, err := Open(dir, nil)
	checkIs(t, err, blobstor.ErrLayout)

	tree := reopen(t, dir, Options{Owner: []byte("me"), Depth: 2})
	put(t, tree, 1, 10)
	refused(dir, Options{}, blobstor.ErrInUse)
	refused(dir, Options{ReadOnly: true}, blobstor.ErrInUse)
	check(t, tree.Close())

	refused(dir, Options{Depth: 1}, blobstor.ErrLayout)
	refused(dir, Options{Depth: -1}, blobstor.ErrLayout)
	refused(dir, Options{Owner: []byte("you")}, blobstor.ErrLayout)
	has(t, reopen(t, dir, Options{Owner: []byte("me"), Depth: 2}), 1, 10)

	file := filepath.Join(base, "file")
	check(t, os.WriteFile(file, nil, 0o600))
	refused(file, Options{Create: true}, blobstor.ErrLayout)
	refused(base, Options{Create: true}, blobstor.ErrLayout) // It holds other things.

	other := filepath.Join(base, "other")
	s, err := durable.OpenStore(other, durable.StoreOptions{
		Descriptor: durable.Descriptor{Kind: "blobovnicza", Format: 1}, Create: true,
	})
	check(t, err)
	check(t, s.Close())
	refused(other, Options{Create: true}, blobstor.ErrLayout)
}

func TestOpenDamagedDescriptor(t *testing.T) {
	dir := filepath.Join(memory(t), "store")
	tree := reopen(t, dir, Options{})
	put(t, tree, 1, 10)
	check(t, tree.Close())
	path := filepath.Join(dir, "DESCRIPTOR")
	good, err := os.ReadFile(path)
	check(t, err)
	for name, bad := range map[string][]byte{
		"empty": nil, "short": good[:100], "long": append(bytes.Clone(good), 0), "zeros": make([]byte, len(good)),
		"future": append(append(bytes.Clone(good[:7]), 0, 2), good[9:]...),
	} {
		t.Run(name, func(t *testing.T) {
			check(t, os.WriteFile(path, bad, 0o600))
			_, err := Open(dir, &Options{Create: true})
			checkIs(t, err, blobstor.ErrLayout)
		})
	}
	check(t, os.Remove(path))
	_, err = Open(dir, &Options{Create: true})
	checkIs(t, err, blobstor.ErrLayout) // What is in the directory has another store's ID.
	check(t, os.WriteFile(path, good, 0o600))
	has(t, reopen(t, dir, Options{}), 1, 10)
}

// TestHeldElsewhere opens a store that another process has open.
func TestHeldElsewhere(t *testing.T) {
	dir := filepath.Join(memory(t), "store")
	check(t, reopen(t, dir, Options{}).Close())
	cmd := again(t, "hold", dir)
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer cmd.Wait()
	defer in.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, nil)
	checkIs(t, err, blobstor.ErrInUse)
	_, err = Open(dir, &Options{ReadOnly: true})
	checkIs(t, err, blobstor.ErrInUse)
	check(t, cmd.Process.Kill())
	cmd.Wait()
	reopen(t, dir, Options{})
}

// childHold opens a store and holds it until its parent dies or kills it.
func childHold(dir string) error {
	if _, err := Open(dir, nil); err != nil {
		return err
	}
	fmt.Println("held")
	_, err := os.Stdin.Read(make([]byte, 1))
	return err
}

func TestSizes(t *testing.T) {
	const limit = 3*blockSize + 10
	tree := create(t, Options{MaxSize: limit})
	sizes := []int{0, 1, copyLimit, copyLimit + 1, blockSize - 1, blockSize, blockSize + 1, lookLimit, limit}
	for n, size := range sizes {
		if size > limit {
			continue
		}
		put(t, tree, n, size)
		has(t, tree, n, size)
		got, err := tree.Get(ctx, address(n), "", []byte("dst"))
		if check(t, err); !bytes.Equal(got, append([]byte("dst"), content(n, size)...)) {
			t.Fatalf("size %d: Get does not append", size)
		}
	}
	_, err := tree.Put(ctx, address(99), make([]byte, limit+1))
	checkIs(t, err, blobstor.ErrTooLarge)
	lacks(t, tree, 99)
	_, err = tree.NewWriter(ctx, limit+1)
	checkIs(t, err, blobstor.ErrTooLarge)
}

func TestRanges(t *testing.T) {
	tree := create(t, Options{})
	for n, size := range []int{0, 1, blockSize, 2*blockSize + 5, 20*blockSize + 1} {
		put(t, tree, n, size)
		want := content(n, size)
		offs := []int64{0, 1, blockSize - 1, blockSize, blockSize + 1, int64(size) - 1, int64(size)}
		for _, off := range offs {
			if off < 0 || off > int64(size) {
				continue
			}
			for _, length := range []int{0, 1, 4096, blockSize, 3 * blockSize, size + 1} {
				p := make([]byte, length)
				got, total, err := tree.ReadRange(ctx, address(n), "", p, off)
				check(t, err)
				end := min(int64(size), off+int64(length))
				if total != int64(size) || !bytes.Equal(p[:got], want[off:end]) {
					t.Fatalf("range %d+%d of %d: %d bytes of %d", off, length, size, got, total)
				}
			}
		}
		for _, off := range []int64{-1, int64(size) + 1, math.MaxInt64, math.MinInt64} {
			_, _, err := tree.ReadRange(ctx, address(n), "", make([]byte, 9), off)
			checkIs(t, err, blobstor.ErrOutOfRange)
		}
		_, err := blobstor.GetRange(ctx, tree, address(n), "", 1, math.MaxInt64)
		checkIs(t, err, blobstor.ErrOutOfRange)
	}
}

// TestModel runs random calls against a tree and a map, with reopens in between.
func TestModel(t *testing.T) {
	for _, o := range []Options{{Depth: -1}, {rename: true}, {Depth: 3, NoSync: true}} {
		t.Run(fmt.Sprintf("depth=%d/rename=%v", o.Depth, o.rename), func(t *testing.T) {
			dir := filepath.Join(memory(t), "store")
			tree := reopen(t, dir, o)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			model := map[int]int{} // size by number
			for range 1500 {
				n := rng.IntN(60)
				size := n * n * 31
				switch rng.IntN(8) {
				case 0, 1, 2:
					put(t, tree, n, size)
					model[n] = size
				case 3:
					stream(t, tree, n, size, rng.IntN(2) == 0)
					model[n] = size
				case 4:
					err := tree.Delete(ctx, address(n), "")
					if _, ok := model[n]; ok {
						check(t, err)
					} else {
						checkIs(t, err, blobstor.ErrNotFound)
					}
					delete(model, n)
				case 5:
					if rng.IntN(20) == 0 {
						check(t, tree.Close())
						tree = reopen(t, dir, o)
					}
				default:
					if size, ok := model[n]; ok {
						has(t, tree, n, size)
					} else {
						lacks(t, tree, n)
					}
				}
			}
			checkAll(t, tree, model)
		})
	}
}

func stream(t testing.TB, tree *Tree, n, size int, known bool) {
	t.Helper()
	announced := int64(-1)
	if known {
		announced = int64(size)
	}
	w, err := tree.NewWriter(ctx, announced)
	check(t, err)
	for piece := range slices.Chunk(content(n, size), 1+size/3) {
		_, err := w.Write(piece)
		check(t, err)
	}
	_, err = w.Commit(address(n))
	check(t, err)
	check(t, w.Close())
}

// checkAll checks that the tree has exactly the blobs of the model.
func checkAll(t testing.TB, tree *Tree, model map[int]int) {
	t.Helper()
	found := map[blobstor.Address]blobstor.Info{}
	last := blobstor.Location("")
	for info, err := range tree.All(ctx, "") {
		check(t, err)
		if info.Location < last {
			t.Fatalf("All: %q after %q", info.Location, last)
		}
		last = info.Location
		if _, ok := found[info.Address]; ok {
			t.Fatalf("All: %v comes twice", info.Address)
		}
		found[info.Address] = info
	}
	if len(found) != len(model) {
		t.Fatalf("All yields %d blobs, want %d", len(found), len(model))
	}
	for n, size := range model {
		if found[address(n)].Size != int64(size) {
			t.Fatalf("All: blob %d is %+v, want %d bytes", n, found[address(n)], size)
		}
		has(t, tree, n, size)
	}
}
