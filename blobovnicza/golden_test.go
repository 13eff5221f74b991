package blobovnicza

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

var update = flag.Bool("update", false, "write the golden files of the current format anew")

const goldenDir = "testdata/golden/v1"

// goldenSizes are the blobs of the golden store: some end on a block, one spans three.
var goldenSizes = []int{0, 1, 100, 4096, blockSize, 2*blockSize + 1, 300, 5}

// writeGolden makes the store: two leaves, sealed files, a put again after a delete, and a void.
func writeGolden(t *testing.T) {
	check(t, os.RemoveAll(goldenDir))
	opts := Options{Create: true, Width: 2, Depth: 1, FileSize: 8 << 10, Owner: []byte("golden")}
	master := t.TempDir()
	s := mustOpen(t, master, opts)
	for n, size := range goldenSizes {
		_, err := s.Put(ctx, addrOf(n), dataOf(n, size))
		check(t, err)
	}
	check(t, s.Delete(ctx, addrOf(1), ""))
	check(t, s.Delete(ctx, addrOf(2), ""))
	_, err := s.Put(ctx, addrOf(2), dataOf(2, goldenSizes[2]))
	check(t, err)
	items := []blobstor.Item{}
	for n := 100; len(items) < 3; n++ { // one commit of three records in one leaf, whose middle is torn
		if s.sortKey(addrOf(n))%uint64(len(s.leaves)) == 0 {
			items = append(items, blobstor.Item{Address: addrOf(n), Data: []byte("torn")})
		}
	}
	check(t, s.PutBatch(ctx, items))
	_, p, _ := parseLocation(items[1].Location)
	check(t, os.CopyFS(goldenDir, os.DirFS(master))) // as a kill leaves it
	flip(t, dataPath(goldenDir, s, items[1].Address, p.file), p.off)
	s = mustOpen(t, goldenDir, opts)
	if s.Stats().Torn != 1 {
		t.Fatalf("stats %+v", s.Stats())
	}
	check(t, s.Close())
}

// Every store of version 1 is read by every later release.
func TestGoldenStore(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	dir := filepath.Join(t.TempDir(), "store")
	check(t, os.CopyFS(dir, os.DirFS(goldenDir)))
	for _, opts := range []Options{{ReadOnly: true}, {Owner: []byte("golden")}} {
		s := mustOpen(t, dir, opts)
		for n, size := range goldenSizes {
			got, err := s.Get(ctx, addrOf(n), "", nil)
			if n == 1 && errors.Is(err, blobstor.ErrNotFound) {
				continue
			}
			if err != nil || !bytes.Equal(got, dataOf(n, size)) {
				t.Errorf("blob %d: %d bytes, %v", n, len(got), err)
			}
		}
		if st := s.Stats(); st.Objects != int64(len(goldenSizes)+1) || st.Lost+int(st.Torn) > 0 || st.Files < 4 {
			t.Errorf("stats %+v", st)
		}
		check(t, s.Close())
	}
}

// The bytes of a record, as the package comment describes them.
func TestGoldenRecord(t *testing.T) {
	seed := fileSeed([16]byte{1, 2, 3}, 4, 5)
	h := header{kind: kindPut, address: addrOf(7), length: 5, synced: 800, commit: 9,
		replaced: place{file: 3, off: 160, length: 77, tombstone: true}}
	b := appendHeader(nil, &h, seed, 1600)
	b = append(b, "hello"...)
	b = appendTrailer(b, &h, []byte("hello"))
	const want = "b147524e01020000" +
		"636f6e7461696e65720000000000000000000000000000000000000000000000" +
		"6f626a6563742037000000000000000000000000000000000000000000000000" +
		"0000000500000064" + "0000000000000009" + "00000003000000148000004d"
	if got := hex.EncodeToString(b[:headerSize-crcSize]); got != want {
		t.Errorf("header\n%s, want\n%s", got, want)
	}
	const rest = "7113f102" + "68656c6c6f" + "c6260ccb" + "00000000000000"
	if got := hex.EncodeToString(b[headerSize-crcSize:]); got != rest {
		t.Errorf("checksum, payload, checksum and padding\n%s, want\n%s", got, rest)
	}
	if got, ok := parseHeader(b, seed, 1600); !ok || got != h {
		t.Errorf("parsed %+v, %v", got, ok)
	}
	for _, other := range []struct {
		seed uint32
		off  int64
	}{{seed + 1, 1600}, {seed, 1608}} {
		if _, ok := parseHeader(b, other.seed, other.off); ok {
			t.Error("a record counts in another place")
		}
	}
}

func TestGoldenLocation(t *testing.T) {
	at := makeLocation(0x0102, place{file: 0x03040506, off: 0x0708090a * align, length: 0x0b0c0d0e})
	if got := hex.EncodeToString([]byte(at)); got != "0102030405060708090a0b0c0d0e" {
		t.Errorf("location %s", got)
	}
}

func TestGoldenSortKey(t *testing.T) {
	if got, want := sortKey([16]byte{1, 2, 3}, addrOf(7)), uint64(0xd667a6edb3434b0c); got != want {
		t.Errorf("sort key %#x, want %#x", got, want)
	}
}
