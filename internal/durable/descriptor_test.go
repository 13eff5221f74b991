package durable

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

var writeGolden = flag.Bool("golden", false, "write the golden files of a format version that is about to be frozen")

// golden is the descriptor of testdata/golden/descriptor-v1.
func golden() Descriptor {
	d := Descriptor{Kind: "sixteen-letters!", Format: 0x0102, Shape: [4]uint32{1, 2, 0xfffffffe, 0}, Owner: []byte("owner")}
	for i := range d.ID {
		d.ID[i] = byte(0xa0 + i)
	}
	return d
}

func TestGoldenDescriptor(t *testing.T) {
	path := filepath.Join("testdata", "golden", "descriptor-v1")
	d := golden()
	if *writeGolden {
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, d.encode(), 0o644))
	}
	b, err := os.ReadFile(path)
	check(t, err)
	got, err := decodeDescriptor(b)
	check(t, err)
	if !reflect.DeepEqual(got, d) || !bytes.Equal(d.encode(), b) {
		t.Fatalf("got %+v", got)
	}
}

func TestDescriptorLimits(t *testing.T) {
	for _, d := range []Descriptor{
		{}, {Kind: "seventeen-letters"}, {Kind: "zero\x00"}, {Kind: "x", Owner: make([]byte, MaxOwner+1)},
	} {
		if d.check() == nil {
			t.Errorf("%+v can be stored", d)
		}
	}
	full := Descriptor{Kind: "x", Owner: bytes.Repeat([]byte{0}, MaxOwner)}
	got, err := decodeDescriptor(full.encode())
	check(t, err)
	if !bytes.Equal(got.Owner, full.Owner) {
		t.Fatalf("owner %x", got.Owner)
	}
}

func FuzzDescriptor(f *testing.F) {
	d := golden()
	f.Add(d.encode())
	f.Add([]byte("granary\x00\x02"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDescriptor(b)
		switch {
		case err != nil && !errors.Is(err, blobstor.ErrLayout):
			t.Fatal(err)
		case err == nil && !bytes.Equal(d.encode(), b):
			t.Fatal("a descriptor has two forms")
		}
	})
}
