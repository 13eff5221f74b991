package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/granary-store/granary/blobstor"
)

// This file reads bbolt's format, version 2, as far as it takes to tell a sound page from a damaged one. Integers are
// in the machine's byte order. A file is an array of pages of 4 KiB, numbered from 0; one that needs more room goes on
// in the pages behind it, its overflow. A page begins with a header:
//
//	offset  size  field
//	     0     8  its own number
//	     8     2  type: 1 branch, 2 leaf, 4 meta, 16 freelist
//	    10     2  count of elements
//	    12     4  count of overflow pages
//
// Pages 0 and 1 are metas. A commit writes the one that its number, odd or even, names; the newer sound one counts:
//
//	16     4  magic
//	20     4  version
//	24     4  page size
//	28     4  flags, unused
//	32     8  page of the root bucket
//	40     8  sequence of the root bucket, unused
//	48     8  page of the freelist
//	56     8  end: the number behind the last page in use
//	64     8  number of the commit
//	72     8  FNV-1a of what is between the header and here
//
// A branch has for each child the offset of its key from this element (4 bytes), the key's length (4) and the child's
// page (8). A leaf has for each key flags (4 bytes; 1: the value is a bucket), the offset of the key from this element
// (4), the key's length (4) and that of the value (4), which follows the key. Keys ascend; those of a child are not
// less than its key in the branch, and less than the next one's. A bucket's value is its root page (8) and a sequence
// (8). A small one has root 0, and behind them a leaf of its own, whose offsets count as in a page.
//
// A freelist has the numbers of the free pages (8 each), ascending. If its count is 65535 the true one comes first.
const (
	headerSize  = 16
	elementSize = 16
	metaSize    = headerSize + 64
	bucketSize  = 16
	idSize      = 8

	typeBranch   = 1
	typeLeaf     = 2
	typeMeta     = 4
	typeFreelist = 16

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	firstPage   = 2 // behind the metas
	manyFree    = 0xFFFF

	// maxOverflow bounds the memory that a damaged header can ask for: 64 MiB, far more than our callers store under
	// one key.
	maxOverflow = 64<<20/pageSize - 1
)

var order = binary.NativeEndian

// header is what every page begins with.
type header struct {
	id       uint64
	kind     uint16
	count    uint16
	overflow uint32
}

func parseHeader(b []byte) header {
	return header{order.Uint64(b), order.Uint16(b[8:]), order.Uint16(b[10:]), order.Uint32(b[12:])}
}

// meta is what a meta page says.
type meta struct {
	root, freelist, end, commit uint64
}

// errTorn is a meta page that was never written as a whole, or is damaged.
var errTorn = errors.New("torn meta page")

// parseMeta reads a meta page of a file of so many pages.
func parseMeta(b []byte, id, pages uint64) (meta, error) {
	if order.Uint32(b[16:]) != metaMagic || checksum(b) != order.Uint64(b[72:]) {
		return meta{}, errTorn
	}
	if v, size := order.Uint32(b[20:]), order.Uint32(b[24:]); v != metaVersion || size != pageSize {
		return meta{}, fmt.Errorf("%w: bbolt format %d with pages of %d bytes", blobstor.ErrLayout, v, size)
	}
	m := meta{order.Uint64(b[32:]), order.Uint64(b[48:]), order.Uint64(b[56:]), order.Uint64(b[64:])}
	if m.end > pages {
		return meta{}, corrupt("the file has %d pages of %d", pages, m.end)
	}
	// bbolt believes a meta page without a look at its header, so what is sound apart from that is not torn.
	if h := parseHeader(b); h.id != id || h.kind != typeMeta {
		return meta{}, corrupt("meta page %d says it is page %d of type %d", id, h.id, h.kind)
	}
	if m.commit%2 != id || !m.has(m.root, 0) || !m.has(m.freelist, 0) {
		return meta{}, corrupt("meta page %d: root %d, freelist %d, end %d, commit %d",
			id, m.root, m.freelist, m.end, m.commit)
	}
	return m, nil
}

func checksum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[headerSize:72])
	return h.Sum64()
}

// has reports whether a page and its overflow are between the metas and the end.
func (m *meta) has(id uint64, overflow uint32) bool {
	return id >= firstPage && id < m.end && uint64(overflow) < m.end-id
}

// page is a branch or a leaf that parsePage found sound.
type page struct {
	header
	b []byte
}

