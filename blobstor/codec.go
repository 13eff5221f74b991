package blobstor

import (
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// codec compresses and restores blocks. It is safe for concurrent use and owns no goroutine.
type codec struct {
	blockLog uint8
	off      bool // compress nothing
	enc      *zstd.Encoder
	dec      *zstd.Decoder
	spaces   sync.Pool // of *workspace
}

func newCodec(o *CompressOptions) (*codec, error) {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(o.level())),
		zstd.WithWindowSize(1<<o.blockLog()),
		zstd.WithSingleSegment(true),
		zstd.WithEncoderCRC(false), // the index has one
		zstd.WithEncoderConcurrency(0))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderMaxWindow(1<<maxBlockLog),
		zstd.WithDecoderMaxMemory(1<<maxBlockLog),
		zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderConcurrency(0))
	if err != nil {
		return nil, err
	}
	return &codec{blockLog: o.blockLog(), off: o.Level < 0, enc: enc, dec: dec}, nil
}

func (c *codec) blockSize() int { return 1 << c.blockLog }

// pack appends the block to dst compressed, and reports whether that is shorter; otherwise dst is as it was.
func (c *codec) pack(dst, raw []byte) ([]byte, bool) {
	if c.off || !promising(raw) {
		return dst, false
	}
	out := c.enc.EncodeAll(raw, dst)
	if len(out)-len(dst) >= len(raw) {
		return dst, false
	}
	return out, true
}

// packsSome reports whether one of the blob's blocks is worth a trial.
func (c *codec) packsSome(data []byte) bool {
	if c.off {
		return false
	}
	for block := range slices.Chunk(data, c.blockSize()) {
		if promising(block) {
			return true
		}
	}
	return false
}

// rawFrame returns the bytes of a frame of size bytes that stay as they are.
func (c *codec) rawFrame(size int64) int64 {
	shape := frameShape{size: size, blockLog: c.blockLog}
	return size + shape.indexSize() + frameFooter
}

// restore fills p with the content of block i, which is as long and stored like this.
func (c *codec) restore(p, stored []byte, i int64, x frameIndex) error {
	if checksum(stored) != x.storedCRC(i) {
		return corruptFrame("damaged block %d", i)
	}
	if len(stored) == len(p) { // it is the content
		copy(p, stored)
		return nil
	}
	if out, err := c.dec.DecodeAll(stored, p[:0:len(p)]); err != nil || len(out) != len(p) {
		return corruptFrame("block %d decodes to %d of %d bytes: %v", i, len(out), len(p), err)
	}
	if checksum(p) != x.rawCRC(i) {
		return corruptFrame("block %d is not what was compressed", i)
	}
	return nil
}

const (
	smallestBlock = 64 // shorter ones do not pay for the head of a zstd frame
	sampleSize    = 64 // bytes
	samples       = 4  // of a block
	tooMany       = 148
)

// promising reports whether samples of a block look as if it would become shorter. What is compressed or encrypted
// already does not, so that it costs no trial: of 256 random bytes 162 are different, give or take 6, while text has
// fewer than 100, and so has most of what can be compressed.
func promising(raw []byte) bool {
	if len(raw) < smallestBlock {
		return false
	}
	if len(raw) <= samples*sampleSize {
		return distinct(raw) < len(raw)*tooMany/(samples*sampleSize)
	}
	var picked [samples * sampleSize]byte
	for i := range samples {
		at := (len(raw) - sampleSize) / (samples - 1) * i
		copy(picked[i*sampleSize:], raw[at:at+sampleSize])
	}
	return distinct(picked[:]) < tooMany
}

// distinct returns how many different bytes there are.
func distinct(b []byte) (n int) {
	var seen [256]uint8
	for _, c := range b {
		seen[c] = 1
	}
	for _, s := range seen {
		n += int(s)
	}
	return n
}

// workspace is the memory of a call. What it holds of a frame is forgotten when it is given back.
type workspace struct {
	frame  []byte     // a whole frame, or several
	stored []byte     // blocks as stored
	index  frameIndex // of a frame that is made
	tail   []byte     // of a frame that is read
	block  []byte     // block no, restored
	no     int64      // -1: none
}

// keptSpace is how much memory a workspace that waits for its next use may have in one piece.
const keptSpace = 16 << 20 // 16 MiB

func (c *codec) takeSpace() *workspace {
	if w, ok := c.spaces.Get().(*workspace); ok {
		return w
	}
	return &workspace{no: -1}
}

func (c *codec) giveSpace(w *workspace) {
	w.no = -1
	if max(cap(w.frame), cap(w.index), cap(w.tail)) <= keptSpace { // the others are of a few blocks
		c.spaces.Put(w)
	}
}

// room returns b with a length of n, and of more capacity if it has too little. Its content is lost.
func room(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
