package fstree

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		p := place{addr: address(n), key: rng.Uint64()}
		for depth := 0; depth <= maxDepth; depth++ {
			key := p.dir(depth)
			if key.level() != depth || p.key < key.first() || p.key > key.last() {
				t.Fatalf("key %x is not below directory %x", p.key, key)
			}
			if depth > 0 && key.parent() != p.dir(depth-1) {
				t.Fatalf("the parent of %x is %x", key, key.parent())
			}
			if b := byte(p.key >> (56 - 8*depth)); depth < maxDepth && key.child(b) != p.dir(depth+1) {
				t.Fatalf("child %x of %x is %x", b, key, key.child(b))
			}
		}
		if at := location(p.key); len(at) > blobstor.MaxInnerLocation || locationKey(at) != p.key {
			t.Fatalf("location %q", at)
		}
	}
}

func TestLevelName(t *testing.T) {
	for b := range 256 {
		got, ok := parseLevel(levelName(byte(b)))
		if !ok || got != byte(b) {
			t.Fatalf("%d: %d, %v", b, got, ok)
		}
	}
	for _, name := range []string{"", "0", "000", "0x", "AB", "+1", "-1", "g0", " 1"} {
		if _, ok := parseLevel(name); ok {
			t.Errorf("%q is a level", name)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	good := place{addr: address(1)}.name()
	for _, name := range []string{"", good[1:], good + "0", strings.ToUpper(good), good[:127] + "g", "tmp-" + good[4:]} {
		if _, ok := parseName(name); ok {
			t.Errorf("%q is a name", name)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add(place{addr: address(1)}.name())
	f.Add(strings.Repeat("0", 128))
	f.Add("DESCRIPTOR")
	f.Fuzz(func(t *testing.T, name string) {
		addr, ok := parseName(name)
		if ok && (place{addr: addr}).name() != name {
			t.Fatalf("%q is not its only name", name)
		}
		if b, ok := parseLevel(name); ok && levelName(b) != name {
			t.Fatalf("level %q", name)
		}
	})
}
