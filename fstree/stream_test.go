package fstree

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/granary-store/granary/blobstor"
)

func TestReaderKeepsTheContract(t *testing.T) {
	tree := create(t, Options{})
	for n, size := range []int{0, 1, 100, blockSize, blockSize + 1} {
		put(t, tree, n, size)
		r, err := tree.NewReader(ctx, address(n), "")
		check(t, err)
		check(t, iotest.TestReader(r, content(n, size)))
		_, err = r.Seek(0, io.SeekStart)
		check(t, err)
		got, err := io.ReadAll(iotest.OneByteReader(r))
		if check(t, err); !bytes.Equal(got, content(n, size)) {
			t.Fatal("wrong content, byte by byte")
		}
		check(t, r.Close())
		check(t, r.Close())
	}
}

func TestWriterMisuse(t *testing.T) {
	tree := create(t, Options{MaxSize: 1000})
	w, err := tree.NewWriter(ctx, 10)
	check(t, err)
	_, err = w.Write(make([]byte, 11))
	refusedUse(t, err)
	_, err = w.Write(make([]byte, 1)) // It has failed.
	refusedUse(t, err)
	_, err = w.Commit(address(1))
	refusedUse(t, err)

	w, err = tree.NewWriter(ctx, 10)
	check(t, err)
	_, err = w.Commit(address(1))
	refusedUse(t, err)

	w, err = tree.NewWriter(ctx, -1)
	check(t, err)
	_, err = w.Write(make([]byte, 1001))
	checkIs(t, err, blobstor.ErrTooLarge)
	_, err = w.Commit(address(1))
	checkIs(t, err, blobstor.ErrTooLarge)

	w, err = tree.NewWriter(ctx, -1)
	check(t, err)
	check(t, w.Close())
	_, err = w.Commit(address(1))
	checkIs(t, err, blobstor.ErrClosed)
	_, err = tree.NewWriter(ctx, -2)
	refusedUse(t, err)
	lacks(t, tree, 1)
}

func refusedUse(t *testing.T, err error) {
	t.Helper()
	if err == nil || blobstor.IsFault(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
}

// TestHugeObject streams 4 GiB in and out in bounded memory, through a table of 65 pieces. It also reads ranges
// on both sides of a piece's end.
func TestHugeObject(t *testing.T) {
	size := int64(4 << 30)
	if testing.Short() {
		size = pieceSums*blockSize + 3*blockSize + 7
	}
	tree := create(t, Options{NoSync: true})
	peak := heapWatch(t)
	src := &cycle{data: content(1, 1<<20+13)}
	sum := crc32.New(castagnoli)
	w, err := tree.NewWriter(ctx, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w, sum)}, io.LimitReader(src, size), make([]byte, 777_777))
	if errors.Is(err, blobstor.ErrNoSpace) {
		t.Skip("there is no room for a huge object")
	}
	check(t, err)
	_, err = w.Commit(address(1))
	check(t, err)

	r, err := tree.NewReader(ctx, address(1), "")
	check(t, err)
	defer r.Close()
	if r.Size() != size {
		t.Fatalf("%d bytes", r.Size())
	}
	again := crc32.New(castagnoli)
	_, err = r.WriteTo(again)
	check(t, err)
	if again.Sum32() != sum.Sum32() {
		t.Fatal("what came out is not what went in")
	}
	piece := int64(pieceSums * blockSize)
	all := make([]byte, 2*blockSize)
	_, err = r.ReadAt(all, piece-blockSize)
	check(t, err)
	part := make([]byte, 100)
	_, _, err = tree.ReadRange(ctx, address(1), "", part, piece-50)
	check(t, err)
	if !bytes.Equal(part, all[blockSize-50:][:100]) {
		t.Fatal("a range over the end of a piece is wrong")
	}
	if most := peak(); most > 64<<20 {
		t.Fatalf("the heap grew to %d MiB", most>>20)
	}
}

// cycle reads the same bytes again and again.
type cycle struct {
	data []byte
	next int
}

func (c *cycle) Read(p []byte) (int, error) {
	n := copy(p, c.data[c.next:])
	c.next = (c.next + n) % len(c.data)
	return n, nil
}

// heapWatch samples the live heap until the returned function, which returns the largest sample, is called.
func heapWatch(t *testing.T) (stop func() uint64) {
	t.Helper()
	runtime.GC() // of what other tests left
	quit, result := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-quit:
				result <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(quit); return <-result }
}
