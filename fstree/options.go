package fstree

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

const (
	defaultDepth = 1 // 256 directories hold a few million files well
	maxDepth     = 3 // 16 Mi directories; more would only waste inodes
)

// Options are what [Open] can be told. The zero value opens an existing store for reading and writing.
type Options struct {
	// Create makes the store if the directory is missing or empty. An existing store is opened.
	Create bool

	// ReadOnly changes nothing on disk; the store may be open read-only more than once at the same time.
	ReadOnly bool

	// NoSync leaves syncing to the system: power loss may then take, or damage, what was acknowledged since the
	// last Close. Damage is noticed when a blob is read.
	NoSync bool

	// Owner says whose store this is, at most 64 bytes. A store made with another one is refused; empty accepts
	// any.
	Owner []byte

	// Depth is the number of directory levels, at most 3; negative means none. 0 takes what the store has, and
	// one level for a new store. A store of another depth is refused; in the middle of a [Tree.Reshape] it has two,
	// and either is accepted.
	Depth int

	// MaxSize is the largest blob in bytes; 0 means no limit.
	MaxSize int64

	// Logger gets what goes wrong in the background; nil is silent.
	Logger *slog.Logger

	// Hooks are called on events worth counting.
	Hooks blobstor.Hooks

	tap    durable.Tap // for tests
	rename bool        // write under temporary names where the system could do without, for tests
}

// Validate reports every field that no store could be opened with.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("fstree: "+format, args...)) }
	if o.Create && o.ReadOnly {
		bad("Create has no effect with ReadOnly")
	}
	if o.NoSync && o.ReadOnly {
		bad("NoSync has no effect with ReadOnly")
	}
	if len(o.Owner) > durable.MaxOwner {
		bad("Owner of %d bytes, at most %d", len(o.Owner), durable.MaxOwner)
	}
	if o.Depth > maxDepth {
		bad("Depth %d, at most %d", o.Depth, maxDepth)
	}
	if o.MaxSize < 0 {
		bad("MaxSize %d is negative", o.MaxSize)
	}
	if o.MaxSize > maxPayload {
		bad("MaxSize %d, at most %d", o.MaxSize, int64(maxPayload))
	}
	return errors.Join(errs...)
}

// depth is the number of directory levels that the options ask for.
func (o *Options) depth() int {
	if o.Depth == 0 {
		return defaultDepth
	}
	return max(0, o.Depth)
}

// newLayout is that of a new store.
func (o *Options) newLayout() *layout { return &layout{depth: o.depth(), old: noDepth} }

// limit is the largest blob in bytes.
func (o *Options) limit() int64 {
	if o.MaxSize == 0 {
		return maxPayload
	}
	return o.MaxSize
}
