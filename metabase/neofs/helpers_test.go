package neofs

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/nspcc-dev/neo-go/pkg/crypto/hash"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

var ctx = context.Background()

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantIs(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("got error %v, want %v", err, want)
	}
}

// id returns the n-th ID. It has zero bytes at both ends, where a search for delimiters would stop.
func id(n int) (id blobstor.ID) {
	id[1], id[2], id[30] = byte(n>>8), byte(n), 0xFF
	return id
}

func address(n int) blobstor.Address { return blobstor.Address{Container: id(1), Object: id(n)} }

// owner returns the n-th owner.
func owner(n byte) string {
	b := append([]byte{0x35, n, 0, 0}, make([]byte, 17)...)
	return string(append(b, hash.Checksum(b)...))
}

// msg is a protobuf message that is written.
type msg []byte

func (m msg) num(field int, v uint64) msg {
	return binary.AppendUvarint(binary.AppendUvarint(m, uint64(field)<<3), v)
}

func (m msg) bytes(field int, b string) msg {
	m = binary.AppendUvarint(m, uint64(field)<<3|2)
	return append(binary.AppendUvarint(m, uint64(len(b))), b...)
}

func (m msg) msg(field int, in msg) msg { return m.bytes(field, string(in)) }

func (m msg) id(field int, id blobstor.ID) msg { return m.msg(field, msg(nil).bytes(1, string(id[:]))) }

func (m msg) attr(key, value string) msg { return m.msg(10, msg(nil).bytes(1, key).bytes(2, value)) }

// header returns the header that the tests' objects have, without attributes. Fields may be appended.
func header(objectType, size int) msg {
	return msg(nil).
		msg(1, msg(nil).num(1, 2).num(2, 18)).
		id(2, id(1)).
		msg(3, msg(nil).bytes(1, owner(7))).
		num(4, 1000).
		num(5, uint64(size)).
		msg(6, msg(nil).num(1, 2).bytes(2, string(make([]byte, 32)))).
		num(7, uint64(objectType))
}

// object returns an object with a payload of zeros.
func object(n int, header msg, size int) msg {
	return msg(nil).id(1, id(n)).msg(2, msg(nil).bytes(1, "key").bytes(2, "sign")).msg(3, header).
		bytes(4, string(make([]byte, size)))
}

func records(tb testing.TB, o msg) []metabase.Record {
	tb.Helper()
	recs, err := Records(o, int64(len(o)))
	must(tb, err)
	return recs
}

// world is a database in which the time is an epoch.
type world struct {
	*metabase.DB
	epoch uint64
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{epoch: 1000}
	db, err := metabase.Open(filepath.Join(tb.TempDir(), "meta"), &metabase.Options{
		Create: true, NoSync: true, Epoch: func() uint64 { return w.epoch },
	})
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	w.DB = db
	return w
}

// put stores an object's records and returns that of itself.
func (w *world) put(tb testing.TB, o msg) metabase.Record {
	tb.Helper()
	recs := records(tb, o)
	must(tb, w.Put(ctx, recs...))
	return recs[0]
}

// search follows a search from page to page and returns the numbers of the objects, as id has them.
func (w *world) search(tb testing.TB, s Search) (found []int) {
	tb.Helper()
	for pages := 0; ; pages++ {
		q, err := s.Query()
		must(tb, err)
		page, err := w.Search(ctx, q)
		must(tb, err)
		for _, f := range page.Found {
			found = append(found, int(f.Address.Object[1])<<8|int(f.Address.Object[2]))
		}
		if s.Cursor = Cursor(q, page); s.Cursor == "" {
			return found
		}
		if pages > 100 {
			tb.Fatal("the search has no end")
		}
	}
}

// attr returns the value of an attribute as text, and how often it is there.
func attr(r metabase.Record, key string) (text string, n int) {
	for _, a := range r.Attrs {
		if a.Key == key {
			text, n = Text(key, a.Value), n+1
		}
	}
	return text, n
}

// raw returns the bytes of the n-th ID.
func raw(n int) []byte {
	id := id(n)
	return id[:]
}
