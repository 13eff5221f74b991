package pilorama

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzEntry: whatever bytes a log entry has, it is read or refused; what was read is written and read again.
func FuzzEntry(f *testing.F) {
	meta := appendMeta(nil, named("a", "b", "c"))
	for _, e := range []entry{
		{},
		{move: move{1, Root, 2, meta}, done: true},
		{move: move{9, Trash, 2, nil}, done: true, had: true, before: place{3, 4, meta}},
	} {
		f.Add(uint64(9), e.appendTo(nil))
	}
	f.Fuzz(func(t *testing.T, time uint64, b []byte) {
		e, err := parseEntry(time, b)
		if err != nil {
			return
		}
		again, err := parseEntry(time, e.appendTo(nil))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v, %v, want %+v", again, err, e)
		}
		if _, err := e.unpack(); err != nil && len(e.meta) == 0 {
			t.Error(err)
		}
	})
}

// FuzzRecord likewise for records.
func FuzzRecord(f *testing.F) {
	f.Add((&record{place{1, 2, appendMeta(nil, named("a"))}, 1}).appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		again, err := parseRecord(r.appendTo(nil))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v, %v, want %+v", again, err, r)
		}
	})
}

// FuzzMeta: attributes are read or refused, and the name within them is the one that a node tells.
func FuzzMeta(f *testing.F) {
	f.Add(appendMeta(nil, named("a", "b", "c")))
	f.Add(appendMeta(nil, []Attr{{"x", ""}, {FileName, "y"}, {FileName, "z"}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		attrs, err := parseMeta(b)
		name, kind := nameIn(b)
		if err != nil {
			return
		}
		n := Node{ID: 5, Birth: 7, Meta: attrs}
		if n.Name() != string(name) || kind == plain != (len(attrs) == 1 && attrs[0].Key == FileName) {
			t.Errorf("name %q and %q, kind %d of %q", n.Name(), name, kind, attrs)
		}
		key := number(1).childKey(nil, 5, &record{place{3, 8, b}, 7})
		if at, id, err := childOf(key); err != nil || id != 5 || at != n.Position() {
			t.Errorf("position %x of node %d, %v, want %x", at, id, err, n.Position())
		}
		again, err := parseMeta(appendMeta(nil, attrs))
		if err != nil || !reflect.DeepEqual(again, attrs) {
			t.Errorf("%q, %v, want %q", again, err, attrs)
		}
	})
}

// FuzzCursor: a cursor is refused, or one that is written as it was read.
func FuzzCursor(f *testing.F) {
	at := (&Node{ID: 5, Meta: named("a")}).Position()
	f.Add((&frame{parent: 5, at: at, up: &frame{parent: 0, at: at, depth: 1}, depth: 2}).encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCursor(b)
		if err != nil {
			return
		}
		again, err := parseCursor(c.encode(nil))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v, %v, want %+v", again, err, c)
		}
	})
}

// FuzzKeys: names sort within keys as they do by themselves, and children of one name are together.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"))
	f.Add([]byte("\x00\x01"), []byte("\x00"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := number(1).namedKey(nil, 9, a), number(1).namedKey(nil, 9, b)
		if bytes.Compare(x, y) != bytes.Compare(a, b) {
			t.Errorf("%x and %x sort as %d", a, b, bytes.Compare(x, y))
		}
		if bytes.HasPrefix(x, y) != bytes.Equal(a, b) {
			t.Errorf("%x begins with %x", x, y)
		}
	})
}
