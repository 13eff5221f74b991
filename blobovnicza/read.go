package blobovnicza

import (
	"errors"
	"slices"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// reading is one read: what is wanted, and what came of it.
type reading struct {
	addr blobstor.Address
	mode mode
	dst  []byte // whole: the payload is appended
	p    []byte // span: filled from off as far as the payload goes
	off  int64
	n    int // span: bytes filled

	hdr   header // of the record found
	leaf  uint16
	place place
}

// mode says how much of a record is read, and so verified.
type mode byte

const (
	modeHeader mode = iota // address and length
	modeWhole              // the payload into dst
	modeSpan               // a part of it into p
	modeVerify             // all of it, to nowhere
)

// errNoRecord: nothing that was written for this place and this address lies there.
var errNoRecord = errors.New("no record at this place")

// scratch holds a record of one block, or one block and the checksums of a longer record.
type scratch struct {
	record [headerSize + blockSize + align]byte
	sums   [maxBlobLimit / blockSize * crcSize]byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// read serves r from the record at off, which has the given payload length. It returns errNoRecord, ErrCorrupt, or
// the error of the disk.
func (f *file) read(off int64, length uint32, r *reading) error {
	size := recordSize(kindPut, length)
	if off < 0 || off+size > f.end.Load() {
		return errNoRecord
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if size <= int64(len(s.record)) && r.mode != modeHeader {
		return f.readShort(off, s.record[:size], length, r)
	}
	if err := f.readAt(s.record[:headerSize], off); err != nil {
		return err
	}
	if err := r.open(f, s.record[:headerSize], off, length); err != nil || r.mode == modeHeader {
		return err
	}
	return f.readLong(s, off, r)
}

// readAt fills b, which lies before the end of the file; less is damage.
func (f *file) readAt(b []byte, off int64) error {
	if n, err := f.data.ReadAt(b, off); n < len(b) {
		if isEOF(err) {
			return blobstor.ErrCorrupt
		}
		return err
	}
	return nil
}

// open checks the header and notes what was found.
func (r *reading) open(f *file, b []byte, off int64, length uint32) error {
	h, ok := parseHeader(b, f.seed, off)
	if !ok || h.length != length || h.address != r.addr || h.kind != kindPut && h.kind != kindTombstone {
		return errNoRecord
	}
	r.hdr, r.place = h, place{file: f.number, off: off, length: length}
	return nil
}

// readShort reads a record of at most one block in one call. Reading the payload straight to its place, with one
// preadv of three parts, was measured to take longer than the copy does.
func (f *file) readShort(off int64, b []byte, length uint32, r *reading) error {
	if err := f.readAt(b, off); err != nil {
		return err
	}
	if err := r.open(f, b[:headerSize], off, length); err != nil {
		return err
	}
	payload, sums := b[headerSize:headerSize+length], b[headerSize+length:]
	if !verifyBlocks(&r.hdr, payload, sums) {
		return blobstor.ErrCorrupt
	}
	switch r.mode {
	case modeWhole:
		r.dst = append(grow(r.dst, len(payload)), payload...)
	case modeSpan:
		if r.off <= int64(len(payload)) {
			r.n = copy(r.p, payload[r.off:])
		}
	}
	return nil
}

// readLong reads those blocks of a longer record that r touches.
func (f *file) readLong(s *scratch, off int64, r *reading) error {
	length := int64(r.hdr.length)
	switch r.mode {
	case modeWhole:
		dst := grow(r.dst, int(length))
		end := len(dst) + int(length)
		if err := f.readBlocks(s, off, &r.hdr, dst[len(dst):end], 0, length); err != nil {
			return err
		}
		r.dst = dst[:end]
	case modeSpan:
		if r.off < length {
			r.n = int(min(int64(len(r.p)), length-r.off))
			return f.readBlocks(s, off, &r.hdr, r.p[:r.n], r.off, r.off+int64(r.n))
		}
	case modeVerify:
		return f.readBlocks(s, off, &r.hdr, nil, 0, length)
	}
	return nil
}

// readBlocks verifies the blocks of the record at off that hold the payload's bytes [from, to), and puts these
// bytes into p unless p is nil. A block that is wanted whole is read straight to its place.
func (f *file) readBlocks(s *scratch, off int64, h *header, p []byte, from, to int64) error {
	payload, length := off+headerSize, int64(h.length)
	sums := s.sums[:blocks(h.length)*crcSize]
	if err := f.readAt(sums, payload+length); err != nil {
		return err
	}
	for at := from &^ (blockSize - 1); at < to; at += blockSize {
		size := min(blockSize, length-at)
		block := s.record[:size]
		direct := p != nil && at >= from && at+size <= to
		if direct {
			block = p[at-from:][:size]
		}
		if err := f.readAt(block, payload+at); err != nil {
			return err
		}
		if !verifyBlocks(h, block, sums[at/blockSize*crcSize:]) {
			return blobstor.ErrCorrupt
		}
		if p != nil && !direct {
			copy(p[max(0, at-from):], block[max(0, from-at):])
		}
	}
	return nil
}

// grow makes room for n more bytes: exactly, if b is nil.
func grow(b []byte, n int) []byte {
	if b == nil {
		return make([]byte, 0, n)
	}
	return slices.Grow(b, n)
}

// header reads the header that must lie at off.
func (f *file) header(off int64) (header, error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if err := f.readAt(s.record[:headerSize], off); err != nil {
		return header{}, err
	}
	h, ok := parseHeader(s.record[:headerSize], f.seed, off)
	if !ok {
		return header{}, blobstor.ErrCorrupt
	}
	return h, nil
}
