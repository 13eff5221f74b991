package neofs

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/nspcc-dev/neo-go/pkg/crypto/hash"

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
	r, parent, err := parseObject(prefix, size)
	recs := []metabase.Record{r}
	for err == nil && len(parent) > 0 && !r.Parent.IsZero() {
		if len(recs) > maxParents {
			return nil, bad("a part of a part of a part")
		}
		r, parent, err = parseHeader(parent, string(r.Parent[:]), true)
		recs = append(recs, r)
	}
	if err != nil {
		return nil, err
	}
	return recs, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", metabase.ErrRecord, fmt.Sprintf(format, args...))
}

// Wire types of protobuf, the last three bits of a tag, behind the number of the field; 1 and 5 are 8 and 4 bytes.
const (
	varint = 0
	length = 2
)

// fields reads messages of protobuf field by field. After an error it reads nothing.
type fields struct {
	b     []byte
	tag   uint64
	value uint64 // a varint, or the length of data
	err   error
}

// message has fields by number and wire type; what the protocol does not have is passed over. Of a field that comes
// twice the last one counts, but a header has many attributes, and its split may come in pieces.
type message struct {
	num           [10]uint64
	data          [10][]byte
	attrs, splits [][]byte // fields 10 and 11
}

func (f *fields) next(m *message) bool {
	if len(f.b) == 0 || f.err != nil {
		return false
	}
	f.tag = f.uvarint()
	n, wire := f.tag>>3, f.tag&7
	if wire == varint || wire == length {
		f.value = f.uvarint()
	}
	const never = math.MaxUint64 // there are no such fields
	size := [8]uint64{varint: 0, 8, length: f.value, never, never, 4, never, never}[wire]
	if f.err == nil && size > uint64(len(f.b)) {
		f.err = bad("field %d of wire type %d has %d bytes, and %d are left", n, wire, size, len(f.b))
	}
	if f.err != nil {
		return false
	}
	var data []byte
	switch data, f.b = f.b[:size], f.b[size:]; {
	case wire == varint && n < 10:
		m.num[n] = f.value
	case wire == length && n < 10:
		m.data[n] = data
	case wire == length && n == 10:
		m.attrs = append(m.attrs, data)
	case wire == length && n == 11:
		m.splits = append(m.splits, data)
	}
	return true
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.err = bad("it ends in a number")
		return math.MaxUint64 // as a length, more than there can be
	}
	f.b = f.b[n:]
	return v
}

// message reads a message that is in one piece, in several or not there.
func (f *fields) message(pieces ...[]byte) (m message) {
	for _, f.b = range pieces {
		for f.next(&m) {
		}
	}
	return m
}

// bytes returns field n of the message b, which must have this size; "" if there is no message.
func (f *fields) bytes(b []byte, n, size int) string {
	if b == nil {
		return ""
	}
	m := f.message(b)
	if f.err == nil && len(m.data[n]) != size {
		f.err = bad("%d bytes, where %d are a value", len(m.data[n]), size)
	}
	return string(m.data[n])
}

// version returns the text of a version, which has two numbers.
func (f *fields) version(b []byte) string {
	if b == nil {
		return ""
	}
	m := f.message(b)
	return fmt.Sprintf("v%d.%d", m.num[1], m.num[2])
}

// id returns the ID that a message has, "" if that is zero.
func (f *fields) id(b []byte) string {
	id := f.bytes(b, 1, idSize)
	if strings.Trim(id, "\x00") == "" {
		return ""
	}
	return id
}

// parseObject reads an object as far as its payload, which is the last field. What it returns is that of parseHeader.
func parseObject(b []byte, size int64) (r metabase.Record, parent []byte, err error) {
	const payloadTag = 4<<3 | length
	f := fields{b: b}
	var o message
	for f.next(&o) && f.tag != payloadTag {
	}
	end, payload := uint64(len(b)-len(f.b)), uint64(0)
	if f.tag == payloadTag {
		if payload = f.value; f.err != nil {
			f.err, end = nil, end+payload // it goes on behind the prefix
		}
	}
	id, header := f.id(o.data[1]), o.data[3]
	switch {
	case f.err != nil:
		return r, nil, f.err
	case size >= 0 && end != uint64(size):
		return r, nil, bad("%d bytes, where %d make the object", size, end)
	case id == "" || len(header) > maxHeader:
		return r, nil, bad("object %x with a header of %d bytes", id, len(header))
	}
	if r, parent, err = parseHeader(header, id, false); err == nil && size >= 0 && payload != uint64(r.Size) {
		err = bad("a payload of %d bytes, %d by its header", payload, r.Size)
	}
	return r, parent, err
}

