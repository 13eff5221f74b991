package storagetest

import (
	"bytes"
	"errors"
	"io"
	"testing/iotest"

	"github.com/granary-store/granary/blobstor"
)

// Law 6 again: Readers.
var readers = []clause{
	{"law6/readers obey io.ReaderAt", reading, func(f *fixture) {
		var blobs []blob
		for _, n := range []int{0, 1, 100, 5000} {
			blobs = append(blobs, f.put(n))
		}
		s := f.ready()
		for _, b := range blobs {
			r := f.reader(s, b)
			f.ok("iotest.TestReader", iotest.TestReader(r, b.data))
			if r.Size() != int64(len(b.data)) {
				f.Fatalf("Size of a Reader: %d, want %d", r.Size(), len(b.data))
			}
			f.ok("Close of a Reader", r.Close())
		}
	}},
	{"law6/readers read at edges", reading, func(f *fixture) {
		b := f.put(70_000)
		s := f.ready()
		r := f.reader(s, b)
		size := int64(len(b.data))
		for _, off := range edges(size) {
			for _, n := range edges(size) {
				if n >= 0 && n <= size+1000 {
					f.checkReadAt(r, b, off, int(n))
				}
			}
		}
	}},
	{"law6/readers read on", reading, func(f *fixture) {
		b := f.put(200_000)
		s := f.ready()
		for _, piece := range []int{len(b.data)/3 + 1, 7777, 65_536} {
			r := f.reader(s, b)
			var got bytes.Buffer
			// The two wrappers hide WriteTo and ReadFrom, which would not read piece by piece.
			_, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{r}, make([]byte, piece))
			f.ok("Read", err)
			f.same(got.Bytes(), b.data)
		}
	}},
	{"law6/position of a reader", closes, func(f *fixture) {
		b := f.put(5000)
		s := f.ready()
		r := f.reader(s, b)
		head := make([]byte, min(10, len(b.data)))
		_, err := io.ReadFull(r, head)
		f.ok("ReadFull", err)
		f.same(head, b.data[:len(head)])
		_, err = r.ReadAt(make([]byte, 1), 0) // moves nothing
		f.ok("ReadAt", err)
		f.writesTo(r, b.data[len(head):])
		f.writesTo(r, nil)
		_, err = r.Seek(-int64(len(head)), io.SeekEnd)
		f.ok("Seek", err)
		rest, err := io.ReadAll(r)
		f.ok("ReadAll", err)
		f.same(rest, b.data[len(b.data)-len(head):])
		if _, err = r.Seek(-1, io.SeekStart); err == nil {
			f.Fatalf("Seek before the start: no error")
		}
		_, err = r.Seek(0, io.SeekStart)
		f.ok("Seek", err)
		f.writesTo(r, b.data)
	}},
	{"law6/reader shared by goroutines", closes, func(f *fixture) {
		b := f.put(150_000)
		s := f.ready()
		r := f.reader(s, b)
		at := func(off int) func() error {
			return func() error {
				p := make([]byte, min(5000, len(b.data)-off))
				if _, err := r.ReadAt(p, int64(off)); err != nil {
					return err
				}
				if !bytes.Equal(p, b.data[off:off+len(p)]) {
					return errors.New("wrong content")
				}
				return nil
			}
		}
		n := len(b.data)
		f.ok("ReadAt at once", together(at(0), at(n/3), at(n/2), at(n/5), at(n/7)))
	}},
	{"law6/reader of a deleted blob", writing, func(f *fixture) {
		s := f.ready()
		b := f.put(100_000)
		r := f.reader(s, b)
		f.ok("Delete", s.Delete(f.ctx, b.addr, b.at))
		f.puts(5)
		// It may read on or notice, but never see what came after.
		got, err := io.ReadAll(r)
		if err == nil {
			f.same(got, b.data)
		} else {
			f.is("Read of a deleted blob", err, blobstor.ErrNotFound)
			f.same(got, b.data[:len(got)])
		}
	}},
	{"law6/writer that fails", closes, func(f *fixture) {
		b := f.put(100_000)
		s := f.ready()
		r := f.reader(s, b)
		broken := errors.New("the writer's own error")
		_, err := r.WriteTo(failingWriter{broken})
		f.is("WriteTo into a writer that fails", err, broken)
	}},
	{"law6/closed reader", closes, func(f *fixture) {
		b := f.put(1000)
		s := f.ready()
		r := f.reader(s, b)
		f.ok("Close", r.Close())
		r.Close()
		if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
			f.Fatalf("Read after Close: %d, %v", n, err)
		}
		if n, err := r.ReadAt(make([]byte, 10), 0); n != 0 || err == nil || err == io.EOF {
			f.Fatalf("ReadAt after Close: %d, %v", n, err)
		}
		f.has(s, b)
	}},
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// reader opens the blob; the Reader is closed with the test at the latest.
func (f *fixture) reader(s blobstor.Streamer, b blob) blobstor.Reader {
	f.Helper()
	r, err := s.NewReader(f.ctx, b.addr, b.at)
	f.ok("NewReader", err)
	f.Cleanup(func() { r.Close() })
	return r
}

func (f *fixture) writesTo(r blobstor.Reader, want []byte) {
	f.Helper()
	var buf bytes.Buffer
	n, err := r.WriteTo(&buf)
	f.ok("WriteTo", err)
	if n != int64(len(want)) {
		f.Fatalf("WriteTo: %d bytes, want %d", n, len(want))
	}
	f.same(buf.Bytes(), want)
}

// checkReadAt compares with the blob; io.EOF at the very end is left open by io.ReaderAt.
func (f *fixture) checkReadAt(r blobstor.Reader, b blob, off int64, n int) {
	f.Helper()
	room := append(make([]byte, n), canary...)
	got, err := r.ReadAt(room[:n], off)
	if !bytes.Equal(room[n:], canary) {
		f.Fatalf("ReadAt(%d bytes at %d) wrote behind its buffer", n, off)
	}
	if off < 0 {
		if got != 0 || err == nil {
			f.Fatalf("ReadAt(%d bytes at %d): %d, %v", n, off, got, err)
		}
		return
	}
	var want []byte
	if off < int64(len(b.data)) {
		want = b.data[off:min(off+int64(n), int64(len(b.data)))]
	}
	if got != len(want) || !bytes.Equal(room[:got], want) {
		f.Fatalf("ReadAt(%d bytes at %d) of %d: %d bytes", n, off, len(b.data), got)
	}
	if err != nil && err != io.EOF || got < n && err != io.EOF {
		f.Fatalf("ReadAt(%d bytes at %d) of %d: %d bytes and %v", n, off, len(b.data), got, err)
	}
}
