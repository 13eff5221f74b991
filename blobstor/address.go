package blobstor

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mr-tron/base58"
)

// ID is 32 opaque bytes that name a container or an object. Its text form is base58, as NeoFS prints it.
type ID [32]byte

// ParseID reads the text form of an ID. It accepts nothing but the form that [ID.String] writes.
func ParseID(s string) (ID, error) {
	var id ID
	// 32 bytes are at most 44 digits; a bound here keeps the quadratic decoder away from long input.
	if len(s) > 44 {
		return id, fmt.Errorf("blobstor: ID of %d digits", len(s))
	}
	b, err := base58.Decode(s)
	if err != nil {
		return id, fmt.Errorf("blobstor: ID: %w", err)
	}
	if len(b) != len(id) {
		return id, fmt.Errorf("blobstor: ID of %d bytes", len(b))
	}
	return ID(b), nil
}

// String returns the base58 form.
func (id ID) String() string { return base58.Encode(id[:]) }

// IsZero reports whether all bytes are zero.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders IDs bytewise.
func (id ID) Compare(b ID) int { return bytes.Compare(id[:], b[:]) }

// AppendText appends the base58 form to b.
func (id ID) AppendText(b []byte) ([]byte, error) { return append(b, id.String()...), nil }

// MarshalText returns the base58 form.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// AddressSize is the length of an address in bytes.
const AddressSize = 64

// Address is the identity of an object: its container's ID and its own. It is comparable and serves as a map
// key; a node makes one from its own type by two array copies.
type Address struct{ Container, Object ID }

// ParseAddress reads "container/object", both in base58.
func ParseAddress(s string) (Address, error) {
	var a Address
	c, o, ok := strings.Cut(s, "/")
	if !ok {
		return a, fmt.Errorf("blobstor: address without '/'")
	}
	var err error
	if a.Container, err = ParseID(c); err != nil {
		return Address{}, err
	}
	if a.Object, err = ParseID(o); err != nil {
		return Address{}, err
	}
	return a, nil
}

// AddressFromBytes reads the 64 bytes that [Address.AppendBinary] writes.
func AddressFromBytes(b []byte) (Address, error) {
	if len(b) != AddressSize {
		return Address{}, fmt.Errorf("blobstor: address of %d bytes", len(b))
	}
	return Address{Container: ID(b[:32]), Object: ID(b[32:])}, nil
}

// String returns "container/object", both in base58.
func (a Address) String() string { return a.Container.String() + "/" + a.Object.String() }

// IsZero reports whether all bytes are zero.
func (a Address) IsZero() bool { return a == Address{} }

// Compare orders addresses bytewise, the container first.
func (a Address) Compare(b Address) int {
	if c := a.Container.Compare(b.Container); c != 0 {
		return c
	}
	return a.Object.Compare(b.Object)
}

// AppendText appends the text form to b.
func (a Address) AppendText(b []byte) ([]byte, error) { return append(b, a.String()...), nil }

// MarshalText returns the text form.
func (a Address) MarshalText() ([]byte, error) { return a.AppendText(nil) }

// UnmarshalText reads what MarshalText wrote.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// AppendBinary appends the 64 bytes to b, the container first.
func (a Address) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, a.Container[:]...)
	return append(b, a.Object[:]...), nil
}
