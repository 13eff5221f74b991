package torture

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"github.com/granary-store/granary/blobstor"
)

// Object is one of all the objects that a driver may ever put, by its number. Address and content follow from it, so
// driver and verifier need to tell each other nothing else.
type Object int64

// smallMax is where the stack's router divides blobs: low, so that both storages have much to do.
const smallMax = 16 << 10

// Bare reports whether the object has no record in the metabase.
func (n Object) Bare() bool { return n%4 == 3 }

// once reports whether the object is never put again after it was removed: then it can be said for certain when it is
// gone.
func (n Object) once() bool { return n%2 == 0 }

const numberSize = 8

// Address returns the object's address; its last bytes are the number.
func (n Object) Address() blobstor.Address {
	var a blobstor.Address
	a.Container = n.container()
	a.Object = sha256.Sum256(fmt.Append([]byte("torture "), int64(n)))
	for i := range numberSize {
		a.Object[len(a.Object)-1-i] = byte(n >> (8 * i))
	}
	return a
}

// containers is how many there are of objects with a record; those without one have one more.
const containers = 3

func (n Object) container() blobstor.ID {
	if n.Bare() {
		return container(containers)
	}
	return container(byte(n % containers))
}

func container(c byte) blobstor.ID { return blobstor.ID{c + 1} }

// objectAt returns the object of an address, if it has one.
func objectAt(a blobstor.Address) (Object, bool) {
	var n Object
	for _, b := range a.Object[len(a.Object)-numberSize:] {
		n = n<<8 | Object(b)
	}
	return n, n >= 0 && n.Address() == a
}

// Size returns how many bytes the object has: none, or up to a few pages, blocks or megabytes, the fewer the more often.
func (n Object) Size() int {
	r := n.random()
	switch k := r.IntN(64); {
	case k == 0:
		return 0
	case k < 40:
		return 1 + r.IntN(2000)
	case k < 54:
		return 1 + r.IntN(smallMax)
	case k < 63:
		return smallMax + r.IntN(100<<10)
	}
	return 100<<10 + r.IntN(1<<20)
}

// Data returns the object's content, which no other object begins with.
func (n Object) Data() []byte {
	a := n.Address()
	b := make([]byte, n.Size())
	rand.NewChaCha8(a.Object).Read(b) //nolint:errcheck // it cannot fail
	return b
}

func (n Object) random() *rand.Rand { return rand.New(rand.NewPCG(uint64(n), 0x746f7274)) }
