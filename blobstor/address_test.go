package blobstor_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestID(t *testing.T) {
	for _, test := range []struct {
		id   blobstor.ID
		text string
	}{
		{blobstor.ID{}, strings.Repeat("1", 32)},
		{blobstor.ID{31: 1}, strings.Repeat("1", 31) + "2"},
		{blobstor.ID{0: 0xff, 31: 0xff}, "JAQxrJ2WuDF4APfSifurJJ4HzV5Z3FyBuBeSMj7mo9fL"},
	} {
		if got := test.id.String(); got != test.text {
			t.Errorf("String of %x: %q, want %q", test.id[:], got, test.text)
		}
		got, err := blobstor.ParseID(test.id.String())
		if err != nil || got != test.id {
			t.Errorf("ParseID(%q): %v, %v", test.id.String(), got, err)
		}
	}
	if !(blobstor.ID{}).IsZero() || (blobstor.ID{5: 1}).IsZero() {
		t.Errorf("IsZero is wrong")
	}
}

func TestParseIDRefuses(t *testing.T) {
	whole := blobstor.ID{0: 0xff}.String()
	for name, s := range map[string]string{
		"empty": "", "short": strings.Repeat("1", 31), "long": strings.Repeat("1", 33),
		"no digit": whole[:len(whole)-1] + "0", "space": " " + whole, "too large": strings.Repeat("z", 44),
		"endless": strings.Repeat("z", 1<<20), "not ASCII": strings.Repeat("é", 20),
	} {
		if id, err := blobstor.ParseID(s); err == nil || !id.IsZero() {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}

func TestAddressForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var a, b, c blobstor.Address
		for i := range a.Container {
			// Small values make leading zeros, the special case of base58.
			a.Container[i], a.Object[i] = byte(rng.IntN(256)>>rng.IntN(9)), byte(rng.IntN(256)>>rng.IntN(9))
		}
		parsed, err := blobstor.ParseAddress(a.String())
		if err != nil || parsed != a {
			t.Fatalf("ParseAddress(%q): %v, %v", a, parsed, err)
		}
		bin, _ := a.AppendBinary([]byte("x"))
		if parsed, err = blobstor.AddressFromBytes(bin[1:]); err != nil || parsed != a || bin[0] != 'x' {
			t.Fatalf("AddressFromBytes: %v, %v", parsed, err)
		}
		text, err := json.Marshal(struct {
			A blobstor.Address
			I blobstor.ID
		}{a, a.Object})
		must(t, err)
		var back struct {
			A blobstor.Address
			I blobstor.ID
		}
		must(t, json.Unmarshal(text, &back))
		if b, c.Object = back.A, back.I; b != a || c.Object != a.Object {
			t.Fatalf("through JSON: %v, %v", b, c)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	id := blobstor.ID{0: 0xff}.String()
	for _, s := range []string{"", "/", id, id + "/", "/" + id, id + "/" + id + "/", id + "//" + id, id + " / " + id} {
		if a, err := blobstor.ParseAddress(s); err == nil || !a.IsZero() {
			t.Errorf("ParseAddress(%q): %v, %v", s, a, err)
		}
		if err := new(blobstor.Address).UnmarshalText([]byte(s)); err == nil {
			t.Errorf("UnmarshalText(%q): no error", s)
		}
	}
	for _, n := range []int{0, 63, 65} {
		if _, err := blobstor.AddressFromBytes(make([]byte, n)); err == nil {
			t.Errorf("AddressFromBytes of %d bytes: no error", n)
		}
	}
}

func TestCompare(t *testing.T) {
	sorted := []blobstor.Address{
		{}, {Object: blobstor.ID{31: 1}}, {Object: blobstor.ID{0: 1}}, {Object: blobstor.ID{0: 0xff}},
		{Container: blobstor.ID{31: 1}}, {Container: blobstor.ID{0: 1}, Object: blobstor.ID{0: 1}},
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := a.Compare(b), min(max(i-j, -1), 1); got != want {
				t.Errorf("Compare of %d and %d: %d, want %d", i, j, got, want)
			}
		}
	}
}
