package fstree

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/granary-store/granary/blobstor"
)

func openReader(t *testing.T, tree *Tree, n int) blobstor.Reader {
	t.Helper()
	r, err := tree.NewReader(ctx, address(n), "")
	check(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// TestReaderAtEveryEdge reads blobs that end at all borders, from positions at all borders.
func TestReaderAtEveryEdge(t *testing.T) {
	tree := create(t, Options{NoSync: true})
	edges := []int{0, 1, tailSize - footerSize, tailSize, blockSize, readSize, bufferSize, 2 * bufferSize, 2*bufferSize + blockSize}
	n := 0
	for _, edge := range edges {
		for _, size := range []int{edge - 1, edge, edge + 1} {
			if size < 0 {
				continue
			}
			n++
			want := content(n, size)
			put(t, tree, n, size)
			r := openReader(t, tree, n)
			if size <= blockSize+1 || !testing.Short() {
				check(t, iotest.TestReader(struct{ io.ReadSeeker }{r}, want)) // its ReadAt of every single byte is slow
			}
			for _, off := range edges {
				if off > size {
					break
				}
				_, err := r.Seek(int64(off), io.SeekStart)
				check(t, err)
				var got bytes.Buffer
				written, err := r.WriteTo(&got)
				if err != nil || written != int64(size-off) || !bytes.Equal(got.Bytes(), want[off:]) {
					t.Fatalf("WriteTo of %d bytes from %d: %d, %v", size, off, written, err)
				}
			}
		}
	}
}

// TestWriteToDamage: the blocks before the damaged one come, none of that one does.
func TestWriteToDamage(t *testing.T) {
	tree := create(t, Options{})
	const size = 3*bufferSize + 100
	want := content(1, size)
	for _, block := range []int{0, 1, bufferSize / blockSize, 2*bufferSize/blockSize + 1, size / blockSize} {
		put(t, tree, 1, size)
		mangle(t, tree, address(1), func(b []byte) []byte { b[block*blockSize+50] ^= 4; return b })
		for _, from := range []int{0, min(100, block*blockSize)} {
			r := openReader(t, tree, 1)
			_, err := r.Seek(int64(from), io.SeekStart)
			check(t, err)
			var got bytes.Buffer
			written, err := r.WriteTo(&got)
			checkIs(t, err, blobstor.ErrCorrupt)
			if written != int64(got.Len()) || !bytes.Equal(got.Bytes(), want[from:block*blockSize]) {
				t.Fatalf("block %d damaged, from %d: %d bytes came, %d said", block, from, got.Len(), written)
			}
			p := make([]byte, size-from)
			read, err := r.ReadAt(p, int64(from))
			checkIs(t, err, blobstor.ErrCorrupt)
			if !bytes.Equal(p[:read], want[from:block*blockSize]) {
				t.Fatalf("block %d damaged: ReadAt from %d gives %d bytes", block, from, read)
			}
		}
	}
}

// narrow is a writer that takes some bytes and then no more; err may be nil.
type narrow struct {
	room int
	err  error
	got  []byte
}

func (w *narrow) Write(p []byte) (int, error) {
	k := min(len(p), w.room-len(w.got))
	w.got = append(w.got, p[:k]...)
	if k < len(p) {
		return k, w.err
	}
	return k, nil
}

// TestWriteToNarrowWriter: the count is what the writer took, and the reader goes on right behind it.
func TestWriteToNarrowWriter(t *testing.T) {
	tree := create(t, Options{})
	const size = 2*bufferSize + blockSize + 1
	want := content(1, size)
	put(t, tree, 1, size)
	errNarrow := errors.New("narrow")
	for _, room := range []int{0, 1, blockSize - 1, blockSize, bufferSize - 1, bufferSize, bufferSize + 1, size - 1} {
		for _, err := range []error{errNarrow, nil} {
			r := openReader(t, tree, 1)
			w := &narrow{room: room, err: err}
			written, got := r.WriteTo(w)
			if err == nil {
				err = io.ErrShortWrite
			}
			if got != err || written != int64(room) {
				t.Fatalf("room for %d: wrote %d, %v", room, written, got)
			}
			rest, got := io.ReadAll(only{r})
			check(t, got)
			if !bytes.Equal(append(w.got, rest...), want) {
				t.Fatalf("room for %d: the rest has %d bytes", room, len(rest))
			}
		}
	}
}

// TestReaderClosedBesideReads: sixteen goroutines read until the reader is closed; what they get is right.
func TestReaderClosedBesideReads(t *testing.T) {
	tree := create(t, Options{})
	const size = 5*blockSize + 9
	want := content(1, size)
	put(t, tree, 1, size)
	r := openReader(t, tree, 1)
	check(t, tree.Delete(ctx, address(1), ""))
	var all, warm sync.WaitGroup
	for g := range uint64(16) {
		warm.Add(1)
		all.Go(func() {
			rng := rand.New(rand.NewPCG(g, 1))
			for i := 0; ; i++ {
				if i == 20 {
					warm.Done()
				}
				p := make([]byte, 1+rng.IntN(2*blockSize))
				off := rng.IntN(size)
				n, err := r.ReadAt(p, int64(off))
				switch {
				case errors.Is(err, blobstor.ErrClosed) && i >= 20:
					return
				case err != nil && err != io.EOF:
					t.Error(err)
				case !bytes.Equal(p[:n], want[off:min(off+len(p), size)]):
					t.Errorf("%d bytes at %d are wrong", n, off)
				}
				if t.Failed() {
					if i < 20 {
						warm.Done()
					}
					return
				}
			}
		})
	}
	warm.Wait()
	check(t, r.Close())
	all.Wait()
	for what, err := range map[string]error{
		"WriteTo": second(r.WriteTo(io.Discard)),
		"Read":    second(r.Read(make([]byte, 1))),
		"Seek":    second(r.Seek(0, io.SeekStart)),
	} {
		if !errors.Is(err, blobstor.ErrClosed) {
			t.Errorf("%s of a closed reader: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
