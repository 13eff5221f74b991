package pilorama

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The classes of keys, with which keys begin. All are in one static bucket, which is made with the file: a bucket for
// each tree would cost every commit the pages of its root.
const (
	dict     = iota // container ID, tree name: the tree's number
	logs            // number, time: the operation, and what it overwrote
	nodes           // number, node: where it is, and its attributes
	children        // number, parent, name, kind, birth, node: nothing
	parents         // number, node: nothing; an operation named it as a parent
	redos           // number, time: nothing; the log has an operation on such a node
	heights         // number: where the log begins
	settings        // what there is one of
)

var classNames = []string{"dict", "log", "nodes", "children", "parents", "redos", "heights", "settings"}

const bucketName = "pilorama"

// Settings.
var (
	keyVersion = []byte("version")
	keyNext    = []byte("next")     // the number of the next tree
	keyDropped = []byte("dropped/") // and a number: keys of that tree are left
)

// number stands for a tree in keys. Numbers are never used again; 0 is none.
type number uint32

const (
	numberSize = 4
	idSize     = 32
	wordSize   = 8
	escape     = 0xff
	boundary   = 0x01
)

func (n number) append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func numberOf(b []byte) number { return number(binary.BigEndian.Uint32(b)) }

func appendUint64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }
func uint64Of(b []byte) uint64               { return binary.BigEndian.Uint64(b) }

// key returns the key of a class that begins with a tree's number, in room.
func (n number) key(room []byte, class byte) []byte { return n.append(append(room[:0], class)) }

// wordKey returns a key that ends with a time or a node.
func (n number) wordKey(room []byte, class byte, word uint64) []byte {
	return appendUint64(n.key(room, class), word)
}

func dictKey(room []byte, t Tree) []byte {
	return append(append(append(room[:0], dict), t.Container[:]...), t.Name...)
}

// Kinds of children, which sort by them behind their names.
const (
	plain    = 0 // nothing but a name: AddByPath descends into it
	anything = 1
)

// childrenKey returns what the keys of the children of a node begin with.
func (n number) childrenKey(room []byte, parent NodeID) []byte {
	return n.wordKey(room, children, uint64(parent))
}

// namedKey returns what the keys of the children begin with that have a name.
func (n number) namedKey(room []byte, parent NodeID, name []byte) []byte {
	return append(appendEscaped(n.childrenKey(room, parent), name), 0, boundary)
}

// childKey returns the key of a child, whose part behind the parent is a [Position].
func (n number) childKey(room []byte, node NodeID, r *record) []byte {
	name, kind := r.name()
	b := append(n.namedKey(room, r.parent, name), kind)
	return appendUint64(appendUint64(b, r.birth), uint64(node))
}

const (
	positionAt  = 1 + numberSize + wordSize   // of the position in the key of a child
	positionEnd = 2 + 1 + wordSize + wordSize // of a position: end of the name, kind, birth, node
)

// childOf returns the position and the node that the key of a child has.
func childOf(key []byte) (at Position, node NodeID, err error) {
	if len(key) < positionAt+positionEnd {
		return "", 0, corrupt("key of a child: %x", key)
	}
	return Position(key[positionAt:]), NodeID(uint64Of(key[len(key)-wordSize:])), nil
}

// Names within keys are escaped so that they sort as they do by themselves and end where they end: a zero byte is
// followed by ff, and the end is 00 01.
func appendEscaped[T ~string | ~[]byte](b []byte, s T) []byte {
	for i := 0; i < len(s); i++ {
		b = append(b, s[i])
		if s[i] == 0 {
			b = append(b, escape)
		}
	}
	return b
}

func escapedLen(s string) int { return len(s) + strings.Count(s, "\x00") }

// following returns the least key that is greater than all that begin with b; nil if there is none.
func following(b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			next := bytes.Clone(b[:i+1])
			next[i]++
			return next
		}
	}
	return nil
}
