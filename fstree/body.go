package fstree

import (
	"sync"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

const (
	// reserveLimit is the smallest known size for which room is reserved in advance: a full disk then shows
	// before the bytes were sent.
	reserveLimit = 8 << 20

	// writeSize is the largest single write. Its checksums are made right before, so that they bring its bytes
	// into the processor's cache.
	writeSize = 256 << 10

	// copyLimit is the largest payload that is copied to go out with its trailer in one write: copying 16 KiB
	// costs less than a second call.
	copyLimit = 16 << 10
)

// body is a file that is being filled: a payload, and then its trailer.
type body struct {
	temp   *durable.Temp
	size   int64    // bytes of payload in the file
	sums   []uint32 // of their blocks
	out    []byte   // for the trailer
	noSync bool
	trail  trail
}

// bodies are recycled by puts.
var bodies = sync.Pool{New: func() any { return new(body) }}

// begin takes an empty file for a payload of size bytes, -1 if that is unknown. If there is no room for so many
// the error is that of a write.
func (b *body) begin(temp *durable.Temp, size int64, noSync bool) error {
	*b = body{temp: temp, noSync: noSync, sums: b.sums[:0], out: b.out[:0], trail: trail{f: temp}}
	if size < reserveLimit {
		return nil
	}
	return temp.Preallocate(storedSize(size))
}

// write appends whole blocks, or the end of the payload.
func (b *body) write(p []byte) error {
	for len(p) > 0 {
		piece := p[:min(len(p), writeSize)]
		b.sums = appendSums(b.sums, piece)
		if _, err := b.temp.Write(piece); err != nil {
			return err
		}
		b.size += int64(len(piece))
		if !b.noSync {
			b.trail.written(b.size)
		}
		p = p[len(piece):]
	}
	return nil
}

// finish appends the trailer.
func (b *body) finish(addr blobstor.Address) error {
	b.out = appendTrailer(b.out[:0], b.sums, addr, b.size)
	_, err := b.temp.Write(b.out)
	return err
}

// whole writes a payload and its trailer.
func (b *body) whole(addr blobstor.Address, data []byte) error {
	if len(data) > copyLimit {
		if err := b.write(data); err != nil {
			return err
		}
		return b.finish(addr)
	}
	b.sums = appendSums(b.sums, data)
	b.out = appendTrailer(append(b.out, data...), b.sums, addr, int64(len(data)))
	_, err := b.temp.Write(b.out)
	return err
}

// sync makes the file durable, unless the store leaves that to the system.
func (b *body) sync() error {
	if b.noSync {
		return nil
	}
	if err := b.temp.Datasync(); err != nil {
		return err
	}
	b.trail.synced(b.size)
	return nil
}

// appendSums appends the checksums of whole blocks, the last of which may be short.
func appendSums(sums []uint32, data []byte) []uint32 {
	for len(data) > 0 {
		n := min(len(data), blockSize)
		sums = append(sums, checksum(data[:n]))
		data = data[n:]
	}
	return sums
}
