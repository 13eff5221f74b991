package neofs

import (
	"testing"

	"github.com/nspcc-dev/neo-go/pkg/io"

	"github.com/granary-store/granary/blobstor"
)

func TestAddress(t *testing.T) {
	a := Address(address(5))
	w := io.NewBufBinWriter()
	a.EncodeBinary(w.BinWriter)
	must(t, w.Err)
	b := w.Bytes()
	if got, err := blobstor.AddressFromBytes(b); got != address(5) || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	var got Address
	r := io.NewBinReaderFromBuf(b)
	got.DecodeBinary(r)
	if got != a || r.Err != nil || r.Len() != 0 {
		t.Errorf("%v, %v, %d bytes left", got, r.Err, r.Len())
	}
	for n := range b {
		r := io.NewBinReaderFromBuf(b[:n])
		if new(Address).DecodeBinary(r); r.Err == nil {
			t.Errorf("%d of %d bytes are an address", n, len(b))
		}
	}
}
