package blobovnicza

import (
	"cmp"
	"slices"
)

// span is a part of a file.
type span struct{ from, to int64 }

// scanned is a record that a scan accepted.
type scanned struct {
	header
	off int64
}

// scan is what the headers of a file tell.
type scan struct {
	records []scanned
	holes   []span // between accepted records, and before the first
	start   int64  // where it began
	end     int64  // behind the last accepted record
	proven  int64  // a later record proves that the file was synced up to here
	commit  uint64 // the highest commit number
}

// scanWindow is how much of a file a scan reads at once.
const scanWindow = 1 << 20

// scanner reads a file front to back through a window.
type scanner struct {
	f     *file
	size  int64
	start int64
	buf   []byte
}

// window returns the bytes at off, at least n of them unless the file ends before.
func (s *scanner) window(off, n int64) ([]byte, error) {
	n = min(n, s.size-off)
	if off < s.start || off+n > s.start+int64(len(s.buf)) {
		want := max(n, scanWindow)
		s.buf = slices.Grow(s.buf[:0], int(want))[:min(want, s.size-off)]
		s.start = off
		if err := s.f.readAt(s.buf, off); err != nil {
			s.buf = s.buf[:0]
			return nil, err
		}
	}
	return s.buf[off-s.start:], nil
}

// scanFile reads the headers of a file from a record on, before which commit was the highest number, up to size. A
// record is accepted if its commit number is not lower than one before it: lower ones are left over from an attempt
// that was cut back. Whether payloads are whole is not looked at.
func scanFile(f *file, from, size int64, commit uint64) (*scan, error) {
	return scanEach(f, from, size, commit, func(*scanner, *header, int64) error { return nil })
}

// scanEach is scanFile that shows every record which it accepts. An error of each ends it.
func scanEach(f *file, from, size int64, commit uint64, each func(*scanner, *header, int64) error) (*scan, error) {
	r := &scan{start: from, end: from, proven: from, commit: commit}
	r.records = make([]scanned, 0, (size-from)>>12) // what blobs of 4 KiB need, or it would be copied several times
	s := &scanner{f: f, size: size}
	var h header // one for all: each may keep it from the stack
	for off := from; off+headerSize <= size; {
		b, err := s.window(off, headerSize)
		if err != nil {
			return nil, err
		}
		var ok bool
		h, ok = parseHeader(b, f.seed, off)
		if ok && h.commit >= r.commit && off+h.size() <= size {
			if err := each(s, &h, off); err != nil {
				return nil, err
			}
			r.accept(h, off)
			off = r.end
			continue
		}
		if off, err = s.next(off + align); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *scan) accept(h header, off int64) {
	if off-r.end >= headerSize { // in less, no record can have been
		r.holes = append(r.holes, span{r.end, off})
	}
	r.records = append(r.records, scanned{h, off})
	r.end = off + h.size()
	r.commit = h.commit
	r.proven = max(r.proven, h.synced)
}

// void returns the header of a void over a hole. Its commit number is that of the record before, or it would not be
// accepted; before is what that is where the scan began.
func (r *scan) void(hole span, before uint64) header {
	i, _ := slices.BinarySearchFunc(r.records, hole.from, func(rec scanned, off int64) int { return cmp.Compare(rec.off, off) })
	if i > 0 {
		before = r.records[i-1].commit
	}
	return header{kind: kindVoid, length: uint32(hole.to - hole.from - headerSize), commit: before}
}

// next returns the first aligned offset from off on where a record may start.
func (s *scanner) next(off int64) (int64, error) {
	for off+headerSize <= s.size {
		b, err := s.window(off, headerSize)
		if err != nil {
			return 0, err
		}
		if i := findMagic(b); i >= 0 {
			return off + int64(i), nil
		}
		// A magic that straddles the window's end starts in its last bytes; the window may end unaligned only
		// where the file does.
		off += max(align, int64(len(b))&^(align-1))
	}
	return s.size, nil
}
