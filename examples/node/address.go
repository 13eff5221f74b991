package main

import "github.com/granary-store/granary/blobstor"

// ID and Address are the node's own types, as its protocol may define them.
type (
	ID      [32]byte
	Address struct{ Container, Object ID }
)

// blob returns the address as Granary has it: two arrays are copied.
func (a Address) blob() blobstor.Address {
	return blobstor.Address{Container: blobstor.ID(a.Container), Object: blobstor.ID(a.Object)}
}

// addressOf undoes blob.
func addressOf(a blobstor.Address) Address {
	return Address{Container: ID(a.Container), Object: ID(a.Object)}
}

// The text of an ID is base58, as Granary's is.
func (id ID) String() string                   { return blobstor.ID(id).String() }
func (id ID) MarshalText() ([]byte, error)     { return blobstor.ID(id).MarshalText() }
func (id *ID) UnmarshalText(text []byte) error { return (*blobstor.ID)(id).UnmarshalText(text) }
