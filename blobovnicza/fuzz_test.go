package blobovnicza

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// Whatever a header says, it is refused or means what it would be written as.
func FuzzRecord(f *testing.F) {
	h := header{kind: kindPut, address: addrOf(1), length: 5, synced: 8, commit: 3, replaced: place{1, 16, 4, true}}
	f.Add(appendHeader(nil, &h, 7, 24), uint32(7), uint32(3), true)
	f.Add([]byte(recordMagic), uint32(0), uint32(0), false)
	f.Fuzz(func(t *testing.T, b []byte, seed, at uint32, sign bool) {
		off := int64(at) * align
		if sign && len(b) >= headerSize { // get past the checksum
			binary.BigEndian.PutUint32(b[headerSize-crcSize:], headerCRC(b, seed, off))
		}
		h, ok := parseHeader(b, seed, off)
		if !ok {
			return
		}
		if h.size() < headerSize || h.size()%align != 0 {
			t.Errorf("size %d", h.size())
		}
		if again := appendHeader(nil, &h, seed, off); !bytes.Equal(again, b[:headerSize]) {
			t.Errorf("%x is written as %x", b[:headerSize], again)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add(appendManifest(nil, []listed{{1, 2, 1, 0, 1000, 80, 24}, {2, 5, 0, 0, unknownEnd, 0, 0}}), uint32(3))
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, number uint32) {
		files, ok := parseManifest(b, number)
		if ok && !bytes.Equal(appendManifest(nil, files), b) {
			t.Errorf("%x is written as %x", b, appendManifest(nil, files))
		}
	})
}

func FuzzLocation(f *testing.F) {
	f.Add(string(makeLocation(1, place{file: 2, off: 24, length: 4})))
	f.Add("garbage")
	f.Fuzz(func(t *testing.T, s string) {
		leaf, p, ok := parseLocation(blobstor.Location(s))
		if ok && string(makeLocation(leaf, p)) != s {
			t.Errorf("%x is %d, %+v", s, leaf, p)
		}
	})
}

func FuzzDataName(f *testing.F) {
	f.Add(dataName(1))
	f.Add("0000000G.blz")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseDataName(s); ok && dataName(n) != s {
			t.Errorf("%q is %d", s, n)
		}
	})
}

// A data file of any content opens, reads and takes writes. Writing is slow, so only some inputs do it.
func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	smallStore(f, dir, 3)
	path := dataFiles(f, dir)[0]
	whole, err := os.ReadFile(path)
	check(f, err)
	f.Add(whole, uint16(0), []byte{}, true)
	f.Add(whole, uint16(300), []byte("overwritten"), true)
	f.Add([]byte{}, uint16(0), []byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, at uint16, patch []byte, write bool) {
		b = slices.Clone(b)
		if int(at) < len(b) {
			copy(b[at:], patch)
		}
		check(t, os.WriteFile(path, b, 0o600))
		s, err := Open(dir, &Options{ReadOnly: !write, NoSync: write})
		check(t, err)
		defer s.Close()
		for n := range 3 {
			if got, err := s.Get(ctx, addrOf(n), "", nil); err == nil && !bytes.Equal(got, dataOf(n, n*37%300)) {
				t.Errorf("blob %d comes back wrong", n)
			}
		}
		for range s.All(ctx, "") {
		}
		if !write {
			return
		}
		_, err = s.Put(ctx, addrOf(9), []byte("new"))
		check(t, err)
		expect(t, s, 9, []byte("new"))
		for _, other := range dataFiles(t, dir) {
			if other != path {
				check(t, os.Remove(other))
			}
		}
	})
}
