package fstree

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

const (
	tailSize = 4 << 10   // read at once from the end of a file: footer, the table of 62 MiB, or a whole tiny blob
	readSize = 256 << 10 // largest single read, so that its bytes are in the processor's cache when they are verified
)

// blob is an open file whose footer was verified. read is safe for concurrent use.
type blob struct {
	f       *durable.File
	p       place
	size    int64 // of the payload
	tail    []byte
	tailBuf [tailSize]byte

	mu       sync.Mutex // guards the piece of the table that was used last
	piece    []byte     // verified; empty if there is none
	pieceNo  int64
	pieceBuf [pieceSize]byte
}

// blobs are recycled by calls that open and close one.
var blobs = sync.Pool{New: func() any { return new(blob) }}

// blocks are buffers for a block of which only a part is wanted.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// load reads and verifies the footer of a file just opened.
func (b *blob) load(f *durable.File, p place) error {
	stored := f.OpenSize()
	b.f, b.p, b.piece = f, p, nil
	b.tail = b.tailBuf[:min(stored, tailSize)]
	if err := readFull(f, b.tail, stored-int64(len(b.tail))); err != nil {
		return err
	}
	var err error
	b.size, err = parseFooter(b.tail[max(0, len(b.tail)-footerSize):], p.addr, stored)
	return err
}

// free closes the file and gives the blob back. Nobody may use it any more.
func (b *blob) free() {
	b.f.Close() // It was only read from.
	b.f = nil
	blobs.Put(b)
}

func (b *blob) info() blobstor.Info {
	return blobstor.Info{Address: b.p.addr, Location: location(b.p.key), Size: b.size, Stored: b.f.OpenSize()}
}

// read fills p with the payload's bytes from off, all of them inside it, and returns how many verified bytes p
// starts with: all, or an error.
func (b *blob) read(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = b.readSome(p[n:], off+int64(n))
		n += k
	}
	return n, err
}

// readSome reads whole blocks straight into p, or a part of one through a buffer.
func (b *blob) readSome(p []byte, off int64) (int, error) {
	block := off / blockSize
	start := block * blockSize
	whole := min(blockSize, b.size-start)
	if off == start && int64(len(p)) >= whole {
		return b.readBlocks(p[:min(len(p), readSize)], block)
	}
	buf := blocks.Get().(*[blockSize]byte)
	defer blocks.Put(buf)
	if _, err := b.readBlocks(buf[:whole], block); err != nil {
		return 0, err
	}
	return copy(p, buf[off-start:whole]), nil
}

// readBlocks reads the whole blocks that fit into p, from the given one on.
func (b *blob) readBlocks(p []byte, block int64) (n int, err error) {
	left := b.size - block*blockSize
	if int64(len(p)) < left {
		p = p[:len(p)/blockSize*blockSize]
	}
	if err := b.fetch(p, block*blockSize); err != nil {
		return 0, err
	}
	for ; n < len(p); block++ {
		body := p[n:min(n+blockSize, len(p))]
		sum, err := b.sum(block)
		if err != nil {
			return n, err
		}
		if checksum(body) != sum {
			return n, fmt.Errorf("%w: block %d is damaged", blobstor.ErrCorrupt, block)
		}
		n += len(body)
	}
	return n, nil
}

// sum returns the checksum of a block, from a verified piece of the table.
func (b *blob) sum(block int64) (uint32, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if no := block / pieceSums; len(b.piece) == 0 || b.pieceNo != no {
		if err := b.loadPiece(no); err != nil {
			return 0, err
		}
	}
	return sumInPiece(b.piece, block%pieceSums), nil
}

func (b *blob) loadPiece(no int64) error {
	sums := min(pieceSums, blocksOf(b.size)-no*pieceSums)
	piece := b.pieceBuf[:4*sums+4]
	b.piece = nil
	if err := b.fetch(piece, b.size+no*pieceSize); err != nil {
		return err
	}
	if err := checkPiece(piece, b.tail[len(b.tail)-footerSize:], no); err != nil {
		return err
	}
	b.piece, b.pieceNo = piece, no
	return nil
}

// fetch reads from the file, or from the part of it that was read with the footer.
func (b *blob) fetch(p []byte, off int64) error {
	if in := off - (b.f.OpenSize() - int64(len(b.tail))); in >= 0 {
		copy(p, b.tail[in:])
		return nil
	}
	return readFull(b.f, p, off)
}

// trail is that of a stream of reads from off on.
func (b *blob) trail(off int64) trail { return trail{f: b.f, told: off, dropped: off} }

// verify reads the whole payload.
func (b *blob) verify() error { return b.through(b.trail(0), b.read) }

// through has the whole payload read, a buffer at a time.
func (b *blob) through(trail trail, read func(p []byte, off int64) (int, error)) error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for off := int64(0); off < b.size; off += bufferSize {
		trail.reading(off, b.size)
		if _, err := read(buf[:min(bufferSize, b.size-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// readFull reads all of p. An early end is damage: the file was longer when it was opened.
func readFull(f *durable.File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the file has become shorter", blobstor.ErrCorrupt)
	}
	return err
}
