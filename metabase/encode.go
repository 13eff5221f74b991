package metabase

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/granary-store/granary/blobstor"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const crcSize = 4

// sum is the checksum of an entry, which is bound to its key: an entry that stands under another one is damage.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// seal appends the checksum to the value that begins at from.
func seal(key, b []byte, from int) []byte {
	return binary.BigEndian.AppendUint32(b, sum(key, b[from:]))
}

// unseal verifies an entry and returns its value without the checksum.
func unseal(key, value []byte) ([]byte, error) {
	n := len(value) - crcSize
	if n < 0 || binary.BigEndian.Uint32(value[n:]) != sum(key, value[:n]) {
		return nil, corrupt("damaged entry")
	}
	return value[:n], nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: metabase: %s", blobstor.ErrCorrupt, fmt.Sprintf(format, args...))
}

// Bits of a record's first byte behind its kind.
const (
	hasTarget = 1 << (iota + 2)
	hasParent
	isVirtual
	kindMask = hasTarget - 1
)

// appendTo appends the record as it is stored, without its address and checksum.
func (r *Record) appendTo(b []byte) []byte {
	flags := byte(r.Kind)
	if !r.Target.IsZero() {
		flags |= hasTarget
	}
	if !r.Parent.IsZero() {
		flags |= hasParent
	}
	if r.Virtual {
		flags |= isVirtual
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(r.Size))
	b = binary.AppendUvarint(b, r.Expires)
	if flags&hasTarget != 0 {
		b = append(b, r.Target[:]...)
	}
	if flags&hasParent != 0 {
		b = append(b, r.Parent[:]...)
	}
	b = appendText(b, r.Chain)
	b = appendText(b, string(r.Location))
	for i := range r.Attrs {
		b = append(b, byte(r.Attrs[i].Mode))
		b = appendText(b, r.Attrs[i].Key)
		b = appendText(b, r.Attrs[i].Value)
	}
	return b
}

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// encodedLen is at least the length of what appendTo appends.
func (r *Record) encodedLen() int {
	n := 1 + 2*binary.MaxVarintLen64 + 2*len(blobstor.ID{}) + 2 + len(r.Chain) + len(r.Location)
	for i := range r.Attrs {
		n += 1 + 2*binary.MaxVarintLen32 + len(r.Attrs[i].Key) + len(r.Attrs[i].Value)
	}
	return n
}

// packed is a record as it is stored, verified. It is valid as long as its transaction.
type packed struct {
	head  Record // without attributes
	attrs []byte
}

// parseRecord reads what appendTo made of the record of an address.
func parseRecord(addr blobstor.Address, b []byte) (p packed, err error) {
	d := decoder{b: b}
	flags := d.byte()
	r := &p.head
	r.Address = addr
	r.Kind, r.Virtual = Kind(flags&kindMask), flags&isVirtual != 0
	r.Size, r.Expires = int64(d.uvarint()), d.uvarint()
	if flags&hasTarget != 0 {
		d.id(&r.Target)
	}
	if flags&hasParent != 0 {
		d.id(&r.Parent)
	}
	r.Chain, r.Location = string(d.text()), blobstor.Location(d.text())
	if d.bad || flags >= isVirtual<<1 || r.Size < 0 {
		return p, corrupt("record of %v", addr)
	}
	p.attrs = d.b
	return p, nil
}

// each calls yield with every attribute, as slices that are valid as long as the transaction.
func (p *packed) each(yield func(mode Mode, key, value []byte) bool) error {
	d := decoder{b: p.attrs}
	for len(d.b) > 0 {
		mode, key, value := Mode(d.byte()), d.text(), d.text()
		if d.bad || mode >= modes {
			return corrupt("attributes of %v", p.head.Address)
		}
		if !yield(mode, key, value) {
			return nil
		}
	}
	return nil
}

// record returns a copy that outlives the transaction.
func (p *packed) record() (Record, error) {
	r := p.head
	n := 0
	if err := p.each(func(Mode, []byte, []byte) bool { n++; return true }); err != nil || n == 0 {
		return r, err
	}
	text := string(p.attrs) // one copy, of which all keys and values are parts
	r.Attrs = make([]Attr, 0, n)
	err := p.each(func(mode Mode, key, value []byte) bool {
		r.Attrs = append(r.Attrs, Attr{cut(text, p.attrs, key), cut(text, p.attrs, value), mode})
		return true
	})
	return r, err
}

// cut returns the part of text that part is of all.
func cut(text string, all, part []byte) string {
	at := cap(all) - cap(part)
	return text[at : at+len(part)]
}

// decoder reads fields one after the other; what it cannot read makes it bad.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	var part []byte
	part, d.b = d.b[:n], d.b[n:]
	return part
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		n = len(d.b) + 1
	}
	d.take(uint64(n))
	return v
}

func (d *decoder) id(id *blobstor.ID) { copy(id[:], d.take(uint64(len(id)))) }
func (d *decoder) text() []byte       { return d.take(d.uvarint()) }
