package blobstor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// CompressOptions are what [Compress] can be told. Reading depends on none of them but MaxSize: whatever was stored
// with one setting is read with any other.
type CompressOptions struct {
	// Level is how hard to try, on zstd's scale from 1, fast, to 22, small; 0 is 3. A negative one compresses
	// nothing.
	Level int

	// BlockSize is the number of bytes that are compressed together and that a read of any of them decodes: a
	// power of two from 4 KiB to 1 MiB; 0 is 128 KiB.
	BlockSize int

	// MaxSize is the largest blob in bytes, before compression; 0 is [DefaultMaxSize]. A stored frame that claims
	// more is refused as ErrCorrupt before memory is set aside for it.
	MaxSize int64

	// Hooks are called on events worth counting: here that is Corrupt only, for a frame that does not restore the
	// blob although the storage found it whole. Its Info has the address, and the location that was asked for.
	Hooks Hooks
}

// DefaultMaxSize is the largest blob in bytes that [Compress] stores or reads unless told otherwise.
const DefaultMaxSize = 4 << 30 // 4 GiB

const defaultBlockSize = 128 << 10 // 128 KiB

// Validate reports every field that has no meaning.
func (o *CompressOptions) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("blobstor: "+format, args...)) }
	if o.Level > 22 {
		bad("level %d is above 22", o.Level)
	}
	if n := o.BlockSize; n != 0 && (n < 1<<minBlockLog || n > 1<<maxBlockLog || n&(n-1) != 0) {
		bad("a block size of %d is no power of two from 4 KiB to 1 MiB", n)
	}
	if o.MaxSize < 0 {
		bad("MaxSize is negative")
	}
	return errors.Join(errs...)
}

func (o *CompressOptions) level() int {
	if o.Level <= 0 {
		return 3
	}
	return o.Level
}

func (o *CompressOptions) blockLog() uint8 {
	if o.BlockSize == 0 {
		return uint8(bits.Len(defaultBlockSize - 1))
	}
	return uint8(bits.Len(uint(o.BlockSize - 1)))
}

// Compressed is a [BlobStor] that compresses what it gives to another storage. [Compress] makes it.
type Compressed struct {
	s       BlobStor
	codec   *codec
	limit   int64
	hooks   Hooks
	streams bool // s streams by itself
	closed  atomic.Bool
	stats   compressCounters
}

var (
	_ BlobStor    = (*Compressed)(nil)
	_ RangeReader = (*Compressed)(nil)
	_ Batcher     = (*Compressed)(nil)
)