// Types of objects by their number, and what they are to others.
var (
	typeNames = [...]string{"REGULAR", "TOMBSTONE", "STORAGE_GROUP", "LOCK", "LINK"}
	typeKinds = [...]metabase.Kind{metabase.Regular, metabase.Tombstone, metabase.Regular, metabase.Lock, metabase.Link}
)

// parseHeader makes the record of the object with this ID and header, and returns the header of what it is a part of.
func parseHeader(b []byte, id string, virtual bool) (r metabase.Record, parentHeader []byte, err error) {
	var f fields
	h := f.message(b)
	split := f.message(h.splits...)
	version, container, objectType := f.version(h.data[1]), f.id(h.data[2]), h.num[7]
	owner, sum := f.bytes(h.data[3], 1, ownerSize), f.bytes(h.data[6], 2, hashSize)
	parent, first, splitID := f.id(split.data[1]), f.id(split.data[7]), string(split.data[6])
	r.Size, r.Virtual, parentHeader = int64(h.num[5]), virtual, split.data[4]
	switch {
	case f.err != nil:
		return r, nil, f.err
	case container == "" || objectType >= uint64(len(typeNames)) || r.Size < 0:
		return r, nil, bad("container %x, type %d, %d bytes", container, objectType, r.Size)
	case owner != "" && string(hash.Checksum([]byte(owner[:ownerEnd]))) != owner[ownerEnd:]:
		return r, nil, bad("an owner with a wrong checksum")
	case splitID != "" && len(splitID) != uuidSize:
		return r, nil, bad("a split ID of %d bytes", len(splitID))
	}
	copy(r.Address.Container[:], container)
	copy(r.Address.Object[:], id)
	copy(r.Parent[:], parent)
	if r.Kind = typeKinds[objectType]; objectType == 0 && split.data[5] != nil {
		r.Kind = metabase.Link // it lists children
	}
	if r.Chain = cmp.Or(splitID, first); r.Chain == "" && parent == "" && len(parentHeader) > 0 {
		r.Chain = id // it is the first
	}
	root := ""
	if objectType == 0 && parent == "" && r.Chain == "" {
		root = set
	}
	r.Attrs = make([]metabase.Attr, 0, 11+len(h.attrs))
	for _, a := range [...]metabase.Attr{
		{Key: Version, Value: version, Mode: metabase.Opaque},
		{Key: Owner, Value: owner, Mode: metabase.Opaque},
		{Key: PayloadHash, Value: sum, Mode: metabase.Opaque},
		{Key: ObjectType, Value: typeNames[objectType], Mode: metabase.Opaque},
		{Key: CreationEpoch, Value: strconv.FormatUint(h.num[4], 10)},
		{Key: PayloadLength, Value: strconv.FormatInt(r.Size, 10)},
		{Key: SplitParent, Value: parent, Mode: metabase.Opaque},
		{Key: SplitFirst, Value: first, Mode: metabase.Opaque},
		{Key: SplitID, Value: splitID, Mode: metabase.Opaque},
		{Key: Root, Value: root, Mode: metabase.Opaque},
	} {
		if a.Value != "" {
			r.Attrs = append(r.Attrs, a)
		}
	}
	return r, parentHeader, f.attributes(&r, h.attrs)
}

// attributes adds the attributes of a header, and what they mean.
func (f *fields) attributes(r *metabase.Record, attrs [][]byte) error {
	helper := r.Kind == metabase.Tombstone || r.Kind == metabase.Lock
	for _, b := range attrs {
		m := f.message(b)
		a := metabase.Attr{Key: string(m.data[1]), Value: string(m.data[2])}
		switch {
		case a.Key == ecHashes || strings.HasPrefix(a.Key, reserved):
			continue
		case a.Key == Expiration:
			if n, err := strconv.ParseUint(a.Value, 10, 64); err == nil {
				r.Expires = max(n, 1)
			}
		case a.Key == Associate:
			a.Mode = metabase.Opaque
			if id, err := blobstor.ParseID(a.Value); err == nil {
				if a.Value = string(id[:]); helper {
					r.Target = id
				}
			}
		}
		r.Attrs = append(r.Attrs, a)
	}
	if !r.Virtual {
		r.Attrs = append(r.Attrs, metabase.Attr{Key: Phy, Value: set, Mode: metabase.Opaque})
	}
	if f.err == nil && helper && r.Target.IsZero() {
		return bad("a %v that names no target", r.Kind)
	}
	return f.err
}
