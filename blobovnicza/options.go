package blobovnicza

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"

	"github.com/granary-store/granary/blobstor"
)

// Defaults and bounds of Options.
const (
	DefaultMaxBlob = 1 << 20 // 1 MiB

	maxBlobLimit = 64 << 20
	maxLeaves    = 1 << 16 // a location has two bytes for the leaf
	maxOwner     = 64

	minFileSize = 256 << 20
	maxFileSize = 4 << 30

	// DefaultDeadRatio is the part of dead bytes from which on space is given back.
	DefaultDeadRatio = 0.2
)

// Options are the parameters of Open. Nil and zero fields mean defaults.
type Options struct {
	// Create makes the store if the directory holds none. Without it a missing store is ErrLayout, so that an
	// unmounted disk never becomes an empty store.
	Create bool

	// ReadOnly opens the store for reading, beside other readers. Nothing is written, not even a repair of
	// what a crash left torn.
	ReadOnly bool

	// NoSync acknowledges writes before they are durable: a power cut may lose any of them. A killed process
	// loses nothing.
	NoSync bool

	// Owner, at most 64 bytes, is written into a new store and compared with what an existing one has, so that
	// a program never serves another's blobs. Empty: not compared.
	Owner []byte

	// Width and Depth shape the tree: Width^Depth leaves, at most 65,536, each with a commit and a sync of its
	// own. They are fixed when the store is made; zero takes what it has, or 1 and 0 for a new one.
	Width, Depth int

	// MaxBlob is the largest blob in bytes, DefaultMaxBlob if zero, at most 64 MiB. Larger ones that are
	// stored already stay readable.
	MaxBlob int64

	// FileSize is the size in bytes at which a file is full: zero for a 64th of the leaf, at least 256 MiB (with
	// MaxSize a 64th of that) and at most 4 GiB. On a small disk, and with a small MaxSize, it is less: a 16th of what
	// the store may take, but at least 64 KiB. A file holds one blob at least.
	FileSize int64

	// FileRecords is the number of records at which a file is full, besides its size: zero for one per 4 KiB of
	// that, at least 256 Ki. It bounds the memory for the index of an active file, about 110 bytes a record.
	FileRecords int

	// MaxSize bounds what the store takes on the disk, in bytes, but for the space that is zeroed ahead (64 MiB at
	// most): puts beyond it are ErrNoSpace. A 16th of it, at most a file's size, is left to compaction and deletes.
	// Zero: only the disk bounds it.
	MaxSize int64

	// KeepSpare sets the space that compaction needs on a full disk aside from the start, as much as the largest
	// file has. Without it that is done when less than 32 times as much, or than 1 GiB, is free, which is looked at
	// when a file is full and when blobs are deleted: a disk that others fill in between may have no room for
	// compaction.
	KeepSpare bool

	// MaxOpen bounds the files that are open at a time: zero for half of what the system lets the process open,
	// at most 8192. Files that are written to do not count.
	MaxOpen int

	// IndexCache bounds the memory for parts of index files that look-ups without location use often, in bytes: zero
	// for 16 MiB.
	IndexCache int64

	// Perm are the permissions of new files, less the process's umask; who may read them may also enter their
	// directories. Zero for 0600; the owner must be allowed to read and write.
	Perm fs.FileMode

	// Compact says how space is given back.
	Compact CompactOptions

	// Logger gets what an operator should know; nil is silent.
	Logger *slog.Logger

	// Hooks are called on events worth counting.
	Hooks blobstor.Hooks
}

// CompactOptions say how the space of deleted blobs is given back.
type CompactOptions struct {
	// Off leaves it to Compact. Else it is done in the background.
	Off bool

	// DeadRatio is the part of dead bytes that starts it, between 0 and 1: DefaultDeadRatio if zero. The smaller
	// it is, the more is copied.
	DeadRatio float64

	// Rate bounds what is copied in the background, in bytes a second; zero for no limit. Without one, it leaves
	// half of the time to others unless space is short.
	Rate int64
}

// Validate reports every field that is out of its bounds.
func (o *Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("blobovnicza: "+format, args...))
		}
	}
	check(!o.Create || !o.ReadOnly, "Create has no effect with ReadOnly")
	check(!o.NoSync || !o.ReadOnly, "NoSync has no effect with ReadOnly")
	check(len(o.Owner) <= maxOwner, "Owner of %d bytes, want at most %d", len(o.Owner), maxOwner)
	check(o.Width >= 0 && o.Depth >= 0, "Width %d and Depth %d, want no negative ones", o.Width, o.Depth)
	check(o.Width > 0 || o.Depth == 0, "Depth %d without Width", o.Depth)
	check(leafCount(o.Width, o.Depth) <= maxLeaves, "Width %d to the power of Depth %d, want at most %d leaves",
		o.Width, o.Depth, maxLeaves)
	check(o.MaxBlob >= 0 && o.MaxBlob <= maxBlobLimit, "MaxBlob %d, want 0 to %d", o.MaxBlob, maxBlobLimit)
	check(o.FileSize >= 0 && o.FileSize <= maxFileSize, "FileSize %d, want 0 to %d", o.FileSize, int64(maxFileSize))
	check(o.FileRecords >= 0, "FileRecords %d, want no negative one", o.FileRecords)
	check(o.MaxSize >= 0, "MaxSize %d, want no negative one", o.MaxSize)
	check(o.IndexCache >= 0, "IndexCache %d, want no negative one", o.IndexCache)
	check(o.MaxOpen >= 0, "MaxOpen %d, want no negative one", o.MaxOpen)
	check(o.Perm == 0 || o.Perm&^fs.ModePerm == 0 && o.Perm&0o600 == 0o600, "Perm %v, want the owner to read and write", o.Perm)
	c := &o.Compact
	check(c.DeadRatio >= 0 && c.DeadRatio <= 1, "Compact.DeadRatio %v, want 0 to 1", c.DeadRatio)
	check(c.Rate >= 0, "Compact.Rate %d, want no negative one", c.Rate)
	return errors.Join(errs...)
}

// withDefaults returns a copy of o, which may be nil, with the defaults filled in.
func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.MaxBlob == 0 {
		out.MaxBlob = DefaultMaxBlob
	}
	if out.Compact.DeadRatio == 0 {
		out.Compact.DeadRatio = DefaultDeadRatio
	}
	if out.IndexCache == 0 {
		out.IndexCache = defaultBlockCache
	}
	if out.MaxOpen == 0 {
		out.MaxOpen = min(max(openLimit()/2, 16), 8192)
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}

// leafCount returns width^depth, or more than maxLeaves if it is out of bounds.
func leafCount(width, depth int) int {
	n := 1
	for range depth {
		if n *= max(width, 1); n > maxLeaves {
			return math.MaxInt32
		}
		if width <= 1 {
			break
		}
	}
	return n
}
