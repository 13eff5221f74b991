package blobstor

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Part of the format, never change. The comment of [Compress] shows the layout.
const (
	frameMagic   = "\xb1GRZ"
	frameVersion = 1

	frameRaw  = 0 // codec of a frame whose blocks all are as they were
	frameZstd = 1

	frameFooter = 24
	frameEntry  = 16

	minBlockLog = 12 // 4 KiB
	maxBlockLog = 20 // 1 MiB
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// corruptFrame is damage to a frame, or something that is no frame.
func corruptFrame(format string, args ...any) error {
	return fmt.Errorf("%w: frame: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// frameShape is what the footer says of a frame.
type frameShape struct {
	size     int64 // bytes of the blob
	codec    byte
	blockLog uint8 // of the bytes of a block before compression; the last may be shorter
	indexAt  int64 // bytes of all blocks as stored
	indexCRC uint32
}

// blocks returns how many there are.
func (s *frameShape) blocks() int64 {
	n := s.size >> s.blockLog
	if s.size&(1<<s.blockLog-1) != 0 {
		n++
	}
	return n
}

func (s *frameShape) indexSize() int64 { return s.blocks() * frameEntry }

// rawLen is the length of block i before compression.
func (s *frameShape) rawLen(i int64) int { return int(min(1<<s.blockLog, s.size-i<<s.blockLog)) }

func appendFooter(b []byte, s *frameShape) []byte {
	at := len(b)
	b = append(b, frameMagic...)
	b = append(b, frameVersion, s.codec, s.blockLog, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(s.size))
	b = binary.BigEndian.AppendUint32(b, s.indexCRC)
	return binary.BigEndian.AppendUint32(b, checksum(b[at:]))
}

// parseFooter reads the last bytes of a frame of stored bytes. A blob above the limit is refused before anybody
// makes room for it; 0 is none.
func parseFooter(b []byte, stored, limit int64) (s frameShape, err error) {
	switch {
	case len(b) < frameFooter:
		return s, corruptFrame("too short")
	case string(b[:4]) != frameMagic || binary.BigEndian.Uint32(b[20:]) != checksum(b[:20]):
		return s, corruptFrame("no footer")
	case b[4] != frameVersion || b[5] > frameZstd || b[7] != 0:
		return s, fmt.Errorf("%w: frame of version %d with codec %d", ErrLayout, b[4], b[5])
	case b[6] < minBlockLog || b[6] > maxBlockLog:
		return s, corruptFrame("blocks of 2^%d bytes", b[6])
	}
	s.codec, s.blockLog, s.indexCRC = b[5], b[6], binary.BigEndian.Uint32(b[16:])
	s.size = int64(binary.BigEndian.Uint64(b[8:]))
	if s.size < 0 || limit > 0 && s.size > limit {
		return s, corruptFrame("a blob of %d bytes, %d are allowed", uint64(s.size), limit)
	}
	if s.blocks() > (stored-frameFooter)/frameEntry {
		return s, corruptFrame("%d blocks in %d bytes", s.blocks(), stored)
	}
	s.indexAt = stored - frameFooter - s.indexSize()
	if s.indexAt > s.size || s.codec == frameRaw && s.indexAt != s.size {
		return s, corruptFrame("%d bytes of blocks for a blob of %d", s.indexAt, s.size)
	}
	return s, nil
}

// frameIndex is the index as stored: for each block where it ends, and the checksums of its bytes as stored and
// before compression.
type frameIndex []byte

func (x frameIndex) add(end int64, stored, raw uint32) frameIndex {
	x = binary.BigEndian.AppendUint64(x, uint64(end))
	x = binary.BigEndian.AppendUint32(x, stored)
	return binary.BigEndian.AppendUint32(x, raw)
}

// end returns where block i ends, which is where the next one begins; -1 is the block before the first.
func (x frameIndex) end(i int64) int64 {
	if i < 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(x[i*frameEntry:]))
}

func (x frameIndex) storedCRC(i int64) uint32 { return binary.BigEndian.Uint32(x[i*frameEntry+8:]) }
func (x frameIndex) rawCRC(i int64) uint32    { return binary.BigEndian.Uint32(x[i*frameEntry+12:]) }

// check verifies the index: from here on every block lies inside the frame, none is longer than its content, and one
// that is its content has the checksum of that.
func (x frameIndex) check(s *frameShape) error {
	if checksum(x) != s.indexCRC {
		return corruptFrame("damaged index")
	}
	n := s.blocks()
	for i := range n {
		length, raw := x.end(i)-x.end(i-1), int64(s.rawLen(i))
		if length <= 0 || length > raw {
			return corruptFrame("block %d of %d bytes", i, length)
		}
		if length == raw && x.storedCRC(i) != x.rawCRC(i) {
			return corruptFrame("block %d with two checksums", i)
		}
	}
	if x.end(n-1) != s.indexAt {
		return corruptFrame("blocks end at %d, the index begins at %d", x.end(n-1), s.indexAt)
	}
	return nil
}
