package fstree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/granary-store/granary/internal/durable"
)

// meets is a tap that calls a function before the n-th operation of a kind on a path that ends like this.
func meets(op durable.Op, base func() string, n int, call func()) *tap {
	return &tap{before: func(o durable.Op, path string) error {
		if o == op && filepath.Base(path) == base() {
			if n--; n == 0 {
				call()
			}
		}
		return nil
	}}
}

// soon waits for what may or may not happen: long enough for a call that nothing holds up.
func soon(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(50 * time.Millisecond):
	}
}

func nameOf(n int) func() string { return func() string { return place{addr: address(n)}.name() } }

// TestReadMeetsMove moves a blob at each look that a read takes at it: it is found all the same.
func TestReadMeetsMove(t *testing.T) {
	for look := 1; look <= 2; look++ {
		for _, whole := range []bool{false, true} { // Not only begun before the read, but from begin to end within it.
			var tree *Tree
			move := func() {
				if whole {
					check(t, tree.Reshape(ctx, 2))
				} else {
					check(t, tree.empty(ctx))
				}
			}
			armed := false
			o := Options{tap: meets(durable.OpOpen, func() string {
				if armed {
					return nameOf(1)()
				}
				return ""
			}, look, func() { move() })}
			tree = create(t, o)
			put(t, tree, 1, 100)
			if !whole {
				_, err := tree.aim(ctx, 2)
				check(t, err)
			}
			armed = true
			_, err := tree.Stat(ctx, address(1), "")
			check(t, err)
			armed = false
			has(t, tree, 1, 100)
		}
	}
}

// TestAllMeetsMove moves the blobs of a directory after each of the lists that All takes: each is seen once.
func TestAllMeetsMove(t *testing.T) {
	for _, depths := range [][2]int{{1, 2}, {2, 1}} {
		for after := 1; after <= 3; after++ {
			tree := begun(t, filepath.Join(memory(t), "store"), Options{}, depths[0], depths[1])
			put(t, tree, 1, 100)
			check(t, scatter(tree, address(1), toOld))
			lists := 0
			list := func(key dirKey) ([]string, error) {
				names, err := tree.list(key)
				if lists++; lists == after {
					check(t, tree.empty(ctx))
				}
				return names, err
			}
			seen := tree.look(tree.layout.Load(), tree.place(address(1)).dir(1), 0, list)
			if len(seen) != 1 || seen[0].addr != address(1) || seen[0].err != nil {
				t.Fatalf("%v, moved after list %d: %v", depths, after, seen)
			}
		}
	}
}

// TestAllMeetsReshapes reshapes the store from the loop over All.
func TestAllMeetsReshapes(t *testing.T) {
	tree, model := filled(t, Options{}, 60)
	seen := 0
	for _, err := range tree.All(ctx, "") {
		check(t, err)
		check(t, tree.Reshape(ctx, seen/5%(maxDepth+1)))
		seen++
	}
	if seen != len(model) {
		t.Fatalf("%d blobs, want %d", seen, len(model))
	}
}

// TestPutMeetsReshape begins a Reshape while a put writes: what the put stores where it belonged before is moved too.
func TestPutMeetsReshape(t *testing.T) {
	for name, store := range map[string]func(tree *Tree) error{
		"put": func(tree *Tree) error {
			_, err := tree.Put(ctx, address(1), content(1, 100))
			return err
		},
		"commit": func(tree *Tree) error { return streamedSize(tree, 1, 100) },
	} {
		var tree *Tree
		done := make(chan struct{})
		begin := func() {
			go func() {
				defer close(done)
				if err := tree.Reshape(ctx, 2); err != nil {
					t.Error(err)
				}
			}()
			soon(done)
		}
		armed := false
		o := Options{tap: &tap{before: func(op durable.Op, _ string) error {
			if armed && op == durable.OpSync {
				armed = false // The Reshape syncs too.
				begin()
			}
			return nil
		}}}
		tree = create(t, o)
		armed = true
		check(t, store(tree))
		<-done
		has(t, tree, 1, 100)
		if !exists(pathAt(tree, address(1), 2)) {
			t.Fatalf("%s: the blob stayed behind", name)
		}
	}
}

