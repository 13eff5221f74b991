package metabase

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

// The classes of keys. All are in one static bucket, which is made with the file and never later: a bucket costs
// every transaction that touches it a look-up and every commit the pages of its root. A key begins with its class.
const (
	dict     = iota // container ID: its number and mark
	recs            // number, object ID: the record
	attrs           // number, attribute, object ID: the index of attributes
	rels            // number, relation: the index of relations
	marks           // number, object ID: the mark
	expires         // epoch, number, object ID: what expires when
	counts          // number: counters
	settings        // what there is one of
	pending         // complement of a count: the log of objects whose attributes may lack entries
)

var classNames = []string{"dict", "recs", "attrs", "rels", "marks", "expires", "counts", "settings", "pending"}

// bucketName is the static bucket's.
const bucketName = "metabase"

// container is the number that stands for a container in keys. Numbers are never used again.
type container uint32

func (c container) append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(c)) }

// containerOf returns the number that b begins with.
func containerOf(b []byte) container { return container(binary.BigEndian.Uint32(b)) }

func appendUint64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }
func uint64Of(b []byte) uint64               { return binary.BigEndian.Uint64(b) }

const (
	idSize   = len(blobstor.ID{})
	prefix   = 4 // of a container's number
	recKey   = prefix + idSize
	escape   = 0xff
	boundary = 0x01
)

// Texts in keys are escaped so that they sort as they do by themselves and end where they end: a zero byte is
// followed by ff, and the end is 00 01.

// appendEscaped appends a text without its end.
func appendEscaped[T ~string | ~[]byte](b []byte, s T) []byte {
	for i := 0; i < len(s); i++ {
		b = append(b, s[i])
		if s[i] == 0 {
			b = append(b, escape)
		}
	}
	return b
}

func appendTerminated[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(appendEscaped(b, s), 0, boundary)
}

func escapedLen(s string) int { return len(s) + strings.Count(s, "\x00") }

// cutEscaped returns the text at the beginning of b, still escaped, and what is behind its end.
func cutEscaped(b []byte) (text, rest []byte, ok bool) {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], 0)
		if i < 0 || from+i+1 >= len(b) {
			return nil, nil, false
		}
		at := from + i
		if b[at+1] == boundary {
			return b[:at], b[at+2:], true
		}
		from = at + 2
	}
}

// unescaped returns a copy of an escaped text as it was.
func unescaped(b []byte) string {
	return string(bytes.ReplaceAll(b, []byte{0, escape}, []byte{0}))
}

func appendRecKey(b []byte, c container, id *blobstor.ID) []byte {
	return append(c.append(b), id[:]...)
}

// Parts of the index of attributes, behind the number of the container.
const (
	asText   = 't' // attribute, its end, value, its end, object ID
	asNumber = 'n' // attribute, its end, number, object ID
)

// appendAttr appends what the keys of an attribute begin with.
func appendAttr[T ~string | ~[]byte](b []byte, c container, part byte, key T) []byte {
	return appendTerminated(append(c.append(b), part), key)
}

// Relations, behind the number of the container. Each key ends with the ID of the object that has the relation.
const (
	relBuries = 'b' // target ID, tombstone ID
	relHolds  = 'h' // target ID, lock ID
	relPart   = 'p' // parent ID, part ID
	relChain  = 'c' // chain, its end, part ID
)

func appendRel(b []byte, c container, rel byte, of *blobstor.ID) []byte {
	return append(append(c.append(b), rel), of[:]...)
}

func appendChain(b []byte, c container, chain string) []byte {
	return appendTerminated(append(c.append(b), relChain), chain)
}

func appendExpiry(b []byte, epoch uint64, c container, id *blobstor.ID) []byte {
	return append(c.append(binary.BigEndian.AppendUint64(b, epoch)), id[:]...)
}

// lastID returns the ID that a key ends with.
func lastID(key []byte) (id blobstor.ID) {
	copy(id[:], key[max(0, len(key)-idSize):])
	return id
}

// following returns the least key that is greater than all that begin with b, nil if there is none.
func following(b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			next := append([]byte(nil), b[:i+1]...)
			next[i]++
			return next
		}
	}
	return nil
}
