package blobovnicza

import (
	"errors"
	"fmt"
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

	// FileSize is the size in bytes at which a file is full: zero for a 64th of the leaf, at least 256 MiB and
	// at most 4 GiB. A file holds one blob at least.
	FileSize int64

	// Logger gets what an operator should know; nil is silent.
	Logger *slog.Logger

	// Hooks are called on events worth counting.
	Hooks blobstor.Hooks
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
