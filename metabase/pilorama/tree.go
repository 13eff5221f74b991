package pilorama

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// Tree names a tree: a container may have any number of them. The name has 1 to 255 bytes, of any value.
type Tree struct {
	Container blobstor.ID
	Name      string
}

func (t Tree) String() string { return fmt.Sprintf("%v/%q", t.Container, t.Name) }

// NodeID names a node of a tree. One that is made here is the time of the operation that makes it, so no two replicas
// make the same; operations of others may have any.
type NodeID uint64

// Two nodes are in every tree and are never moved.
const (
	Root  NodeID = 0
	Trash NodeID = math.MaxUint64 // what is removed is moved here, with all that is below it
)

// FileName is the key of the attribute that names a node. Paths and order go by the first one that a node has, and a
// node without it has the empty name.
const FileName = "FileName"

// Attr is a part of what is known of a node. Key and value are any bytes.
type Attr struct{ Key, Value string }

// Limits, which are the same for every replica: what one takes no other may refuse.
const (
	MaxTreeName = 255       // bytes of a tree's name
	MaxName     = 4 << 10   // bytes of a node's name, where zero bytes count twice
	MaxMeta     = 64 << 10  // bytes of a node's attributes as they are stored
	MaxPath     = 1 << 10   // elements of a path
	MaxTime     = 1<<64 - 2 // the latest time that there is
)

// Operation moves a node, or makes it if nobody knows it, and gives it its attributes. It is what replicas tell each
// other. A tree is what its operations make of it, one after the other in the order of their times; those that would
// put a node below itself change nothing.
type Operation struct {
	Time   uint64 // unique in the tree
	Parent NodeID // need not be known yet
	Child  NodeID
	Meta   []Attr
}

// Clock divides times among replicas. A replica has the times that leave Position when divided by Size.
type Clock struct{ Position, Size uint64 }

// next returns the first time of the clock behind another one, false if there is none.
func (c Clock) next(last uint64) (uint64, bool) {
	ahead := (c.Position + c.Size - last%c.Size) % c.Size
	if ahead == 0 {
		ahead = c.Size
	}
	return last + ahead, last <= MaxTime && ahead <= MaxTime-last
}

func (c Clock) validate() error {
	if c.Size == 0 || c.Size > 1<<32 || c.Position >= c.Size {
		return invalid("position %d of %d", c.Position, c.Size)
	}
	return nil
}

func (t Tree) validate() error {
	switch {
	case t.Container.IsZero():
		return invalid("a tree without a container")
	case t.Name == "" || len(t.Name) > MaxTreeName:
		return invalid("a tree's name of %d bytes", len(t.Name))
	}
	return nil
}

// move is an operation as it is stored, checked.
type move struct {
	time          uint64
	parent, child NodeID
	meta          []byte
}

// pack checks an operation.
func (o *Operation) pack() (m move, err error) {
	switch {
	case o.Time == 0 || o.Time > MaxTime:
		return m, invalid("time %d", o.Time)
	case o.Child == Root || o.Child == Trash:
		return m, invalid("the root and the trash are never moved")
	}
	meta, err := packMeta(o.Meta)
	return move{o.Time, o.Parent, o.Child, meta}, err
}

// packMeta checks attributes and returns them as they are stored.
func packMeta(attrs []Attr) ([]byte, error) {
	size := 0
	for i := range attrs {
		size += len(attrs[i].Key) + len(attrs[i].Value)
		if size > MaxMeta {
			return nil, tooLarge("attributes of more than %d bytes", MaxMeta)
		}
	}
	meta := appendMeta(make([]byte, 0, size+8*len(attrs)+4), attrs)
	if len(meta) > MaxMeta {
		return nil, tooLarge("attributes of %d bytes", len(meta))
	}
	if i := slices.IndexFunc(attrs, func(a Attr) bool { return a.Key == FileName }); i >= 0 {
		return meta, validateName(attrs[i].Value)
	}
	return meta, nil
}

func validateName(name string) error {
	if n := escapedLen(name); n > MaxName {
		return tooLarge("a name of %d bytes", n)
	}
	return nil
}

func (m *move) unpack() (Operation, error) {
	meta, err := parseMeta(m.meta)
	return Operation{m.time, m.parent, m.child, meta}, err
}

func (m *move) equal(o *move) bool {
	return m.parent == o.parent && m.child == o.child && bytes.Equal(m.meta, o.meta)
}

func (m *move) size() int64 { return int64(len(m.meta)) + moveOverhead }

// moveOverhead is about what an operation takes beside its attributes, which are stored twice.
const moveOverhead = 256