// Compress returns a storage that keeps blobs compressed in s, and an error that names every bad option. Every blob
// is cut into blocks which are compressed alone, so that reading a range costs the blocks it touches. A block that
// does not become shorter, or does not look as if it would, is kept as it is. Bytes are verified before and after
// they are decoded: a frame that is damaged, or no frame at all, is ErrCorrupt. All that s promises holds for the
// result, which stores nothing itself; locations are those of s, whose limit binds the frame and not the blob.
// Sizes are those of the blobs, except that in All they are -1. Closing it closes s. Equal blobs make equal frames
// as long as level, block size and release are the same.
//
// Memory: a Put holds the compressed blob, or a few blocks if nothing of it was compressed and s has streams; a batch
// holds those of all items, a Get nothing but the result, and a Reader or Writer a few blocks. A Put of an address that
// is stored compresses all the same.
//
// Format. A frame is what s stores as a blob; integers are big-endian, checksums are CRC-32C.
//
//	blocks:  each raw, or a zstd frame if that is shorter, one after the other
//	index:   for each block 16 bytes:
//	         offset of its end 8, checksum as stored 4, checksum of its content 4
//	footer:  magic b1 47 52 5a, version 1 (1), codec 1 (0: all blocks raw, 1: zstd), log2 of the block size 1,
//	         zero 1, bytes of the blob 8, checksum of the index 4, checksum of the 20 bytes before 4
//
// The content of every block has the block size, except that the last may be shorter; a block is raw if and only
// if it is as long as its content. So a blob that is not compressed begins at offset 0, and an empty one is a
// footer.
func Compress(s Storage, opts *CompressOptions) (*Compressed, error) {
	if opts == nil {
		opts = &CompressOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	codec, err := newCodec(opts)
	if err != nil {
		return nil, err
	}
	limit := opts.MaxSize
	if limit == 0 {
		limit = DefaultMaxSize
	}
	_, streams := s.(Streamer)
	return &Compressed{s: Stream(s), codec: codec, limit: limit, hooks: opts.Hooks, streams: streams}, nil
}

// check says whether a call may go on.
func (c *Compressed) check(ctx context.Context) error {
	if c.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// admit says whether a blob of size bytes may be put.
func (c *Compressed) admit(ctx context.Context, size int64) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	if size > c.limit {
		return ErrTooLarge
	}
	return nil
}

// report wraps an error of this package and tells the hook of a frame that is damaged. Errors of the storage pass:
// it reports them itself.
func (c *Compressed) report(op string, addr Address, at Location, err error) error {
	if _, inner := errors.AsType[*Error](err); err == nil || inner {
		return err
	}
	err = Wrap(op, addr, at, err)
	if errors.Is(err, ErrCorrupt) {
		c.stats.corrupt.Add(1)
		if c.hooks.Corrupt != nil {
			c.hooks.Corrupt(Info{Address: addr, Location: at, Size: -1}, err)
		}
	}
	return err
}

// Put stores the blob's frame.
func (c *Compressed) Put(ctx context.Context, addr Address, data []byte) (Location, error) {
	if err := c.admit(ctx, int64(len(data))); err != nil {
		return "", Wrap("put", addr, "", err)
	}
	if c.streams && len(data) >= streamedSize && !c.codec.packsSome(data) {
		at, err := c.putStream(ctx, addr, data)
		if !errors.Is(err, ErrNoSpace) {
			return at, err
		}
		// A router finds another route for a Put, and for a stream only at its beginning.
	}
	w := c.codec.takeSpace()
	defer c.codec.giveSpace(w)
	w.frame = c.codec.appendFrame(w.frame[:0], data, w)
	at, err := c.s.Put(ctx, addr, w.frame)
	if err == nil {
		c.stats.put(int64(len(data)), int64(len(w.frame)))
	}
	return at, err
}

// streamedSize is the size from which on a blob that stays as it is goes to the storage piece by piece, for a frame
// in one piece would be a copy of it.
const streamedSize = 1 << 20 // 1 MiB

// putStream stores a blob of which no block becomes shorter.
func (c *Compressed) putStream(ctx context.Context, addr Address, data []byte) (at Location, err error) {
	w, err := c.newWriter(ctx, int64(len(data)), c.codec.rawFrame(int64(len(data))))
	if err == nil {
		defer w.Close()
		if _, err = w.Write(data); err == nil {
			at, err = w.Commit(addr)
		}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		err = Wrap("put", addr, "", e.Err) // a stream's Write did not know the address
	}
	return at, err
}

// Get appends the blob to dst.
func (c *Compressed) Get(ctx context.Context, addr Address, at Location, dst []byte) ([]byte, error) {
	w := c.codec.takeSpace()
	defer c.codec.giveSpace(w)
	f, err := c.open(ctx, addr, at, c.frameSize(), w)
	if err == nil && f.size > int64(math.MaxInt-len(dst)) {
		err = ErrTooLarge // for the memory of a 32-bit system
	}
	if err != nil {
		return dst, c.report("get", addr, at, err)
	}
	out := dst
	if out == nil {
		out = make([]byte, 0, f.size)
	}
	out = slices.Grow(out, int(f.size))[:len(dst)+int(f.size)]
	if err := f.read(out[len(dst):], 0, w); err != nil {
		return dst, c.report("get", addr, at, err)
	}
	return out, nil
}

// rangeFirst is how much of a frame is read to learn about it: all of a small one, and little of one of which only a
// range is wanted.
const rangeFirst = 4 << 10

// ReadRange decodes the blocks that the range touches.
func (c *Compressed) ReadRange(ctx context.Context, addr Address, at Location, p []byte, off int64) (int, int64, error) {
	w := c.codec.takeSpace()
	defer c.codec.giveSpace(w)
	f, err := c.open(ctx, addr, at, rangeFirst, w)
	if err != nil {
		return 0, 0, c.report("read range", addr, at, err)
	}
	if off < 0 || off > f.size {
		return 0, f.size, Wrap("read range", addr, at, ErrOutOfRange)
	}
	n := int(min(int64(len(p)), f.size-off))
	if err := f.read(p[:n], off, w); err != nil {
		return 0, f.size, c.report("read range", addr, at, err)
	}
	return n, f.size, nil
}

// Stat reports the blob's size from the frame's footer.
func (c *Compressed) Stat(ctx context.Context, addr Address, at Location) (Info, error) {
	info, err := c.s.Stat(ctx, addr, at)
	if err != nil {
		return Info{}, err
	}
	w := c.codec.takeSpace()
	defer c.codec.giveSpace(w)
	w.tail = room(w.tail, frameFooter)
	n, _, err := ReadRange(ctx, c.s, addr, info.Location, w.tail, max(0, info.Size-frameFooter))
	if err != nil {
		return Info{}, err
	}
	shape, err := parseFooter(w.tail[:n], info.Size, c.limit)
	if err != nil {
		return Info{}, c.report("stat", addr, info.Location, err)
	}
	info.Size = shape.size
	return info, nil
}

// Delete removes the blob.
func (c *Compressed) Delete(ctx context.Context, addr Address, at Location) error {
	return c.s.Delete(ctx, addr, at)
}

// DeleteBatch removes the blobs of the items.
func (c *Compressed) DeleteBatch(ctx context.Context, items []Item) error {
	return DeleteBatch(ctx, c.s, items)
}

// All iterates in the order of the storage. Sizes are -1: only the frame would tell.
func (c *Compressed) All(ctx context.Context, after Location) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range c.s.All(ctx, after) {
			info.Size = -1
			if !yield(info, err) {
				return
			}
		}
	}
}

// Close closes the storage.
func (c *Compressed) Close() error {
	c.closed.Store(true)
	return c.s.Close()
}
