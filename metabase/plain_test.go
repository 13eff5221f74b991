package metabase

import (
	"math/rand/v2"
	"strings"

	"github.com/granary-store/granary/blobstor"
)

// plain is a policy without sense: it does all that the engine knows, in every combination. What an object is follows
// from its number alone.
type plain struct {
	seed    uint64
	objects []blobstor.ID
}

// The objects of plain by their numbers. Parts are regular, those they are parts of are virtual at first.
const (
	firstPart      = 12 // to 19, see parents
	firstTombstone = 20
	firstLock      = 24
	firstParent    = 28 // to 32, of which the second is a part of the third
	plainObjects   = 33
)

// parents says what parts are parts of, and by which chain; 0 is none.
var parents = map[int]struct {
	parent int
	chain  string
}{
	12: {0, "chain"}, 13: {0, "chain"}, 14: {28, "chain"}, 15: {28, "chain"},
	16: {29, ""}, 17: {29, "other\x00"}, 18: {31, ""}, 19: {1, ""},
	29: {30, ""}, 31: {32, ""}, 32: {31, ""}, // The last two are parts of each other.
}

func newPlain(rng *rand.Rand) policy {
	p := &plain{seed: rng.Uint64()}
	for n := range plainObjects {
		p.objects = append(p.objects, id(n))
	}
	return p
}

func (p *plain) world() (containers, objects []blobstor.ID) {
	return []blobstor.ID{id(1), id(2), id(3)}, p.objects
}

var (
	plainKeys = []string{"", "k", "k\x00", "n", "\xff"}
	integers  = []string{
		"0", "-0", "1", "-1", "5", "+5", "007", "-12", "12", "120",
		strings.Repeat("9", 77), "-" + strings.Repeat("9", 77), "-99999999999999999999",
	}
	plainValues = append([]string{
		"", "a", "ab", "a\x00", "a\x00b", "\x00", "\x00\xff", "\xff", "\xff\xff", "1a", "1_000", "1.0", "--1", strings.Repeat("9", 78),
	}, integers...)
)

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// record returns what object n of a container is.
func (p *plain) record(c, n int) Record {
	rng := rand.New(rand.NewPCG(p.seed, uint64(c<<16|n)))
	up := parents[n]
	r := Record{Address: object(c, n), Size: int64(rng.IntN(1000)), Chain: up.chain}
	if up.parent > 0 {
		r.Parent = id(up.parent)
	}
	switch {
	case n >= firstParent:
		r.Virtual = true
	case n >= firstLock:
		r.Kind = Lock
	case n >= firstTombstone:
		r.Kind = Tombstone
	case n == 15:
		r.Kind = Link
	}
	if r.Kind == Tombstone || r.Kind == Lock {
		for r.Target.IsZero() || r.Target == r.Address.Object {
			r.Target = id(rng.IntN(plainObjects))
		}
	}
	if rng.IntN(3) == 0 {
		r.Expires = uint64(98 + rng.IntN(30))
	}
	for range rng.IntN(6) {
		r.Attrs = append(r.Attrs, Attr{pick(rng, plainKeys), pick(rng, plainValues), Mode(rng.IntN(modes))})
	}
	return r
}

// entry returns an object and, often, those that it is a part of.
func (p *plain) entry(rng *rand.Rand) []Record {
	c, n := 1+rng.IntN(3), rng.IntN(plainObjects)
	r := p.record(c, n)
	r.Virtual = r.Virtual && rng.IntN(4) > 0
	if rng.IntN(4) == 0 {
		r.Location = blobstor.Location(pick(rng, plainKeys))
	}
	recs := []Record{r}
	for up := parents[n].parent; up > 1 && len(recs) < 3 && rng.IntN(4) > 0; up = parents[up].parent {
		if id(up) == r.Address.Object {
			break
		}
		recs = append(recs, p.record(c, up))
	}
	if rng.IntN(40) == 0 {
		recs = append(recs, Record{Address: object(1+rng.IntN(3), rng.IntN(3))})
	}
	return recs
}

func (p *plain) act(rng *rand.Rand) (a action) {
	switch n := rng.IntN(10); {
	case n < 4:
		a.entries = [][]Record{p.entry(rng)}
	case n < 7:
		a.force = rng.IntN(3) == 0
		for range 1 + rng.IntN(6) {
			a.entries = append(a.entries, p.entry(rng))
		}
	default:
		a.mark = Mark(rng.IntN(markKinds))
		for range 1 + rng.IntN(3) {
			addr := object(1+rng.IntN(3), rng.IntN(plainObjects))
			if rng.IntN(8) == 0 {
				addr.Object = blobstor.ID{}
			}
			a.addrs = append(a.addrs, addr)
		}
	}
	return a
}

func (p *plain) query(rng *rand.Rand) Query {
	q := Query{Container: id(1 + rng.IntN(3)), Limit: 1 + rng.IntN(12), AnyStatus: rng.IntN(2) == 0}
	for range rng.IntN(4) {
		f := Filter{Key: pick(rng, plainKeys), Op: Op(rng.IntN(ops)), Value: pick(rng, plainValues)}
		switch {
		case f.Op == Absent:
			f.Value = ""
		case f.Op.numeric():
			f.Value = pick(rng, integers)
		}
		q.Filters = append(q.Filters, f)
	}
	for range rng.IntN(3) {
		q.Attrs = append(q.Attrs, pick(rng, plainKeys))
	}
	return q
}