// parsePage checks all of a page that can be checked without another one.
func parsePage(b []byte) (page, error) {
	p := page{parseHeader(b), b}
	if p.kind != typeBranch && p.kind != typeLeaf {
		return page{}, corrupt("page %d: type %d in a tree", p.id, p.kind)
	}
	if p.kind == typeBranch && p.count == 0 {
		return page{}, corrupt("page %d: a branch without children", p.id)
	}
	table := headerSize + elementSize*int(p.count)
	if table > len(b) {
		return page{}, corrupt("page %d: %d elements in %d bytes", p.id, p.count, len(b))
	}
	for i := range p.len() {
		pos, ksize, vsize := p.place(i)
		if ksize == 0 || pos < table || uint64(pos)+uint64(ksize)+uint64(vsize) > uint64(len(b)) {
			return page{}, corrupt("page %d: element %d of %d and %d bytes at %d", p.id, i, ksize, vsize, pos)
		}
		if i > 0 && bytes.Compare(p.key(i-1), p.key(i)) >= 0 {
			return page{}, corrupt("page %d: key %d is not greater than the one before", p.id, i)
		}
		if err := p.checkBucket(i); err != nil {
			return page{}, err
		}
	}
	return p, nil
}

func (p *page) len() int { return int(p.count) }

// place returns where an element's key begins, its length, and that of the value behind it.
func (p *page) place(i int) (pos int, ksize, vsize uint32) {
	at := headerSize + elementSize*i
	e := p.b[at:]
	if p.kind == typeBranch {
		return at + int(order.Uint32(e)), order.Uint32(e[4:]), 0
	}
	return at + int(order.Uint32(e[4:])), order.Uint32(e[8:]), order.Uint32(e[12:])
}

func (p *page) key(i int) []byte {
	pos, ksize, _ := p.place(i)
	return p.b[pos : pos+int(ksize)]
}

// child returns the page that an element leads to, 0 if to none: a branch's child, or the root of a bucket.
func (p *page) child(i int) uint64 {
	if p.kind == typeBranch {
		return order.Uint64(p.b[headerSize+elementSize*i+8:])
	}
	if v, ok := p.bucket(i); ok {
		return order.Uint64(v)
	}
	return 0
}

// bucket returns the value of a leaf's element that is a bucket.
func (p *page) bucket(i int) (value []byte, ok bool) {
	if p.kind != typeLeaf || order.Uint32(p.b[headerSize+elementSize*i:]) == 0 {
		return nil, false
	}
	pos, ksize, vsize := p.place(i)
	pos += int(ksize)
	return p.b[pos : pos+int(vsize)], true
}

// checkBucket checks an element's flags, and the leaf inside it if it is a small bucket.
func (p *page) checkBucket(i int) error {
	v, ok := p.bucket(i)
	if !ok {
		return nil
	}
	if flags := order.Uint32(p.b[headerSize+elementSize*i:]); flags != 1 || len(v) < bucketSize {
		return corrupt("page %d: element %d: flags %#x, bucket of %d bytes", p.id, i, flags, len(v))
	}
	if order.Uint64(v) != 0 {
		return nil
	}
	if v = v[bucketSize:]; len(v) < headerSize {
		return corrupt("page %d: bucket %d has no leaf", p.id, i)
	}
	inner := parseHeader(v)
	if inner.id != 0 || inner.kind != typeLeaf || inner.overflow != 0 {
		return corrupt("page %d: bucket %d has a leaf of type %d", p.id, i, inner.kind)
	}
	leaf, err := parsePage(v)
	if err != nil {
		return fmt.Errorf("bucket %d of page %d: %w", i, p.id, err)
	}
	for j := range leaf.len() {
		if _, nested := leaf.bucket(j); nested {
			return corrupt("page %d: bucket %d has another inside", p.id, i)
		}
	}
	return nil
}

// freeCount returns how many free pages a freelist names, and where the first number is. b has at least the header
// and one number.
func freeCount(b []byte) (n, off uint64, err error) {
	h := parseHeader(b)
	if h.kind != typeFreelist {
		return 0, 0, corrupt("page %d: type %d where the freelist should be", h.id, h.kind)
	}
	n, off = uint64(h.count), headerSize
	if n == manyFree {
		n, off = order.Uint64(b[headerSize:]), headerSize+idSize
	}
	if room := ((uint64(h.overflow)+1)*pageSize - off) / idSize; n > room {
		return 0, 0, corrupt("page %d: a freelist of %d numbers, there is room for %d", h.id, n, room)
	}
	return n, off, nil
}

// freeID returns the i-th number in a part of a freelist.
func freeID(b []byte, i int) uint64 { return order.Uint64(b[i*idSize:]) }
