package blobstor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "write the golden frames again, for a new version of the format")

// oneFrame is a storage with one blob, which is bytes that a stranger made.
type oneFrame struct {
	Storage
	frame []byte
}

func (o *oneFrame) Get(_ context.Context, _ Address, _ Location, dst []byte) ([]byte, error) {
	return append(dst, o.frame...), nil
}

func (o *oneFrame) Stat(context.Context, Address, Location) (Info, error) {
	return Info{Size: int64(len(o.frame)), Stored: int64(len(o.frame))}, nil
}

// readFrame reads a frame in every way, and fails unless each way either returns want or is an error that says why.
// It reports whether all of them returned it.
func readFrame(t testing.TB, frame, want []byte, limit int64) bool {
	t.Helper()
	c, err := Compress(&oneFrame{frame: frame}, &CompressOptions{MaxSize: limit})
	if err != nil {
		t.Fatal(err)
	}
	whole := true
	see := func(way string, got, want []byte, err error) {
		t.Helper()
		if err != nil {
			whole = false
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrLayout) && !errors.Is(err, ErrOutOfRange) {
				t.Fatalf("%s: %v", way, err)
			}
		} else if want != nil && !bytes.Equal(got, want) {
			t.Fatalf("%s: other bytes than were put", way)
		}
	}
	got, err := c.Get(context.Background(), Address{}, "", nil)
	gets := err == nil
	see("Get", got, want, err)
	if want == nil {
		want = got
	}
	info, err := c.Stat(context.Background(), Address{}, "")
	see("Stat", nil, nil, err)
	if err == nil && info.Size > limit {
		t.Fatalf("Stat: %d bytes, above the limit", info.Size)
	}
	for _, off := range []int{0, len(want) / 3, len(want) / 2, len(want)} {
		n := min(100, len(want)-off)
		got, err := GetRange(context.Background(), c, Address{}, "", int64(off), int64(n))
		if want != nil {
			see("GetRange", got, want[off:off+n], err)
		}
	}
	r, err := c.NewReader(context.Background(), Address{}, "")
	see("NewReader", nil, nil, err)
	if err == nil {
		defer r.Close()
		got, err := io.ReadAll(r)
		see("Read", got, want, err)
		if gets != (err == nil) {
			t.Fatalf("Get: %v, but reading all of it: %v", gets, err)
		}
		var b bytes.Buffer
		_, err = r.Seek(0, io.SeekStart)
		see("Seek", nil, nil, err)
		_, err = r.WriteTo(&b)
		see("WriteTo", b.Bytes(), want, err)
		if gets != (err == nil) {
			t.Fatalf("Get: %v, but writing all of it: %v", gets, err)
		}
	}
	return whole
}

// compressible returns n bytes that become shorter.
func compressible(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "granary keeps what it was given "[(i+i/97)%32]
	}
	return b
}

func testCodec(t testing.TB, o CompressOptions) *codec {
	t.Helper()
	c, err := newCodec(&o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hardToPack returns n bytes that no codec makes shorter.
func hardToPack(n int) []byte {
	b, x := make([]byte, n), uint64(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}

// blockOfBoth is a compressed block and a raw one.
func blockOfBoth() []byte { return append(compressible(4096), hardToPack(500)...) }

func frameOf(t testing.TB, data []byte) []byte {
	c := testCodec(t, CompressOptions{BlockSize: 4096})
	return c.appendFrame(nil, data, &workspace{})
}

// TestFrameEveryByteFlipped, and every truncation: a typed error or the right bytes.
func TestFrameEveryByteFlipped(t *testing.T) {
	for _, data := range [][]byte{{}, []byte("x"), compressible(5000), hardToPack(5000), blockOfBoth()} {
		frame := frameOf(t, data)
		if !readFrame(t, frame, data, 1<<20) {
			t.Fatal("a whole frame was not read")
		}
		for i := range frame {
			for _, flip := range []byte{1, 0x80, 0xff} {
				bad := bytes.Clone(frame)
				bad[i] ^= flip
				if readFrame(t, bad, data, 1<<20) {
					t.Fatalf("byte %d of %d was changed, and nobody noticed", i, len(frame))
				}
			}
			for _, cut := range [][]byte{frame[:i], frame[i+1:]} {
				if readFrame(t, cut, data, 1<<20) {
					t.Fatalf("%d of %d bytes were a frame", len(cut), len(frame))
				}
			}
		}
	}
}

// forge lets change alter a frame's shape and index, and makes the checksums right again.
func forge(frame []byte, change func(footer, index []byte)) []byte {
	b := bytes.Clone(frame)
	shape, err := parseFooter(b[len(b)-frameFooter:], int64(len(b)), 0)
	if err != nil {
		panic(err)
	}
	footer, index := b[len(b)-frameFooter:], b[shape.indexAt:len(b)-frameFooter]
	change(footer, index)
	binary.BigEndian.PutUint32(footer[16:], checksum(index))
	binary.BigEndian.PutUint32(footer[20:], checksum(footer[:20]))
	return b
}

// TestForgedFrames have right checksums and say what cannot be.
func TestForgedFrames(t *testing.T) {
	frame := frameOf(t, append(compressible(8192), hardToPack(100)...))
	size := func(n uint64) func(_, _ []byte) {
		return func(footer, _ []byte) { binary.BigEndian.PutUint64(footer[8:], n) }
	}
	end := func(i int, n uint64) func(_, _ []byte) {
		return func(_, index []byte) { binary.BigEndian.PutUint64(index[i*frameEntry:], n) }
	}
	set := func(at int, v byte) func(_, _ []byte) { return func(footer, _ []byte) { footer[at] = v } }
	for name, change := range map[string]func(footer, index []byte){
		"size above the limit":        size(1<<20 + 1),
		"negative size":               size(1 << 63),
		"size that overflows":         size(1<<63 - 1),
		"more blocks than there is":   size(1 << 19),
		"a size with another content": size(8192 + 99),
		"a smaller size":              size(1),
		"empty with blocks":           size(0),
		"block behind the end":        end(0, 1<<40),
		"block with a negative size":  end(1, 1),
		"block that is empty":         end(0, 0),
		"end that is negative":        end(2, 1<<63),
		"last block too short":        end(2, 200),
		"raw block of two checksums":  func(_, index []byte) { index[2*frameEntry+8] ^= 1 },
		"blocks of other sizes":       set(6, minBlockLog+1),
		"no block size":               set(6, 0),
		"a huge block size":           set(6, 63),
		"codec raw":                   set(5, frameRaw),
		"unknown codec":               set(5, 9),
		"a later version":             set(4, frameVersion+1),
		"a reserved byte":             set(7, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if readFrame(t, forge(frame, change), nil, 1<<20) {
				t.Error("it was read")
			}
		})
	}
	raw := forge(frameOf(t, hardToPack(8192)), func(_, index []byte) { index[8] ^= 1 })
	if readFrame(t, raw, nil, 1<<20) {
		t.Error("a raw frame with two checksums of a block was read")
	}
}

// TestBomb: a block that decodes to far more than it may costs what it may.
func TestBomb(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string][]byte{
		"declared":     enc.EncodeAll(make([]byte, 256<<20), nil),
		"undeclared":   undeclared(t, 256<<20),
		"many frames":  bytes.Repeat(enc.EncodeAll(make([]byte, 1<<20), nil), 20),
		"skippable":    append([]byte{0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0x7f}, 1, 2, 3),
		"huge window":  {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0, 0},
		"not a frame":  []byte("this is no zstd frame"),
		"nothing more": {0x28, 0xb5, 0x2f, 0xfd},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 128 << 10
			index := frameIndex(nil).add(int64(len(block)), checksum(block), 0)
			shape := frameShape{size: size, codec: frameZstd, blockLog: 17, indexCRC: checksum(index)}
			if len(block) >= size {
				t.Fatalf("a block of %d bytes is none of a frame", len(block))
			}
			frame := appendFooter(append(bytes.Clone(block), index...), &shape)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if readFrame(t, frame, nil, 1<<20) {
				t.Error("it was read")
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
				t.Errorf("%d bytes were allocated", got)
			}
		})
	}
}

