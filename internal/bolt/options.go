package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/internal/durable"
)

// Bucket is bbolt's: what its methods return is mapped memory, valid until the transaction ends, and read-only.
type Bucket = bbolt.Bucket

// Cursor is bbolt's.
type Cursor = bbolt.Cursor

// Logger is bbolt's.
type Logger = bbolt.Logger

const (
	defaultBallast = 16 << 20
	maxBuckets     = 8 // a transaction has a place for each
	format         = 1 // of the store; what the caller keeps in the file has a version of its own
)

// Options are what [Open] can be told. Kind and Buckets are needed.
type Options struct {
	Kind     string // of the store's descriptor, at most 16 bytes
	Create   bool   // make the store if the directory is missing or empty
	ReadOnly bool   // change nothing on disk, and share the store with other read-only opens
	NoSync   bool   // leave syncing to the system until Close: power loss may take or damage what was committed
	Owner    []byte // see durable.Descriptor
	Perm     fs.FileMode

	// Buckets are the names of the static buckets. Their order is the caller's affair; a file that lacks one is
	// corrupt.
	Buckets []string

	// Ballast is how many bytes are kept back for a full disk; 0 means 16 MiB, negative none.
	Ballast int64

	Logger *slog.Logger // gets what goes wrong beside a call; nil is silent

	// For tests.
	BoltLog Logger                          // bbolt's own
	Commit  func(commit func() error) error // stands around every commit of bbolt
	tap     durable.Tap                     // sees what is done with names, and the files' bytes as far as bbolt does not write them
}

func (o *Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("bolt: "+format, args...)) }
	if o.NoSync && o.ReadOnly {
		bad("NoSync has no effect with ReadOnly")
	}
	if len(o.Buckets) == 0 || len(o.Buckets) > maxBuckets {
		bad("%d buckets, 1 to %d", len(o.Buckets), maxBuckets)
	}
	seen := map[string]bool{"": true}
	for _, name := range o.Buckets {
		if seen[name] {
			bad("bucket %q is empty or there twice", name)
		}
		seen[name] = true
	}
	return errors.Join(errs...)
}

// withDefaults returns a copy in which everything is set.
func (o *Options) withDefaults() Options {
	c := *o
	if c.Ballast == 0 {
		c.Ballast = defaultBallast
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Commit == nil {
		c.Commit = func(commit func() error) error { return commit() }
	}
	return c
}

func (o *Options) storeOptions() durable.StoreOptions {
	return durable.StoreOptions{
		Descriptor: durable.Descriptor{Kind: o.Kind, Format: format, Owner: o.Owner},
		Create:     o.Create,
		ReadOnly:   o.ReadOnly,
		Tap:        o.tap,
		Perm:       o.Perm,
		Build:      func(d *durable.Dir, _ durable.Descriptor) error { return build(d, o) },
	}
}
