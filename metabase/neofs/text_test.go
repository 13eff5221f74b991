package neofs

import (
	"strings"
	"testing"

	"github.com/nspcc-dev/neo-go/pkg/io"

	"github.com/granary-store/granary/blobstor"
)

func TestTexts(t *testing.T) {
	hash := strings.Repeat("\x00\xAB", 16)
	split := "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
	parent := id(3)
	for _, c := range []struct{ key, value, text string }{
		{SplitParent, string(parent[:]), parent.String()},
		{SplitFirst, string(parent[:]), parent.String()},
		{Associate, string(parent[:]), parent.String()},
		{PayloadHash, hash, strings.Repeat("00ab", 16)},
		{SplitID, split, "00010203-0405-0607-0809-0a0b0c0d0e0f"},
		{Owner, "\x35" + strings.Repeat("\x00", 20) + "\xe4\x6c\xd1\xd8", "NKuyBkoGdZZSLyPbJEetheRhMjeznFZszf"},
		{Version, "v2.18", "v2.18"},
		{ObjectType, "TOMBSTONE", "TOMBSTONE"},
		{CreationEpoch, "007", "007"},
		{"user\x00key", "\xff\x00", "\xff\x00"},
	} {
		if text := Text(c.key, c.value); text != c.text {
			t.Errorf("%s reads %q, want %q", c.key, text, c.text)
		}
		if value, ok := Value(c.key, c.text); value != c.value || !ok {
			t.Errorf("%s of %q is %q, %v", c.key, c.text, value, ok)
		}
	}
	if value, ok := Value(PayloadHash, strings.Repeat("00AB", 16)); value != hash || !ok {
		t.Errorf("capital digits: %q, %v", value, ok)
	}
}

// TestBinaryTexts: what a binary attribute reads as is text, and only its own text is read (bug 43).
func TestBinaryTexts(t *testing.T) {
	for key, texts := range map[string][]string{
		SplitParent: {"", "cat", strings.Repeat("1", 31), strings.Repeat("1", 33), "0OIl", strings.Repeat("z", 1<<16)},
		PayloadHash: {"", "00", strings.Repeat("00ab", 16) + "0", strings.Repeat("00-b", 16), strings.Repeat("0g", 32)},
		SplitID: {
			"", "00010203040506070809-0a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0f", "{00010203-0405-0607-0809-0a0b0c0d0e0f}",
			"0001020-30405-0607-0809-0a0b0c0d0e0f", "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f",
		},
		Owner:        {"", "N", "NKuyBkoGdZZSLyPbJEetheRhMjeznFZszg", Text(Owner, owner(1))[1:], strings.Repeat("N", 1<<16)},
		"$Object:no": {"", "x"},
	} {
		for _, text := range texts {
			if value, ok := Value(key, text); ok {
				t.Errorf("%s of %.40q is %q", key, text, value)
			}
		}
	}
	for _, key := range []string{SplitParent, PayloadHash, SplitID, Owner} {
		if text := Text(key, "odd"); text != "odd" {
			t.Errorf("%s of another size reads %q", key, text)
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add(uint8(0), "cat")
	f.Add(uint8(1), Text(Owner, owner(1)))
	f.Fuzz(func(t *testing.T, n uint8, s string) {
		key := []string{SplitParent, Owner, PayloadHash, SplitID, Version, "a"}[n%6]
		value, ok := Value(key, s)
		if ok && !strings.EqualFold(Text(key, value), s) {
			t.Errorf("%s of %q is %q and reads %q", key, s, value, Text(key, value))
		}
		Text(key, s)
	})
}

func TestAddress(t *testing.T) {
	a := Address(address(5))
	w := io.NewBufBinWriter()
	a.EncodeBinary(w.BinWriter)
	must(t, w.Err)
	b := w.Bytes()
	if got, err := blobstor.AddressFromBytes(b); got != address(5) || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	var got Address
	r := io.NewBinReaderFromBuf(b)
	got.DecodeBinary(r)
	if got != a || r.Err != nil || r.Len() != 0 {
		t.Errorf("%v, %v, %d bytes left", got, r.Err, r.Len())
	}
	for n := range b {
		r := io.NewBinReaderFromBuf(b[:n])
		if new(Address).DecodeBinary(r); r.Err == nil {
			t.Errorf("%d of %d bytes are an address", n, len(b))
		}
	}
}
