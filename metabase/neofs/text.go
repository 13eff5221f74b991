package neofs

import (
	"encoding/hex"
	"strings"

	"github.com/nspcc-dev/neo-go/pkg/crypto/hash"
	"github.com/nspcc-dev/neo-go/pkg/encoding/base58"
	"github.com/nspcc-dev/neo-go/pkg/io"

	"github.com/granary-store/granary/blobstor"
)

// Names of attributes to which the protocol gives a meaning.
const (
	reserved = "$Object:"

	Version       = reserved + "version"
	Owner         = reserved + "ownerID"
	CreationEpoch = reserved + "creationEpoch"
	PayloadLength = reserved + "payloadLength"
	PayloadHash   = reserved + "payloadHash"
	ObjectType    = reserved + "objectType"
	SplitParent   = reserved + "split.parent"
	SplitFirst    = reserved + "split.first"
	SplitID       = reserved + "split.splitID"
	Root          = reserved + "ROOT" // what users store: neither a part nor a helper
	Phy           = reserved + "PHY"  // what has a blob here

	Associate  = "__NEOFS__ASSOCIATE"
	Expiration = "__NEOFS__EXPIRATION_EPOCH"
	ECRule     = "__NEOFS__EC_RULE_IDX"
	ECPart     = "__NEOFS__EC_PART_IDX"
	ecHashes   = "__NEOFS__EC_PART_HASHES"
)

const (
	set       = "1" // the value of Root and Phy
	idSize    = len(blobstor.ID{})
	ownerEnd  = 21 // a version and a script hash; behind it there is a checksum of 4 bytes
	ownerSize = ownerEnd + 4
	hashSize  = 32
	uuidSize  = 16
)

// form says how the values of an attribute are written: the size of those that are bytes in the index and have another
// text, or one of these.
type form int

const (
	unknown form = -2 // there is no such attribute
	word    form = -1 // text of the system, never a number
	plain   form = 0
)

func formOf(key string) form {
	switch key {
	case Version, ObjectType, Root, Phy:
		return word
	case SplitParent, SplitFirst, Associate, PayloadHash:
		return form(idSize)
	case Owner:
		return ownerSize
	case SplitID:
		return uuidSize
	}
	if strings.HasPrefix(key, reserved) && key != CreationEpoch && key != PayloadLength {
		return unknown
	}
	return plain
}

// Text returns as what a value of an attribute in the index reads: as itself, if it has not the form of that attribute.
func Text(key, value string) string {
	b := []byte(value)
	switch f := formOf(key); {
	case f <= plain || int(f) != len(b):
		return value
	case f == uuidSize:
		h := hex.EncodeToString(b)
		return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
	case f == ownerSize:
		return base58.CheckEncode(b[:ownerEnd:ownerEnd])
	case key == PayloadHash:
		return hex.EncodeToString(b)
	}
	return blobstor.ID(b).String()
}

// Value returns what the text of an attribute is in the index, and reports whether it is one of that attribute.
func Value(key, text string) (value string, ok bool) {
	f := formOf(key)
	var b []byte
	switch {
	case f <= plain:
		return text, f != unknown
	case len(text) > 2*hashSize:
		return "", false
	case f == ownerSize:
		b, _ = base58.CheckDecode(text)
		b = append(b, hash.Checksum(b)...)
	case f == uuidSize || key == PayloadHash:
		b, _ = hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	default:
		id, _ := blobstor.ParseID(text)
		b = id[:]
	}
	if value = string(b); len(b) != int(f) || !strings.EqualFold(Text(key, value), text) {
		return "", false
	}
	return value, true
}

// Address is a [blobstor.Address] that Neo's serialization reads and writes, as 64 bytes, the container first.
type Address blobstor.Address

var _ io.Serializable = (*Address)(nil)

// EncodeBinary implements [io.Serializable].
func (a *Address) EncodeBinary(w *io.BinWriter) {
	w.WriteBytes(a.Container[:])
	w.WriteBytes(a.Object[:])
}

// DecodeBinary implements [io.Serializable]. After an error, which r has, the address is not defined.
func (a *Address) DecodeBinary(r *io.BinReader) {
	r.ReadBytes(a.Container[:])
	r.ReadBytes(a.Object[:])
}