// TestMoveMeetsWrite lets a put and a delete meet a blob whose file has both names at that moment.
func TestMoveMeetsWrite(t *testing.T) {
	for _, what := range []string{"heal", "delete"} {
		t.Run(what, func(t *testing.T) {
			var tree *Tree
			done := make(chan struct{})
			write := func() {
				if !exists(pathAt(tree, address(1), 2)) {
					panic("the blob has only one name")
				}
				go func() {
					defer close(done)
					var err error
					if what == "heal" {
						_, err = tree.Put(ctx, address(1), content(1, 1000))
					} else {
						err = tree.Delete(ctx, address(1), "")
					}
					if err != nil {
						t.Error(err)
					}
				}()
				soon(done)
			}
			armed := false
			o := Options{tap: &tap{before: func(op durable.Op, path string) error {
				if armed && op == durable.OpSyncDir && path == filepath.Dir(pathAt(tree, address(1), 2)) {
					armed = false
					write()
				}
				return nil
			}}}
			tree = create(t, o)
			put(t, tree, 1, 1000)
			if what == "heal" {
				mangle(t, tree, address(1), func(b []byte) []byte { b[50] ^= 1; return b })
			}
			armed = true
			check(t, tree.Reshape(ctx, 2))
			<-done
			if what == "delete" {
				lacks(t, tree, 1)
				checkPlaces(t, tree, nil, 2)
			} else {
				has(t, tree, 1, 1000)
				checkPlaces(t, tree, map[int]int{1: 1000}, 2)
			}
		})
	}
}

// TestReshapeLeavesForeigners: what is no blob, or lies where it does not belong, neither moves nor keeps a Reshape from
// its end.
func TestReshapeLeavesForeigners(t *testing.T) {
	tree, model := filled(t, Options{}, 10)
	at := levelName(byte(tree.place(address(99)).key>>56) + 1)
	names := []string{"README", "aa/README", filepath.Join(at, nameOf(99)())}
	for _, name := range names {
		check(t, os.WriteFile(filepath.Join(tree.store.Dir.Path(), name), nil, 0o600))
	}
	check(t, tree.Reshape(ctx, 2))
	checkAll(t, tree, model)
	for _, name := range names {
		if !exists(filepath.Join(tree.store.Dir.Path(), name)) {
			t.Errorf("%s is gone", name)
		}
	}
	if s := tree.Stats(); s.Moved != 10 || s.OldDepth != noDepth {
		t.Fatalf("%+v", s)
	}
}

// TestReshapesWait calls Reshape again when another one is about to end: each gets where it wants, one after the other.
func TestReshapesWait(t *testing.T) {
	var tree *Tree
	done := make(chan struct{})
	second := func() {
		go func() {
			defer close(done)
			if err := tree.Reshape(ctx, 0); err != nil {
				t.Error(err)
			}
		}()
		soon(done)
	}
	syncs := 0
	var armed atomic.Bool
	o := Options{tap: &tap{before: func(op durable.Op, _ string) error {
		if armed.Load() && op == durable.OpSync { // Of a descriptor, at the begin and at the end.
			if syncs++; syncs == 2 {
				armed.Store(false)
				second()
			}
		}
		return nil
	}}}
	var model map[int]int
	tree, model = filled(t, o, 30)
	armed.Store(true)
	check(t, tree.Reshape(ctx, 2))
	<-done
	checkAll(t, tree, model)
	checkPlaces(t, tree, model, 0)
}

// TestWriteMeetsFirstMove: a blob moves into a directory that is new while a call waits for the lock on its name. The
// call must not go by what was there before it waited.
func TestWriteMeetsFirstMove(t *testing.T) {
	for name, write := range map[string]func(tree *Tree) error{
		"delete": func(tree *Tree) error { return tree.Delete(ctx, address(1), "") },
		"confirm": func(tree *Tree) error {
			if stored, err := tree.confirm(tree.place(address(1))); !stored || err != nil {
				return fmt.Errorf("stored %v, %w", stored, err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := begun(t, filepath.Join(memory(t), "store"), Options{}, 1, 2)
			put(t, tree, 1, 100)
			check(t, scatter(tree, address(1), toOld))
			check(t, os.Remove(filepath.Dir(pathAt(tree, address(1), 2))))
			check(t, tree.Close())
			tree = reopen(t, tree.store.Dir.Path(), Options{})
			tree.names.lock(address(1))
			done := make(chan error)
			go func() { done <- write(tree) }()
			select {
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			moveLocked(t, tree, tree.place(address(1)))
			tree.names.unlock(address(1))
			check(t, <-done)
			if name == "delete" {
				lacks(t, tree, 1)
			} else {
				has(t, tree, 1, 100)
			}
		})
	}
}

// moveLocked moves a blob as a Reshape does. The caller holds the lock on its name.
func moveLocked(t *testing.T, tree *Tree, p place) {
	t.Helper()
	l := tree.layout.Load()
	old, err := tree.usable(p.dir(l.old), false)
	check(t, err)
	defer tree.dirs.put(old)
	dir, err := tree.usable(p.dir(l.depth), true)
	check(t, err)
	defer tree.dirs.put(dir)
	check(t, tree.link(old, dir, p))
	check(t, errors.Join(dir.Sync(), old.Remove(p.name()), old.Sync()))
}
