package metabase

import (
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Kind is what an object is to the others.
type Kind uint8

// The kinds of objects.
const (
	Regular   Kind = iota
	Tombstone      // buries its target
	Lock           // holds its target: it is neither removed nor does it expire
	Link           // lists the parts of its parent

	kinds = iota
)

var kindNames = [kinds]string{"regular", "tombstone", "lock", "link"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Mode says how an attribute is searched.
type Mode uint8

// The modes of attributes.
const (
	Auto   Mode = iota // as text, and as a number if it is a decimal one
	Opaque             // as bytes, never as a number
	Stored             // not at all: it is only returned

	modes = iota
)

// Attr is an attribute of an object. Keys and values are any bytes, and a key may occur more than once.
type Attr struct {
	Key, Value string
	Mode       Mode
}

// Record is what the database knows of an object. A program makes it from the object's header, with the rules of its
// own; the engine knows no attribute's meaning.
type Record struct {
	Address  blobstor.Address
	Kind     Kind
	Size     int64             // bytes of payload, which counters sum
	Expires  uint64            // the last epoch it lives through; 0: it does not expire
	Target   blobstor.ID       // what a Tombstone buries or a Lock holds, in the same container
	Parent   blobstor.ID       // the object that this one is a part of; zero: none, or known by Chain
	Chain    string            // parts with the same Chain share the Parent that any of them names
	Virtual  bool              // there is no blob of it here: it is known from its parts
	Location blobstor.Location // optional
	Attrs    []Attr
}

// Limits of a record. They count bytes; where a key or value has zero bytes, each of these counts twice.
const (
	MaxAttrKey   = 4 << 10
	MaxAttrValue = 16 << 10
	MaxAttrs     = 1 << 10
	MaxRecord    = 64 << 10 // all of a record, as it is stored
	MaxChain     = 255
)

// refusal is an error that speaks against the caller's wish and not against the disk.
type refusal struct {
	text string
	is   error // what it matches besides itself
}

func (r *refusal) Error() string        { return r.text }
func (r *refusal) Is(target error) bool { return r.is != nil && target == r.is }
func (r *refusal) Fault() bool          { return false }

// The errors that decide what a program does next, beside those of package blobstor; test for them with [errors.Is].
// None is a fault of the store.
var (
	ErrBuried    error = &refusal{"object was removed by a tombstone", blobstor.ErrNotFound}
	ErrGarbage   error = &refusal{"object is marked for removal", blobstor.ErrNotFound}
	ErrExpired   error = &refusal{"object has expired", blobstor.ErrNotFound}
	ErrContainer error = &refusal{"container is marked for removal", blobstor.ErrNotFound}
	ErrHeld      error = &refusal{"object is held by a lock", nil}
	ErrTarget    error = &refusal{"object cannot be the target of this one", nil}
	ErrRecord    error = &refusal{"record is not valid", nil}
	ErrQuery     error = &refusal{"query is not valid", nil}
	ErrPressed   error = &refusal{"only removals are taken until there is room", blobstor.ErrNoSpace}
)

// IsRefusal reports whether an error says that a record, mark or query was refused, and nothing was written for it. Of
// errors that are joined, one fault of the store makes it none.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok && !blobstor.IsFault(err)
}

// validate refuses what could not be stored or has no meaning.
func (r *Record) validate() error {
	var errs []error
	bad := func(is bool, what string, n int) {
		if is {
			errs = append(errs, fmt.Errorf("%w: %s (%d)", ErrRecord, what, n))
		}
	}
	bad(r.Address.Container.IsZero() || r.Address.Object.IsZero(), "it has no address", 0)
	bad(r.Kind >= kinds, "unknown kind", int(r.Kind))
	bad(r.Size < 0, "negative size", int(r.Size))
	hasTarget := r.Kind == Tombstone || r.Kind == Lock
	bad(hasTarget == r.Target.IsZero(), "tombstones and locks have a target, others have none", int(r.Kind))
	bad(hasTarget && r.Target == r.Address.Object, "it is its own target", 0)
	bad(r.Parent == r.Address.Object && !r.Parent.IsZero(), "it is its own parent", 0)
	bad(len(r.Chain) > MaxChain, "bytes of the chain", len(r.Chain))
	bad(len(r.Location) > blobstor.MaxLocation, "bytes of the location", len(r.Location))
	bad(len(r.Attrs) > MaxAttrs, "attributes", len(r.Attrs))
	for i := range r.Attrs {
		a := &r.Attrs[i]
		bad(a.Mode >= modes, "mode of an attribute", int(a.Mode))
		bad(escapedLen(a.Key) > MaxAttrKey, "bytes of an attribute's key", len(a.Key))
		bad(escapedLen(a.Value) > MaxAttrValue, "bytes of an attribute's value", len(a.Value))
	}
	n := r.encodedLen()
	bad(n > MaxRecord, "bytes", n)
	return errors.Join(errs...)
}

// indexed reports whether attribute i has an entry as text and may have one as number: what occurs twice has one.
func (r *Record) indexed(i int) (text, number bool) {
	a := &r.Attrs[i]
	text, number = a.Mode != Stored, a.Mode == Auto
	negative, digits := splitNumber(a.Value)
	for k := range i {
		b := &r.Attrs[k]
		if b.Mode == Stored || b.Key != a.Key {
			continue
		}
		text = text && b.Value != a.Value
		if number && b.Mode == Auto {
			n, d := splitNumber(b.Value)
			number = n != negative || d != digits
		}
	}
	return text, number
}

// isPart reports whether the object belongs to a larger one.
func (r *Record) isPart() bool { return !r.Parent.IsZero() || r.Chain != "" }
