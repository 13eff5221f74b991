package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/granary-store/granary/blobstor"
)

// journal keeps all blobs in one file that only grows, and their places in a map. One writer at a time, two
// syncs per Put, one process: it is slow, short, and keeps the laws but for one clause: with no byte free it cannot
// delete either, because a removal is a record too.
type journal struct {
	mu     sync.RWMutex // guards all below; Put holds it across its syncs, so Close waits for them
	file   file
	blobs  map[blobstor.Address]place
	end    int64
	lost   bool  // a header was damaged: nobody knows which address it had
	failed error // a sync failed: no more writes until the journal is opened again
	closed bool
}

// file is what a journal needs of an [os.File]. Tests put one in its place that fails on demand.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Seeker
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// place says where a record is, and what its payload must be.
type place struct {
	off  int64
	size uint32
	sum  uint32
}

// openJournal opens the journal in a file, which it makes if it is not there.
func openJournal(name string) (*journal, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newJournal(f)
}

// newJournal takes over the file, also if it fails.
func newJournal(f file) (*journal, error) {
	j := &journal{file: f, blobs: make(map[blobstor.Address]place)}
	if err := j.replay(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// syncDir makes the names in a directory durable. Windows has no such call; NTFS journals its names.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// replay reads all headers. What does not begin with one is damage if a record follows; otherwise it is taken
// for the rest of a write that nobody was told of, and cut off.
func (j *journal) replay() error {
	size, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for j.end < size {
		h, ok := j.headerAt(j.end, size)
		for next := j.end + 1; !ok && next < size; next++ {
			if h, ok = j.headerAt(next, size); ok {
				j.lost, j.end = true, next
			}
		}
		if !ok {
			return errors.Join(j.file.Truncate(j.end), j.file.Sync())
		}
		j.apply(h)
	}
	return j.file.Sync() // what a killed process left in the page cache is answered for from here on
}

func (j *journal) headerAt(off, size int64) (header, bool) {
	b := make([]byte, headerSize)
	n, _ := j.file.ReadAt(b, off) // what cannot be read is no header
	h, ok := decode(b[:n], off)
	return h, ok && off+headerSize+int64(h.size) <= size
}

// apply makes the record at the end a part of the map.
func (j *journal) apply(h header) {
	delete(j.blobs, h.addr)
	if h.kind == kindPut {
		j.blobs[h.addr] = place{j.end, h.size, h.sum}
	}
	j.end += headerSize + int64(h.size)
}

// append writes a record. If it cannot, it cuts the file back, so that no later open finds half of it.
func (j *journal) append(h header, data []byte) error {
	err := j.write(h, data)
	if err == nil {
		j.apply(h)
		return nil
	}
	back := j.file.Truncate(j.end)
	if back == nil {
		back = j.file.Sync()
	}
	if back != nil && j.failed == nil {
		j.failed = blobstor.Failed(back)
	}
	return err
}

// write makes the payload durable before the header that gives it a name: after a crash a header without its
// payload is damage, never the rest of a Put.
func (j *journal) write(h header, data []byte) error {
	if _, err := j.file.WriteAt(data, j.end+headerSize); err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(h.encode(j.end), j.end); err != nil {
		return err
	}
	return j.sync()
}

// sync ends all writing if it fails: nobody knows then what the disk holds.
func (j *journal) sync() error {
	if err := j.file.Sync(); err != nil {
		j.failed = blobstor.Failed(err)
	}
	return j.failed
}

// read appends a verified payload to dst, and returns dst as it was if there is none.
func (j *journal) read(p place, dst []byte) ([]byte, error) {
	n := len(dst)
	all := slices.Grow(dst, int(p.size))[:n+int(p.size)]
	if _, err := j.file.ReadAt(all[n:], p.off+headerSize); err != nil {
		return dst, err
	}
	if checksum(all[n:]) != p.sum {
		return dst, blobstor.ErrCorrupt
	}
	return all, nil
}
