package durable

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestReadVec(t *testing.T) {
	d, err := OpenDir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.WriteFile("f", []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	f, err := d.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, b, c := make([]byte, 2), []byte{}, make([]byte, 5)
	if err := f.ReadVec([][]byte{a, b, c}, 3); err != nil || string(a) != "34" || string(c) != "56789" {
		t.Errorf("%q, %q, %v", a, c, err)
	}
	if err := f.ReadVec([][]byte{a, c}, 4); !errors.Is(err, io.EOF) {
		t.Errorf("past the end: %v, want io.EOF", err)
	}
	if err := f.f.readEach([][]byte{a, c}, 0); err != nil || !bytes.Equal(append(a, c...), []byte("0123456")) {
		t.Errorf("%q, %q, %v", a, c, err)
	}
}
