package neofs

import (
	"github.com/nspcc-dev/neo-go/pkg/io"

	"github.com/granary-store/granary/blobstor"
)

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
