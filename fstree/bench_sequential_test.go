package fstree

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// streamer writes and reads large blobs by number, in its own way but in pieces of the same size.
type streamer struct {
	write func(n int) error
	read  func(n int) error
	path  func(n int) string
}

// BenchmarkSequential streams a large blob out or in; one op is a whole one. engine=plain is a loop over a plain
// file: writes and an fdatasync, or reads. op=read finds the file in the page cache, op=coldread on the disk where
// the system can be told so. Each write leaves its file there until the process ends.
func BenchmarkSequential(b *testing.B) {
	size := 1 << 30
	if testing.Short() {
		size = 4 << 20
	}
	engines := []struct {
		name string
		open func(b *testing.B, dir string, size int) streamer
	}{{"granary", treeStreams}, {"plain", plainStreams}}
	for _, op := range []string{"write", "read", "coldread"} {
		for _, e := range engines {
			b.Run(fmt.Sprintf("op=%s/size=%s/engine=%s", op, sizeName(size), e.name), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				s := e.open(b, benchDir(b), size)
				if op == "write" {
					benchWrites(b, s)
				} else {
					benchReads(b, s, op == "coldread")
				}
			})
		}
	}
}

func benchWrites(b *testing.B, s streamer) {
	b.ResetTimer()
	for n := range b.N {
		check(b, s.write(n))
	}
}

func benchReads(b *testing.B, s streamer, cold bool) {
	check(b, s.write(0))
	b.ResetTimer()
	for range b.N {
		if cold {
			b.StopTimer()
			dropFile(b, s.path(0))
			b.StartTimer()
		}
		check(b, s.read(0))
	}
}

func treeStreams(b *testing.B, dir string, size int) streamer {
	tree := reopen(b, dir, Options{})
	openAll(b, tree)
	piece := content(1, 1<<20)
	return streamer{
		write: func(n int) error {
			w, err := tree.NewWriter(ctx, int64(size))
			if err != nil {
				return err
			}
			defer w.Close()
			for range size / len(piece) {
				if _, err := w.Write(piece); err != nil {
					return err
				}
			}
			_, err = w.Commit(address(n))
			return err
		},
		read: func(n int) error {
			r, err := tree.NewReader(ctx, address(n), "")
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = r.WriteTo(io.Discard)
			return err
		},
		path: func(n int) string { return pathOf(tree, address(n)) },
	}
}

func plainStreams(b *testing.B, dir string, size int) streamer {
	check(b, os.MkdirAll(dir, 0o700))
	path := func(n int) string { return filepath.Join(dir, fmt.Sprint(n)) }
	piece, buf := content(1, 1<<20), make([]byte, bufferSize)
	return streamer{
		write: func(n int) error {
			f, err := os.Create(path(n))
			if err != nil {
				return err
			}
			defer f.Close()
			for range size / len(piece) {
				if _, err := f.Write(piece); err != nil {
					return err
				}
			}
			return datasync(f)
		},
		read: func(n int) error {
			f, err := os.Open(path(n))
			if err != nil {
				return err
			}
			defer f.Close()
			for err == nil {
				_, err = f.Read(buf)
			}
			if err == io.EOF {
				return nil
			}
			return err
		},
		path: path,
	}
}
