package blobstor

import (
	"context"
	"io"
	"iter"
)

// Location is a hint where a storage put a blob; "" means unknown. It is binary, at most [MaxLocation] bytes,
// and sorts in the order of [Storage.All]. Keeping it is optional: every method accepts any location.
type Location string

const (
	// MaxLocation is the longest location in bytes that a program meets.
	MaxLocation = 24
	// MaxInnerLocation is the longest one that a storage may return which serves as a route: a route name of
	// 8 bytes and a '/' come before it.
	MaxInnerLocation = 15
)

// Info describes a stored blob.
type Info struct {
	Address  Address
	Location Location
	Size     int64 // bytes that Get returns; -1 in All where only reading the blob would tell (compression)
	Stored   int64 // bytes on disk, headers and padding included
}

// Item is an element of a batch. The callee fills Location and Err in place.
type Item struct {
	Address  Address
	Location Location
	Data     []byte
	Err      error
}

// Storage keeps immutable blobs under addresses. The package comment states the laws that bind all methods.
type Storage interface {
	// Put stores data under addr and returns where it went. When it returns nil, blob and name are durable. A
	// stored address keeps its content and Put returns nil. It returns ErrTooLarge above the storage's limit
	// and ErrNoSpace on a full disk, and then nothing was stored; after any error but these and a refusal the
	// blob may or may not be stored, and Put may be repeated. Put does not retain data.
	Put(ctx context.Context, addr Address, data []byte) (Location, error)

	// Get appends the verified blob to dst and returns the result, which is the caller's; a nil dst is
	// allocated exactly. On error the result is dst with its length unchanged. It returns ErrNotFound or
	// ErrCorrupt.
	Get(ctx context.Context, addr Address, at Location, dst []byte) ([]byte, error)

	// Stat reports size and current location without verifying the payload: it is the test for existence.
	Stat(ctx context.Context, addr Address, at Location) (Info, error)

	// Delete removes the blob. When it returns nil, the removal is durable. A missing blob is ErrNotFound.
	Delete(ctx context.Context, addr Address, at Location) error

	// All iterates over the blobs behind the location after, "" for all of them, in the order of locations.
	All(ctx context.Context, after Location) iter.Seq2[Info, error]

	// Close releases the storage; every later call returns ErrClosed, but Close itself returns nil again.
	Close() error
}

// Streamer reads and writes blobs of any size in bounded memory. [Stream] adds it to a storage that lacks it.
type Streamer interface {
	// NewReader opens a blob for reading; bytes are verified before they are returned.
	NewReader(ctx context.Context, addr Address, at Location) (Reader, error)

	// NewWriter starts a blob of size bytes, or of unknown size if it is -1. The address is named at Commit.
	NewWriter(ctx context.Context, size int64) (Writer, error)
}

// BlobStor is what a program holds: storage and streams.
type BlobStor interface {
	Storage
	Streamer
}

// Reader is an open blob. ReadAt is safe for concurrent use; Read, Seek and WriteTo share one position.
type Reader interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.WriterTo
	io.Closer
	Size() int64 // bytes
}

// Writer is a blob that is being written. It is not safe for concurrent use.
type Writer interface {
	io.Writer

	// Commit names the blob and makes it durable, as Put does. It comes last because an ID may be a hash of
	// the content. After a failed Write, or when a known size was not met, it returns an error and stores
	// nothing.
	Commit(addr Address) (Location, error)

	// Close before Commit discards what was written; after it, it does nothing.
	Close() error
}

// RangeReader is optional: header prefix, range and pooled read in one. [ReadRange] uses it where present.
type RangeReader interface {
	// ReadRange fills p with the blob's bytes from off as far as the blob goes, and returns how many and the
	// blob's size. n < len(p) happens only at the blob's end; off > size is ErrOutOfRange, also with size set.
	ReadRange(ctx context.Context, addr Address, at Location, p []byte, off int64) (n int, size int64, err error)
}

// Batcher is optional: many blobs with few commits. Items succeed or fail alone, each with its own Err; the
// result is the error of the first item that failed. [PutBatch] and [DeleteBatch] use it where present.
type Batcher interface {
	PutBatch(ctx context.Context, items []Item) error
	DeleteBatch(ctx context.Context, items []Item) error
}