// undeclared is a zstd frame of n zeros that does not say so.
func undeclared(t *testing.T, n int) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range n >> 20 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGoldenFrames: frames of version 1 are read for ever. What zstd writes may change with its release, so of frames
// that compress only reading is fixed.
func TestGoldenFrames(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": {}, "raw": hardToPack(5000), "zstd": compressible(10_000), "both": blockOfBoth(),
	} {
		path := filepath.Join("testdata", "frame-v1-"+name)
		if *update {
			if err := os.WriteFile(path, frameOf(t, data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !readFrame(t, golden, data, 1<<20) {
			t.Errorf("%s is not read", name)
		}
		if now := frameOf(t, data); (name == "empty" || name == "raw") && !bytes.Equal(now, golden) {
			t.Errorf("%s is written in another way", name)
		}
	}
}

// FuzzFrame: whatever is stored as a frame, all ways to read agree, and nothing above the limit comes out.
func FuzzFrame(f *testing.F) {
	for _, data := range [][]byte{{}, []byte("x"), compressible(5000), hardToPack(5000), blockOfBoth()} {
		f.Add(frameOf(f, data), false)
		f.Add(frameOf(f, data), true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, fix bool) {
		if fix && len(frame) >= frameFooter { // let the fuzzer past the checksums
			footer := frame[len(frame)-frameFooter:]
			s := frameShape{size: int64(binary.BigEndian.Uint64(footer[8:])), blockLog: footer[6] & 31}
			if n := s.indexSize(); n >= 0 && n <= int64(len(frame)-frameFooter) {
				index := frame[int64(len(frame)-frameFooter)-n : len(frame)-frameFooter]
				frame = bytes.Clone(frame)
				footer = frame[len(frame)-frameFooter:]
				binary.BigEndian.PutUint32(footer[16:], checksum(index))
				copy(footer, frameMagic)
				binary.BigEndian.PutUint32(footer[20:], checksum(footer[:20]))
			}
		}
		readFrame(t, frame, nil, 1<<16)
	})
}

// FuzzCompress: what goes in comes out, and so does every range.
func FuzzCompress(f *testing.F) {
	f.Add([]byte{}, 0, 0)
	f.Add(compressible(9000), 4095, 2)
	f.Add(blockOfBoth(), 4090, 20)
	c := testCodec(f, CompressOptions{BlockSize: 4096})
	f.Fuzz(func(t *testing.T, data []byte, off, n int) {
		frame := c.appendFrame(nil, data, &workspace{})
		if !readFrame(t, frame, data, 1<<30) {
			t.Fatal("not read")
		}
		s := &Compressed{s: Stream(&oneFrame{frame: frame}), codec: c, limit: 1 << 30}
		got, err := GetRange(context.Background(), s, Address{}, "", int64(off), int64(n))
		if off < 0 || n < 0 || off > len(data) || n > len(data)-off {
			if !errors.Is(err, ErrOutOfRange) {
				t.Fatalf("GetRange(%d, %d) of %d: %v", off, n, len(data), err)
			}
		} else if err != nil || !bytes.Equal(got, data[off:off+n]) {
			t.Fatalf("GetRange(%d, %d) of %d: %d bytes, %v", off, n, len(data), len(got), err)
		}
	})
}
