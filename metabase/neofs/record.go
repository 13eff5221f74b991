package neofs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

const (
	maxHeader  = 16 << 10 // the protocol's limit
	prefixSize = 20 << 10 // a header with ID and signature before it
	maxParents = 2        // an EC part of a split part of an object
)

var prefixes = sync.Pool{New: func() any { return new([prefixSize]byte) }}

// Parse is a [metabase.ParseFunc]: it returns the records of a stored object, as [Records] does.
func Parse(info blobstor.Info, r io.ReaderAt) ([]metabase.Record, error) {
	buf := prefixes.Get().(*[prefixSize]byte)
	defer prefixes.Put(buf)
	n, err := r.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return Records(buf[:n], info.Size)
}

// Records returns the record of an object and, behind it, those of the objects that it is a part of, the nearest
// first. Prefix is its beginning with all of the header, size that of the whole in bytes, -1 if that is not known. An
// object that was cut, does not follow the protocol, or has a header of more than 16 KiB is [metabase.ErrRecord].
// Nothing of prefix is retained.
func Records(prefix []byte, size int64) ([]metabase.Record, error) {
	h, err := parseObject(prefix, size)
	h.add(Phy, set, metabase.Opaque)
	recs := []metabase.Record{h.Record}
	for err == nil && !h.Parent.IsZero() && len(h.parentHeader) > 0 {
		if len(recs) > maxParents {
			return nil, bad("a part of a part of a part")
		}
		h, err = parseHead(h.parentHeader, h.Parent)
		h.Virtual = true
		recs = append(recs, h.Record)
	}
	if err != nil {
		return nil, err
	}
	return recs, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", metabase.ErrRecord, fmt.Sprintf(format, args...))
}

// Wire types of protobuf, which are the last three bits of a tag, behind the number of the field. A field of another
// type than the protocol says is one that is not known, and those are passed over.
const (
	varint = 0
	length = 2
)

// fields reads a message field by field. After an error it reads nothing.
type fields struct {
	b     []byte
	tag   uint64
	value uint64 // a varint, or the length of data
	data  []byte
	err   error
}

func (f *fields) next() bool {
	if len(f.b) == 0 || f.err != nil {
		return false
	}
	f.tag = f.uvarint()
	var n uint64
	switch f.tag & 7 {
	case varint:
		f.value = f.uvarint()
	case length:
		f.value = f.uvarint()
		n = f.value
	case 1:
		n = 8
	case 5:
		n = 4
	default:
		f.err = bad("a field of wire type %d", f.tag&7)
	}
	if f.err == nil && n > uint64(len(f.b)) {
		f.err = bad("it ends in a field of %d bytes", n)
	}
	if f.err == nil {
		f.data, f.b = f.b[:n], f.b[n:]
	}
	return f.err == nil
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.err = bad("it ends in a number")
		return 0
	}
	f.b = f.b[n:]
	return v
}

// pair reads the field as a message whose fields 1 and 2 are all that matters.
func (f *fields) pair() (values [3]uint64, data [3]string) {
	in := fields{b: f.data}
	for in.next() {
		switch n := in.tag >> 3; {
		case n > 2:
		case in.tag&7 == varint:
			values[n] = in.value
		case in.tag&7 == length:
			data[n] = string(in.data)
		}
	}
	f.err = in.err
	return values, data
}

// bytes returns field n of the message that the field is, which must have this size.
func (f *fields) bytes(n, size int) string {
	_, data := f.pair()
	if f.err == nil && len(data[n]) != size {
		f.err = bad("field %d has %d bytes, not %d", f.tag>>3, len(data[n]), size)
	}
	return data[n]
}

func (f *fields) id() (id blobstor.ID) {
	copy(id[:], f.bytes(1, len(id)))
	return id
}

// parseObject reads an object as far as its payload, which is the last field.
func parseObject(b []byte, size int64) (h head, err error) {
	const payloadTag = 4<<3 | length
	f := fields{b: b}
	var id blobstor.ID
	var header []byte
	for f.next() && f.tag != payloadTag {
		switch f.tag {
		case 1<<3 | length:
			id = f.id()
		case 3<<3 | length:
			header = f.data
		}
	}
	end, payload := uint64(len(b)-len(f.b)), uint64(0)
	if f.tag == payloadTag {
		if payload = f.value; f.err != nil {
			f.err, end = nil, end+payload // it goes on behind the prefix
		}
	}
	switch {
	case f.err != nil:
		return h, f.err
	case size >= 0 && end != uint64(size):
		return h, bad("%d bytes, where %d make the object", size, end)
	case id.IsZero() || header == nil || len(header) > maxHeader:
		return h, bad("object %v with a header of %d bytes", id, len(header))
	}
	if h, err = parseHead(header, id); err == nil && size >= 0 && payload != uint64(h.Size) {
		err = bad("a payload of %d bytes, %d by its header", payload, h.Size)
	}
	return h, err
}

// head is a header that is read, and the record that becomes of it. Of a field that comes twice, the last one counts.
type head struct {
	metabase.Record
	version, owner, hash string
	objectType, epoch    uint64
	attrs                [][3]string // keys and values, as 1 and 2
	first                blobstor.ID
	splitID              string
	parentHeader         []byte
	children             bool
}

// parseHead makes the record of the object with this ID and header.
func parseHead(b []byte, id blobstor.ID) (h head, err error) {
	h.Address.Object = id
	f := fields{b: b}
	for f.next() {
		switch f.tag {
		case 1<<3 | length:
			v, _ := f.pair()
			h.version = fmt.Sprintf("v%d.%d", v[1], v[2])
		case 2<<3 | length:
			h.Address.Container = f.id()
		case 3<<3 | length:
			h.owner = f.bytes(1, ownerSize)
		case 4<<3 | varint:
			h.epoch = f.value
		case 5<<3 | varint:
			h.Size = int64(f.value)
		case 6<<3 | length:
			h.hash = f.bytes(2, hashSize)
		case 7<<3 | varint:
			h.objectType = f.value
		case 10<<3 | length:
			_, attr := f.pair()
			h.attrs = append(h.attrs, attr)
		case 11<<3 | length:
			f.err = h.parseSplit(f.data)
		}
	}
	if f.err != nil {
		return h, f.err
	}
	return h, h.complete()
}

func (h *head) parseSplit(b []byte) error {
	f := fields{b: b}
	for f.next() {
		switch f.tag {
		case 1<<3 | length:
			h.Parent = f.id()
		case 4<<3 | length:
			h.parentHeader = f.data
		case 5<<3 | length:
			h.children = true
		case 6<<3 | length:
			h.splitID = string(f.data)
		case 7<<3 | length:
			h.first = f.id()
		}
	}
	return f.err
}
