package neofs

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// golden is an object written out by hand, field by field.
var golden = strings.Join([]string{
	"0a220a20" + strings.Repeat("11", 32),                     // object_id
	"1207" + "0a0162" + "12021234",                            // signature
	"1a8701",                                                  // header
	"0a04" + "0802" + "1012",                                  // version 2.18
	"12220a20" + strings.Repeat("22", 32),                     // container_id
	"1a1b0a19" + "35" + strings.Repeat("00", 20) + "e46cd1d8", // owner_id
	"20ac02", // creation_epoch 300
	"2803",   // payload_length
	"32240802" + "1220" + strings.Repeat("33", 32), // payload_hash
	"3800", // object_type
	"52110a08" + hex.EncodeToString([]byte("FileName")) + "1205" + hex.EncodeToString([]byte("a.txt")), // attribute
	"2203" + "010203", // payload
}, "")

func TestGolden(t *testing.T) {
	o, err := hex.DecodeString(golden)
	must(t, err)
	got, err := Parse(blobstor.Info{Size: int64(len(o))}, bytes.NewReader(o))
	must(t, err)
	opaque := func(k, v string) metabase.Attr { return metabase.Attr{Key: k, Value: v, Mode: metabase.Opaque} }
	want := []metabase.Record{{
		Address: blobstor.Address{Container: blobstor.ID([]byte(strings.Repeat("\x22", 32))), Object: blobstor.ID([]byte(strings.Repeat("\x11", 32)))},
		Size:    3,
		Attrs: []metabase.Attr{
			opaque("$Object:version", "v2.18"),
			opaque("$Object:ownerID", "\x35"+strings.Repeat("\x00", 20)+"\xe4\x6c\xd1\xd8"),
			opaque("$Object:payloadHash", strings.Repeat("\x33", 32)),
			opaque("$Object:objectType", "REGULAR"),
			{Key: "$Object:creationEpoch", Value: "300"},
			{Key: "$Object:payloadLength", Value: "3"},
			opaque("$Object:ROOT", "1"),
			{Key: "FileName", Value: "a.txt"},
			opaque("$Object:PHY", "1"),
		},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestKinds(t *testing.T) {
	for n, want := range []metabase.Kind{metabase.Regular, metabase.Tombstone, metabase.Regular, metabase.Lock, metabase.Link} {
		r := records(t, object(10, header(n, 5).attr(Associate, id(3).String()), 5))[0]
		target := blobstor.ID{}
		if want == metabase.Tombstone || want == metabase.Lock {
			target = id(3)
		}
		if r.Kind != want || r.Target != target || r.Size != 5 || r.Virtual {
			t.Errorf("type %d: %+v", n, r)
		}
		if r.Attrs[len(r.Attrs)-2].Mode != metabase.Opaque {
			t.Errorf("type %d: %s is searched as a number", n, Associate)
		}
		if text, _ := attr(r, Associate); text != id(3).String() {
			t.Errorf("type %d is associated with %s", n, text)
		}
		_, roots := attr(r, Root)
		if _, phys := attr(r, Phy); phys != 1 || (roots == 1) != (n == 0) {
			t.Errorf("type %d: %d times %s, %d times %s", n, roots, Root, phys, Phy)
		}
	}
}

// TestLinks: only a regular object that lists children is a link by that.
func TestLinks(t *testing.T) {
	for n, want := range []metabase.Kind{metabase.Link, metabase.Tombstone, metabase.Regular, metabase.Lock, metabase.Link} {
		h := header(n, 0).attr(Associate, id(3).String()).msg(11, msg(nil).id(5, id(11)).bytes(6, uuidBytes))
		if r := records(t, object(10, h, 0))[0]; r.Kind != want {
			t.Errorf("type %d is a %v", n, r.Kind)
		}
	}
}

// TestExpiration: an epoch that is no number must not stop anything (bug 7).
func TestExpiration(t *testing.T) {
	for text, want := range map[string]uint64{
		"15": 15, "0": 1, "1": 1, "007": 7, "18446744073709551615": 1<<64 - 1, "18446744073709551616": 0,
		"": 0, "-1": 0, "+5": 0, "1_000": 0, " 5": 0, "'or'1'='1": 0, "1e3": 0,
	} {
		r := records(t, object(10, header(0, 0).attr(Expiration, text), 0))[0]
		if got, _ := attr(r, Expiration); r.Expires != want || got != text {
			t.Errorf("%q: expires %d, want %d; the attribute is %q", text, r.Expires, want, got)
		}
	}
}

func TestGarbageExpirationStopsNothing(t *testing.T) {
	w := newWorld(t)
	w.put(t, object(2, header(0, 0).attr(Expiration, "'or'1'='1"), 0))
	w.put(t, object(3, header(0, 0).attr(Expiration, "1000"), 0))
	w.epoch = 1001
	found, err := w.Expired(ctx, blobstor.Address{}, 10)
	must(t, err)
	if len(found) != 1 || found[0].Address != address(3) {
		t.Errorf("expired: %v", found)
	}
	if ok, err := w.Exists(ctx, address(2)); !ok || err != nil {
		t.Errorf("the object without an epoch: %v, %v", ok, err)
	}
}

func TestReservedAttributes(t *testing.T) {
	h := header(1, 0).attr(Root, "1").attr(Owner, owner(9)).attr("$Object:new", "x").attr(ecHashes, "h").attr(Associate, id(3).String())
	r := records(t, object(10, h, 0))[0]
	for _, key := range []string{Root, "$Object:new", ecHashes} {
		if _, n := attr(r, key); n != 0 {
			t.Errorf("%s is there", key)
		}
	}
	if text, n := attr(r, Owner); n != 1 || text != Text(Owner, owner(7)) {
		t.Errorf("%d owners, %s", n, text)
	}
}

// TestWideAttributes: no attribute is too wide or too odd for the index (bugs 18, 19 and 20).
func TestWideAttributes(t *testing.T) {
	w := newWorld(t)
	h := header(0, 0).attr("n", "1"+strings.Repeat("0", 100)).attr("zero\x00", "\x00a\x00").attr("", "")
	r := w.put(t, object(0, h, 0)) // an ID of zeros but for one byte
	if r.Address.Object != id(0) {
		t.Fatal(r.Address)
	}
	for _, f := range []Filter{{"n", 4, "10"}, {"zero\x00", 1, "\x00a\x00"}, {"", 1, ""}, {Owner, 1, Text(Owner, owner(7))}} {
		got := w.search(t, Search{Container: id(1), Filters: []Filter{f}, Attrs: []string{f.Key}})
		if len(got) != 1 {
			t.Errorf("%q finds %v", f.Key, got)
		}
	}
	must(t, w.Mark(ctx, metabase.Garbage, address(0)))
	n, err := w.Collect(ctx, 10, func(_ context.Context, items []blobstor.Item) error { return nil })
	if n != 1 || err != nil {
		t.Errorf("collected %d, %v", n, err)
	}
	must(t, w.Check(ctx))
}

func TestInvalidObjects(t *testing.T) {
	h := header(0, 3)
	whole := object(10, h, 3)
	split := func(in msg) msg { return object(10, header(0, 3).msg(11, in), 3) }
	deep := header(0, 3)
	for range 2 {
		deep = header(0, 3).msg(11, msg(nil).id(1, id(len(deep))).msg(4, deep))
	}
	for name, o := range map[string]msg{
		"empty":                  {},
		"no ID":                  msg(nil).msg(3, h).bytes(4, "abc"),
		"zero ID":                msg(nil).id(1, blobstor.ID{}).msg(3, h).bytes(4, "abc"),
		"short ID":               msg(nil).msg(1, msg(nil).bytes(1, "short")).msg(3, h).bytes(4, "abc"),
		"no header":              msg(nil).id(1, id(10)).bytes(4, "abc"),
		"no container":           object(10, msg(nil).num(5, 3), 3),
		"header behind payload":  msg(nil).id(1, id(10)).bytes(4, "abc").msg(3, h),
		"header too large":       object(10, header(0, 3).attr("a", strings.Repeat("x", maxHeader)), 3),
		"payload shorter":        object(10, h, 2),
		"payload longer":         object(10, h, 4),
		"payload without length": append(msg(nil).id(1, id(10)).msg(3, header(0, 0)), 4<<3|2),
		"payload missing":        msg(nil).id(1, id(10)).msg(3, h),
		"bytes behind":           append(bytes.Clone(whole), 0),
		"negative payload":       object(10, header(0, 3).num(5, 1<<63), 3),
		"unknown type":           object(10, header(5, 3), 3),
		"tombstone of nothing":   object(10, header(1, 3), 3),
		"lock of no ID":          object(10, header(3, 3).attr(Associate, "cat"), 3),
		"owner's checksum":       object(10, header(0, 3).msg(3, msg(nil).bytes(1, owner(7)[:24]+"!")), 3),
		"short owner":            object(10, header(0, 3).msg(3, msg(nil).bytes(1, "me")), 3),
		"short checksum":         object(10, header(0, 3).msg(6, msg(nil).bytes(2, "short")), 3),
		"short split ID":         split(msg(nil).bytes(6, "short")),
		"long split ID":          split(msg(nil).bytes(6, strings.Repeat("x", 17))),
		"short parent":           split(msg(nil).msg(1, msg(nil).bytes(1, "short"))),
		"wire type 3":            object(10, append(header(0, 3), 12<<3|3), 3),
		"attribute that is cut":  object(10, header(0, 3).bytes(10, "\x0a\x05ab"), 3),
		"number without an end":  object(10, append(header(0, 3), 0x20, 0xFF), 3),
		"number of eleven bytes": object(10, append(header(0, 3), "\x20\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"...), 3),
		"part of part of part":   object(10, deep.msg(11, msg(nil).id(1, id(1)).msg(4, deep)), 3),
		"parent header damaged":  split(msg(nil).id(1, id(5)).bytes(4, "\x0a\x05")),
	} {
		recs, err := Records(o, int64(len(o)))
		if !errors.Is(err, metabase.ErrRecord) || recs != nil || blobstor.IsFault(err) {
			t.Errorf("%s: %v, %v", name, recs, err)
		}
	}
	// Where the size is not known, the header alone decides.
	if recs, err := Records(object(10, header(0, 3).num(5, 1<<63), 3), -1); !errors.Is(err, metabase.ErrRecord) {
		t.Errorf("a negative payload: %v, %v", recs, err)
	}
}

// TestTruncated: an object that was cut is refused wherever that was (bug 60).
func TestTruncated(t *testing.T) {
	o := object(10, header(0, 300).attr("a", "b"), 300)
	for n := range len(o) {
		if recs, err := Records(o[:n], int64(n)); !errors.Is(err, metabase.ErrRecord) {
			t.Fatalf("%d of %d bytes: %v, %v", n, len(o), recs, err)
		}
	}
	// A prefix of a whole one is fine.
	if _, err := Records(o[:len(o)-299], int64(len(o))); err != nil {
		t.Error(err)
	}
	if _, err := Records(o[:len(o)-299], -1); err != nil {
		t.Error(err)
	}
}

type readerAt func(p []byte, off int64) (int, error)

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

// TestParseReadsLittle: one read of 20 KiB, and an error of the disk is that.
func TestParseReadsLittle(t *testing.T) {
	o := object(10, header(0, 1<<20).attr("a", strings.Repeat("x", 15<<10)), 1<<20)
	reads := 0
	r := readerAt(func(p []byte, off int64) (int, error) {
		if reads++; len(p) > prefixSize || off != 0 {
			t.Errorf("read of %d bytes at %d", len(p), off)
		}
		return copy(p, o[off:]), nil
	})
	recs, err := Parse(blobstor.Info{Size: int64(len(o))}, r)
	if err != nil || len(recs) != 1 || recs[0].Size != 1<<20 || reads != 1 {
		t.Errorf("%v, %v, %d reads", recs, err, reads)
	}
	broken := errors.New("broken disk")
	_, err = Parse(blobstor.Info{}, readerAt(func([]byte, int64) (int, error) { return 0, broken }))
	wantIs(t, err, broken)
	if errors.Is(err, metabase.ErrRecord) {
		t.Error("a read error is not one of the object")
	}
	_, err = Parse(blobstor.Info{Size: 4}, readerAt(func([]byte, int64) (int, error) { return 0, io.EOF }))
	wantIs(t, err, metabase.ErrRecord)
}

// TestRecordsKeepNothing: what was read may be overwritten.
func TestRecordsKeepNothing(t *testing.T) {
	o := object(10, header(0, 3).attr("a", "value").msg(11, msg(nil).id(1, id(9)).msg(4, header(0, 9)).id(7, id(8))), 3)
	got, want := records(t, o), records(t, bytes.Clone(o))
	clear(o)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestUnknownFields are passed over, whatever their wire type.
func TestUnknownFields(t *testing.T) {
	h := header(0, 3).num(99, 5).bytes(98, "what").bytes(4, "not a number").num(2, 5)
	h = append(h, 12<<3|1, 1, 2, 3, 4, 5, 6, 7, 8)
	h = append(h, 12<<3|5, 1, 2, 3, 4)
	r := records(t, object(10, h, 3))[0]
	if text, _ := attr(r, CreationEpoch); text != "1000" || r.Address != address(10) {
		t.Errorf("%+v", r)
	}
}

// TestFieldsTwice: the last one counts, as everywhere in protobuf, in the record and in the index.
func TestFieldsTwice(t *testing.T) {
	again := msg(nil).id(1, id(8)).id(1, id(9)).id(7, id(5)).id(7, id(6)).bytes(6, strings.Repeat("x", 16)).bytes(6, uuidBytes)
	h := header(0, 9).num(5, 3).num(4, 5).msg(3, msg(nil).bytes(1, owner(8))).msg(11, again)
	r := records(t, object(10, h, 3))[0]
	if r.Size != 3 || r.Parent != id(9) || r.Chain != uuidBytes {
		t.Errorf("%+v", r)
	}
	for key, want := range map[string]string{
		SplitParent: id(9).String(), SplitFirst: id(6).String(), SplitID: Text(SplitID, uuidBytes),
		CreationEpoch: "5", PayloadLength: "3", Owner: Text(Owner, owner(8)),
	} {
		if text, n := attr(r, key); text != want || n != 1 {
			t.Errorf("%s is %d times there: %s", key, n, text)
		}
	}
}

// TestSplitInPieces: a message that comes in pieces is one, as everywhere in protobuf.
func TestSplitInPieces(t *testing.T) {
	h := header(0, 3).msg(11, msg(nil).id(1, id(9)).id(7, id(5))).msg(11, msg(nil).msg(4, header(0, 9)).id(7, id(8)))
	recs := records(t, object(10, h, 3))
	if len(recs) != 2 || recs[0].Parent != id(9) || recs[0].Chain != string(raw(8)) || recs[1].Address != address(9) {
		t.Errorf("%+v", recs)
	}
}

func FuzzRecords(f *testing.F) {
	whole, _ := hex.DecodeString(golden)
	f.Add(whole, int64(len(whole)))
	part := object(10, header(0, 3).attr(ECRule, "0").msg(11, msg(nil).id(1, id(9)).msg(4, header(0, 9))), 3)
	f.Add([]byte(part), int64(-1))
	f.Add([]byte(object(10, header(3, 0).attr(Associate, id(3).String()), 0)), int64(5))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		recs, err := Records(b, size)
		if err != nil {
			wantIs(t, err, metabase.ErrRecord)
			return
		}
		if len(recs) == 0 || len(recs) > 1+maxParents || recs[0].Virtual {
			t.Fatalf("%+v", recs)
		}
		for _, r := range recs {
			for _, a := range r.Attrs {
				if v, ok := Value(a.Key, Text(a.Key, a.Value)); ok && v != a.Value {
					t.Errorf("%q: %q reads %q, which is %q", a.Key, a.Value, Text(a.Key, a.Value), v)
				}
			}
			if n, _ := attr(r, PayloadLength); n != strconv.FormatInt(r.Size, 10) {
				t.Errorf("size %d, length %s", r.Size, n)
			}
		}
	})
}
