package metabase

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
	"github.com/granary-store/granary/internal/bolt"
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
	w.record(tb, Record{Address: object(1, 1), Size: 300, Location: "here", Attrs: []Attr{
		{"FileName", "cat.jpg", Auto}, {"n", "-12", Auto}, {"n", "+007", Auto}, {"n", "7", Auto}, {"\x00", "a\x00b", Auto}, {"", "", Auto},
		{"raw", "\x00\xff", Opaque}, {"raw", "5", Opaque}, {"hidden", "9", Stored}, {"huge", most.String(), Auto}, {"more", "1" + most.String(), Auto},
	}})
	w.record(tb, Record{Address: object(1, 2), Expires: 100, Attrs: []Attr{{"n", "0", Auto}}})
	w.record(tb, Record{Address: object(1, 3), Expires: 99 + 1<<40})
	w.record(tb, part(1, 4, 0, "split"))
	w.record(tb, part(1, 5, 9, "split"), virtual(1, 9))
	w.record(tb, Record{Address: object(1, 6), Kind: Link, Parent: id(9), Chain: "split"})
	w.record(tb, part(1, 7, 8, ""), Record{Address: object(1, 8), Virtual: true, Size: 1, Attrs: []Attr{{"n", "1", Auto}}})
	w.record(tb, lock(1, 10, 2, 200), lock(1, 11, 77, 0))
	w.record(tb, tombstone(1, 12, 9))
	w.record(tb, Record{Address: object(1, 13), Kind: Tombstone, Target: id(88), Expires: 150, Attrs: []Attr{{"why", "", Auto}}})
	w.put(tb, object(1, 14))
	w.put(tb, object(1, 15))
	must(tb, w.Mark(ctx, Garbage, object(1, 14)))
	must(tb, w.Mark(ctx, Redundant, object(1, 15)))
	w.index(tb)
	for c := 2; c <= 4; c++ { // these are pending
		w.put(tb, object(c, 1), "n", "3")
	}
	must(tb, w.Mark(ctx, Garbage, blobstor.Address{Container: id(2)}))
	must(tb, w.Drop(ctx, id(3)))
	must(tb, w.doOne(ctx, 0, func(t *txn) error { return t.planUnknown(id(4)) })) // what a crash leaves of a Drop
	w.put(tb, object(5, 1), "n", "5")
}

// dump lists all keys of the file with their values, in their order.
func (w *world) dump(tb testing.TB) string {
	tb.Helper()
	var text strings.Builder
	must(tb, w.file.View(func(tx *bolt.Tx) error {
		return tx.Bucket(0).ForEach(func(k, v []byte) error {
			fmt.Fprintf(&text, "%d %s %x: %x\n", k[0], classNames[k[0]], k[1:], v)
			return nil
		})
	}))
	return text.String()
}

// told lists what the database answers.
func (w *world) told(tb testing.TB) string {
	tb.Helper()
	var text strings.Builder
	say := func(what string, answer any, err error) {
		all := fmt.Sprintf("%s: %+v, %v", what, answer, err == nil)
		for n := range 100 {
			all = strings.ReplaceAll(all, id(n).String(), fmt.Sprint("#", n))
		}
		fmt.Fprintf(&text, "%q\n", strings.ReplaceAll(all, blobstor.ID{}.String(), "-"))
	}
	ids, err := w.Containers(ctx)
	say("containers", ids, err)
	for c := 1; c <= 5; c++ {
		counters, err := w.Counters(ctx, id(c))
		say(fmt.Sprint("counters ", c), counters, err)
	}
	for n := 1; n <= 15; n++ {
		w.sayObject(tb, object(1, n), say)
	}
	for _, addr := range []blobstor.Address{object(1, 16), object(1, 77), object(1, 88), object(2, 1), object(3, 1), object(4, 1), object(5, 1)} {
		w.sayObject(tb, addr, say)
	}
	list, err := w.List(ctx, blobstor.Address{}, 100, "n", "raw")
	say("list", list, err)
	for _, epoch := range []uint64{101, 1 << 50} {
		w.epoch = epoch
		expired, err := w.Expired(ctx, blobstor.Address{}, 100)
		say("expired", expired, err)
	}
	w.epoch = 100
	for _, q := range []Query{
		{}, where("n", GE, least.String()), where("n", LT, "7"), where("n", NE, "0"), where("", EQ, ""), where("raw", Prefix, ""), where("raw", GT, "0"),
		where("hidden", EQ, "9"), where("huge", EQ, most.String()), where("more", GT, "0"), where("\x00", Prefix, "a\x00"), where("n", Absent, ""),
	} {
		for _, q.AnyStatus = range []bool{false, true} {
			q.Container = id(1)
			p, err := w.Search(ctx, q)
			say(fmt.Sprintf("search %q %v", q.Filters, q.AnyStatus), p.Found, err)
		}
	}
	return text.String()
}

func (w *world) sayObject(tb testing.TB, addr blobstor.Address, say func(what string, answer any, err error)) {
	tb.Helper()
	s, err := w.Status(ctx, addr)
	say(fmt.Sprint("status ", addr), s, err)
	r, err := w.Get(ctx, addr)
	say("record", r, err)
}

// sameText compares with a golden file, or writes it.
func sameText(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
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
	w := newWorld(t, Options{Ballast: -1, Owner: []byte("golden"), pending: 1 << 20})
	fillGolden(t, w)
	sameText(t, goldenKeys, w.dump(t))
	if !*update {
		return
	}
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
	w := &world{dir: filepath.Join(t.TempDir(), "meta"), epoch: 100}
	must(t, os.CopyFS(w.dir, os.DirFS(goldenDir)))
	for _, o := range []Options{{ReadOnly: true}, {Owner: []byte("golden"), Ballast: -1}} {
		w.opts = o
		w.opts.Epoch = func() uint64 { return w.epoch }
		w.reopen(t)
		w.check(t)
		if o.ReadOnly {
			sameText(t, goldenKeys, w.dump(t)) // A later version migrates when it opens for writing.
		}
		sameText(t, goldenAnswers, w.told(t))
	}
	w.put(t, object(6, 1), "n", "6")
	w.removed(t)
	w.check(t)
	for c := range 7 {
		must(t, w.Drop(ctx, id(c)))
	}
	w.wantNoKeys(t)
	w.check(t)
	must(t, w.Close())
}
