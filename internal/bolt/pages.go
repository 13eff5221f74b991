package bolt

import (
	"errors"
	"io"
)

// pages reads the pages of a file, with calls and not through its map: what is damaged there becomes an error.
type pages struct {
	r io.ReaderAt
	meta
}

// readMetas returns the meta that counts, and the one before it, which is nil if it is torn.
func readMetas(r io.ReaderAt, size int64) (now, before *meta, err error) {
	var found [2]*meta
	for id := range found {
		b := make([]byte, metaSize)
		if err := readFull(r, b, uint64(id)*pageSize); err != nil {
			return nil, nil, err
		}
		m, err := parseMeta(b, uint64(id), uint64(size)/pageSize)
		switch {
		case err == nil:
			found[id] = &m
		case !errors.Is(err, errTorn):
			return nil, nil, err
		}
	}
	now, before = found[0], found[1]
	if now == nil || before != nil && before.commit > now.commit {
		now, before = before, now
	}
	if now == nil {
		return nil, nil, corrupt("both meta pages are damaged")
	}
	if before != nil && before.commit+1 != now.commit {
		return nil, nil, corrupt("the meta pages are of commits %d and %d", before.commit, now.commit)
	}
	return now, before, nil
}

// readFull fills b, or the error matches blobstor.ErrCorrupt if the file ends before.
func readFull(r io.ReaderAt, b []byte, off uint64) error {
	n, err := r.ReadAt(b, int64(off))
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return corrupt("the file ends at %d", off+uint64(n))
	}
	return err
}

// header reads the header of a page, which must name itself, and its whole first part into buf.
func (p *pages) header(id uint64, buf []byte) (header, error) {
	if !p.has(id, 0) {
		return header{}, corrupt("page %d is outside the file's %d", id, p.end)
	}
	if err := readFull(p.r, buf[:pageSize], id*pageSize); err != nil {
		return header{}, err
	}
	h := parseHeader(buf)
	if h.id != id {
		return header{}, corrupt("page %d says it is page %d", id, h.id)
	}
	if !p.has(id, h.overflow) {
		return header{}, corrupt("page %d goes on for %d pages, the end is %d", id, h.overflow, p.end)
	}
	return h, nil
}

// body reads the rest of a page whose header is in buf, which it makes longer if it must, and checks it.
func (p *pages) body(h header, buf *[]byte) (page, error) {
	if h.overflow > maxOverflow {
		return page{}, corrupt("page %d goes on for %d pages, at most %d", h.id, h.overflow, maxOverflow)
	}
	if n := (int(h.overflow) + 1) * pageSize; n > len(*buf) {
		*buf = append(*buf, make([]byte, n-len(*buf))...)
	}
	b := (*buf)[:(int(h.overflow)+1)*pageSize]
	if err := readFull(p.r, b[pageSize:], (h.id+1)*pageSize); err != nil {
		return page{}, err
	}
	return parsePage(b)
}

// eachFree calls fn for the free pages, which must ascend and be in the file, until it returns an error. The header is
// the freelist's.
func (p *pages) eachFree(fn func(id uint64) error) (header, error) {
	buf := make([]byte, 64<<10)
	h, err := p.header(p.freelist, buf)
	if err != nil {
		return h, err
	}
	n, off, err := freeCount(buf)
	if err != nil {
		return h, err
	}
	off += p.freelist * pageSize
	last := uint64(firstPage - 1)
	for n > 0 {
		part := buf[:min(n*idSize, uint64(len(buf)))]
		if err := readFull(p.r, part, off); err != nil {
			return h, err
		}
		for i := range len(part) / idSize {
			id := freeID(part, i)
			if id <= last || id >= p.end {
				return h, corrupt("the freelist has page %d behind %d, the end is %d", id, last, p.end)
			}
			if err := fn(id); err != nil {
				return h, err
			}
			last = id
		}
		n -= uint64(len(part) / idSize)
		off += uint64(len(part))
	}
	return h, nil
}
