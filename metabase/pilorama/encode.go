package pilorama

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const crcSize = 4

// sum is the checksum of an entry, which is bound to its key: what stands under another one is damage.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// seal appends the checksum to a value.
func seal(key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, sum(key, value))
}

// unseal verifies an entry and returns its value without the checksum.
func unseal(key, value []byte) ([]byte, error) {
	n := len(value) - crcSize
	if n < 0 || binary.BigEndian.Uint32(value[n:]) != sum(key, value[:n]) {
		return nil, corrupt("damaged entry %x", key)
	}
	return value[:n], nil
}

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendMeta(b []byte, attrs []Attr) []byte {
	for i := range attrs {
		b = appendText(appendText(b, attrs[i].Key), attrs[i].Value)
	}
	return b
}

// parseMeta returns a copy of attributes.
func parseMeta(b []byte) (attrs []Attr, err error) {
	all := string(b) // one copy, of which all keys and values are parts
	d := decoder{b: b}
	text := func() string {
		part := d.text()
		end := len(b) - len(d.b)
		return all[end-len(part) : end]
	}
	for len(d.b) > 0 && !d.bad {
		attrs = append(attrs, Attr{text(), text()})
	}
	if d.bad {
		return nil, corrupt("attributes")
	}
	return attrs, nil
}

// nameIn returns the name that attributes give, and the kind that they make of a node.
func nameIn(meta []byte) (name []byte, kind byte) {
	d := decoder{b: meta}
	for first := true; len(d.b) > 0 && !d.bad; first = false {
		key, value := d.text(), d.text()
		if string(key) != FileName {
			continue
		}
		if first && len(d.b) == 0 {
			return value, plain
		}
		return value, anything
	}
	return nil, anything
}

// place is where a node was put, by the operation of that time.
type place struct {
	parent NodeID
	time   uint64
	meta   []byte
}

func (p *place) appendTo(b []byte) []byte {
	b = appendUint64(appendUint64(b, uint64(p.parent)), p.time)
	return appendText(b, p.meta)
}

func (p *place) parse(d *decoder) {
	p.parent, p.time, p.meta = NodeID(d.uint64()), d.uint64(), d.text()
}

// record is what is known of a node.
type record struct {
	place
	birth uint64 // the time of the first operation that put it anywhere
}

func (r *record) name() (name []byte, kind byte) { return nameIn(r.meta) }

func (r *record) appendTo(b []byte) []byte {
	return r.place.appendTo(appendUint64(b, r.birth))
}

// parseRecord reads what appendTo wrote; the result refers to b.
func parseRecord(b []byte) (r record, err error) {
	d := decoder{b: b}
	r.birth = d.uint64()
	r.parse(&d)
	if d.bad || len(d.b) > 0 {
		return r, corrupt("record of a node")
	}
	return r, nil
}

// entry is an operation in the log.
type entry struct {
	move
	done   bool  // it changed the tree
	had    bool  // the child was somewhere before
	before place // and this is where, if it is done
}

const (
	isDone = 1 << iota
	hasBefore
)

func (e *entry) appendTo(b []byte) []byte {
	flags := byte(0)
	if e.done {
		flags |= isDone
	}
	if e.had {
		flags |= hasBefore
	}
	b = appendUint64(appendUint64(append(b, flags), uint64(e.parent)), uint64(e.child))
	b = appendText(b, e.meta)
	if e.had {
		b = e.before.appendTo(b)
	}
	return b
}

// parseEntry reads what appendTo wrote; the result refers to b.
func parseEntry(time uint64, b []byte) (e entry, err error) {
	d := decoder{b: b}
	flags := d.byte()
	e.time = time
	e.parent, e.child, e.meta = NodeID(d.uint64()), NodeID(d.uint64()), d.text()
	e.done, e.had = flags&isDone != 0, flags&hasBefore != 0
	if e.had {
		e.before.parse(&d)
	}
	if d.bad || len(d.b) > 0 || flags > isDone|hasBefore || e.had && (!e.done || e.before.time >= time) {
		return e, corrupt("log entry %d", time)
	}
	return e, nil
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
	part, d.b = d.b[:n:n], d.b[n:]
	return part
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(wordSize); b != nil {
		return uint64Of(b)
	}
	return 0
}

func (d *decoder) text() []byte {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.bad, d.b = true, nil
		return nil
	}
	d.take(uint64(size))
	return d.take(n)
}

// encode appends a cursor: of each level, from the top, the parent and the position among its children.
func (f *frame) encode(b []byte) []byte {
	if f == nil {
		return b
	}
	b = f.up.encode(b)
	return appendText(appendUint64(b, uint64(f.parent)), string(f.at))
}

// parseCursor reads what encode wrote.
func parseCursor(b []byte) (f *frame, err error) {
	d := decoder{b: b}
	for depth := 1; len(d.b) > 0 && !d.bad; depth++ {
		parent, at := NodeID(d.uint64()), Position(d.text())
		if len(at) < positionEnd {
			d.bad = true
		}
		f = &frame{parent, at, f, depth}
	}
	if d.bad || f == nil {
		return nil, invalid("a cursor of %d bytes", len(b))
	}
	return f, nil
}
