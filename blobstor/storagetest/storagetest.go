package storagetest

import (
	"strings"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// Harness is what the suite knows of a storage. Only New is required; every hook that is missing is a visible
// skip of the clauses that need it. Hooks get the value that New, Reopen or PowerLoss returned and report their
// own failures to tb. They may be called in any order.
type Harness struct {
	// New makes an empty storage and registers its clean-up with tb; the suite may have closed it before.
	New func(tb testing.TB) blobstor.Storage

	// Limit is the largest blob in bytes that the storage takes; 0: no test could reach it.
	Limit int64

	// Reopen closes s, which may be closed already, and opens the same store again.
	Reopen func(tb testing.TB, s blobstor.Storage) blobstor.Storage

	// PowerLoss abandons s as a loss of power would: what was not synced is lost, and the store is opened again
	// from the rest. The suite has no call inside s at that moment.
	PowerLoss func(tb testing.TB, s blobstor.Storage) blobstor.Storage

	// Damage changes payload bytes of every stored copy of a blob that is not empty, beneath the open storage.
	Damage func(tb testing.TB, s blobstor.Storage, addr blobstor.Address)

	// Full takes away the room for further blobs, of any size, until release is called.
	Full func(tb testing.TB, s blobstor.Storage) (release func())

	// FailSync lets every sync fail, with an error that is not one of a full disk, until heal is called.
	FailSync func(tb testing.TB, s blobstor.Storage) (heal func())

	// ReadOnly returns a view of the same content that refuses writes; it may have to close s for that. Damage
	// is called with s all the same.
	ReadOnly func(tb testing.TB, s blobstor.Storage) blobstor.Storage

	// NoReserve says that the storage keeps no room for deletes on a full disk; that clause is skipped.
	NoReserve bool

	// Patience is how long a call may hang before that is called a deadlock; 0: one minute. It bounds nothing
	// in a storage that works.
	Patience time.Duration

	// Seed changes the random choices; 0: the same ones in every run.
	Seed uint64
}

// A view is a way to look at the storage under test.
type view string

const (
	shown    view = "shown"    // as New returned it
	hidden   view = "hidden"   // without optional interfaces
	reopened view = "reopened" // what is there was put before a reopen
	readOnly view = "readonly" // what is there was put before the storage was made read-only
)

// A clause is a part of a law. Its name is "law/clause".
type clause struct {
	name  string
	views []view
	check func(f *fixture)
}

var (
	once    = []view{shown}                             // nothing optional is used
	writing = []view{shown, hidden}                     // batches or streams are used
	closes  = []view{shown, hidden, readOnly}           // the state of the storage matters
	reading = []view{shown, hidden, reopened, readOnly} // after ready only reads
)

// clauses are all clauses of all laws.
func clauses() []clause {
	var all []clause
	for _, law := range [][]clause{
		durable, immutable, locations, absence, integrity, ranges, readers, writers, iteration,
		ownership, contexts, closing, sizes, fullDisk, failedSync, batches, refusals,
	} {
		all = append(all, law...)
	}
	return all
}

// Test checks the storage of h against every law, as subtests "view/law/clause".
func Test(t *testing.T, h Harness) {
	for _, v := range []view{shown, hidden, reopened, readOnly} {
		t.Run(string(v), func(t *testing.T) {
			if v == reopened && h.Reopen == nil || v == readOnly && h.ReadOnly == nil {
				t.Skip("the harness has no hook for this view")
			}
			for _, law := range byLaw(v) {
				t.Run(law[0].law(), func(t *testing.T) {
					for _, c := range law {
						t.Run(c.short(), func(t *testing.T) { c.run(t, h, v) })
					}
				})
			}
		})
	}
}

// byLaw groups the clauses that have the view, in their order.
func byLaw(v view) (groups [][]clause) {
	for _, c := range clauses() {
		if !c.has(v) {
			continue
		}
		if n := len(groups) - 1; n >= 0 && groups[n][0].law() == c.law() {
			groups[n] = append(groups[n], c)
		} else {
			groups = append(groups, []clause{c})
		}
	}
	return groups
}

func (c clause) law() string {
	law, _, _ := strings.Cut(c.name, "/")
	return law
}

func (c clause) short() string {
	_, short, _ := strings.Cut(c.name, "/")
	return short
}

func (c clause) has(v view) bool {
	for _, w := range c.views {
		if v == w {
			return true
		}
	}
	return false
}

func (c clause) run(tb testing.TB, h Harness, v view) {
	c.check(newFixture(tb, h, v, c.name))
}
