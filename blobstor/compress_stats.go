package blobstor

import "sync/atomic"

// CompressStats are counters since [Compress].
type CompressStats struct {
	Puts    uint64 // blobs given to the storage
	Bytes   uint64 // of these blobs
	Stored  uint64 // of their frames
	Corrupt uint64 // frames that did not restore their blob, once for each call that met one
}

type compressCounters struct{ puts, bytes, stored, corrupt atomic.Uint64 }

func (c *compressCounters) put(size, stored int64) {
	c.puts.Add(1)
	c.bytes.Add(uint64(size))
	c.stored.Add(uint64(stored))
}

// Stats returns the counters, each exact by itself.
func (c *Compressed) Stats() CompressStats {
	return CompressStats{c.stats.puts.Load(), c.stats.bytes.Load(), c.stats.stored.Load(), c.stats.corrupt.Load()}
}
