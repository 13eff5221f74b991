package fstree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/granary-store/granary/blobstor"
)

var errSource = errors.New("the source's own error")

// only hides all but Read.
type only struct{ io.Reader }

// sources are ways in which a reader may give its bytes.
var sources = map[string]func(r io.Reader) io.Reader{
	"whole":             func(r io.Reader) io.Reader { return r },
	"halves":            iotest.HalfReader,
	"EOF with the data": iotest.DataErrReader,
	"idle": func(r io.Reader) io.Reader {
		calls := 0
		return readFunc(func(p []byte) (int, error) {
			if calls++; calls%(maxIdle/2) != 0 {
				return 0, nil
			}
			return r.Read(p)
		})
	},
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestReadFrom copies from all sources at all edges, before and behind bytes that were written.
func TestReadFrom(t *testing.T) {
	tree := create(t, Options{NoSync: true})
	n := 0
	for name, source := range sources {
		for _, before := range []int{0, 1, blockSize, bufferSize - 1, bufferSize} {
			for _, size := range []int{
				0, 1, blockSize - 1, blockSize, blockSize + 1, bufferSize - 1, bufferSize, 2*bufferSize + blockSize + 7,
			} {
				const after = 10
				n++
				want := content(n, before+size+after)
				w, err := tree.NewWriter(ctx, int64(len(want)))
				check(t, err)
				_, err = w.Write(want[:before])
				check(t, err)
				copied, err := io.Copy(w, source(only{bytes.NewReader(want[before:][:size])}))
				if err != nil || copied != int64(size) {
					t.Fatalf("%s, %d bytes behind %d: copied %d, %v", name, size, before, copied, err)
				}
				_, err = w.Write(want[before+size:])
				check(t, err)
				_, err = w.Commit(address(n))
				check(t, err)
				has(t, tree, n, len(want))
			}
		}
	}
}

// TestReadFromBrokenSource: the error comes out as it is, what came before is taken, and the writer goes on.
func TestReadFromBrokenSource(t *testing.T) {
	tree := create(t, Options{})
	for n, broken := range []struct {
		src  io.Reader
		want error
	}{
		{iotest.ErrReader(errSource), errSource},
		{readFunc(func([]byte) (int, error) { return 0, nil }), io.ErrNoProgress},
		{readFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }), io.ErrUnexpectedEOF},
	} {
		const size, good = 2*bufferSize + 100, bufferSize + 50
		want := content(n, size)
		w, err := tree.NewWriter(ctx, size)
		check(t, err)
		copied, err := io.Copy(w, only{io.MultiReader(bytes.NewReader(want[:good]), broken.src)})
		if copied != good || err != broken.want {
			t.Fatalf("copied %d, %v, want %v", copied, err, broken.want)
		}
		_, err = io.Copy(w, only{bytes.NewReader(want[good:])})
		check(t, err)
		_, err = w.Commit(address(n))
		check(t, err)
		has(t, tree, n, size)
	}
}

// TestReadFromTooMuch: a source that holds more than is allowed fails the writer, and nothing is left.
func TestReadFromTooMuch(t *testing.T) {
	const limit = bufferSize + 10
	for _, announced := range []int64{-1, limit - 5, 3} {
		tree := create(t, Options{MaxSize: limit, rename: true})
		w, err := tree.NewWriter(ctx, announced)
		check(t, err)
		_, err = io.Copy(w, only{bytes.NewReader(content(1, limit+1))})
		refusedUse(t, err)
		if announced < 0 {
			checkIs(t, err, blobstor.ErrTooLarge)
		}
		_, again := w.Commit(address(1))
		refusedUse(t, again)
		lacks(t, tree, 1)
		if n := files(t, tree); n != 0 {
			t.Fatalf("%d files are left", n)
		}
	}
}

// TestReadFromEnded: a writer that has ended, or may not go on, takes nothing from the source.
func TestReadFromEnded(t *testing.T) {
	tree := create(t, Options{})
	untouched := readFunc(func([]byte) (int, error) {
		t.Error("the source is read")
		return 0, io.EOF
	})
	w, err := tree.NewWriter(ctx, -1)
	check(t, err)
	check(t, w.Close())
	_, err = io.Copy(w, untouched)
	checkIs(t, err, blobstor.ErrClosed)

	cancelled, cancel := context.WithCancel(ctx)
	w, err = tree.NewWriter(cancelled, -1)
	check(t, err)
	defer w.Close()
	cancel()
	_, err = io.Copy(w, untouched)
	checkIs(t, err, context.Canceled)
}

// TestCloseBesideReadFrom closes the tree while a source keeps its reader waiting: Close does not wait, and the
// writer learns of it. The buffers it gave back stay its own as long as the source writes to them.
func TestCloseBesideReadFrom(t *testing.T) {
	dir := filepath.Join(memory(t), "store")
	tree := reopen(t, dir, Options{rename: true})
	w, err := tree.NewWriter(ctx, -1)
	check(t, err)
	asked, answer, done := make(chan []byte), make(chan struct{}), make(chan error)
	slow := readFunc(func(p []byte) (int, error) {
		asked <- p
		<-answer
		return copy(p, "late"), io.EOF
	})
	go func() {
		_, err := io.Copy(w, only{io.MultiReader(only{bytes.NewReader(content(1, bufferSize+1))}, slow)})
		done <- err
	}()
	late := <-asked
	check(t, tree.Close())
	tree = reopen(t, dir, Options{})
	for range 4 {
		if buf := buffers.Get().(*[bufferSize]byte); &buf[1] == &late[0] {
			t.Error("the buffer belongs to two")
		}
	}
	close(answer)
	checkIs(t, <-done, blobstor.ErrClosed)
	if n := files(t, tree); n != 0 {
		t.Fatalf("%d files are left", n)
	}
}
