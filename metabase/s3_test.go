package metabase

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/granary-store/granary/blobstor"
)

// s3 is a policy that speaks of buckets, keys and versions. It needs nothing of the engine that NeoFS does not: a
// bucket is a container and a version an object. A delete marker is a version without payload, removing a version is a
// tombstone, a legal hold and a retention are locks, and an upload is a chain whose last part names the whole object.
type s3 struct {
	versions int // numbers of versions go up to this
}

const (
	s3Keys  = 3
	s3Most  = 12 // versions, and then their numbers come again
	s3Parts = 3
)

// The objects that belong to version v of a key.
func s3ID(kind string, key, v, part int) (o blobstor.ID) {
	copy(o[:], fmt.Sprintf("%s.%d.%d.%d", kind, key, v, part))
	o[31] = byte(key*s3Most + v + part + len(kind))
	return o
}

func newS3(*rand.Rand) policy { return &s3{} }

func (p *s3) world() (containers, objects []blobstor.ID) {
	for key := range s3Keys {
		for v := range s3Most {
			for _, kind := range []string{"version", "remove", "hold", "retain"} {
				objects = append(objects, s3ID(kind, key, v, 0))
			}
			for part := range s3Parts {
				objects = append(objects, s3ID("part", key, v, part))
			}
		}
	}
	return []blobstor.ID{id(1), id(2)}, objects
}

func (p *s3) version(bucket, key, v int) Record {
	return Record{
		Address: blobstor.Address{Container: id(bucket), Object: s3ID("version", key, v, 0)},
		Size:    int64(100 * v),
		Attrs: []Attr{
			{"key", fmt.Sprintf("photos/%d", key), Auto},
			{"version", strconv.Itoa(v), Auto},
			{"etag", "\x00\xff" + strconv.Itoa(v), Opaque},
			{"meta", `{"camera":"x"}`, Stored},
		},
	}
}

// deleteMarker is a version that says that there is none.
func (p *s3) deleteMarker(bucket, key, v int) Record {
	r := p.version(bucket, key, v)
	r.Size = 0
	r.Attrs = append(r.Attrs[:2], Attr{"deleted", "1", Auto})
	return r
}

// about returns an object that says something about a version.
func (p *s3) about(bucket, key, v int, kind string, k Kind, expires uint64) Record {
	return Record{
		Address: blobstor.Address{Container: id(bucket), Object: s3ID(kind, key, v, 0)},
		Kind:    k, Target: s3ID("version", key, v, 0), Expires: expires,
	}
}

// upload returns the parts of a version, each as an entry; the last completes it, with the version itself as virtual.
func (p *s3) upload(bucket, key, v int) (es [][]Record) {
	for part := range s3Parts {
		es = append(es, []Record{{
			Address: blobstor.Address{Container: id(bucket), Object: s3ID("part", key, v, part)},
			Size:    int64(1000 * part), Chain: fmt.Sprintf("upload %d/%d", key, v),
		}})
	}
	whole := p.version(bucket, key, v)
	whole.Virtual = true
	last := &es[s3Parts-1]
	(*last)[0].Parent = whole.Address.Object
	*last = append(*last, whole)
	return es
}

// act does what clients do. What version v of a key is follows from v.
func (p *s3) act(rng *rand.Rand) (a action) {
	bucket, key, v := 1+rng.IntN(2), rng.IntN(s3Keys), rng.IntN(s3Most)
	if rng.IntN(3) > 0 { // Mostly the newest.
		p.versions++
		v = p.versions % s3Most
	}
	one := func(r Record) { a.entries = [][]Record{{r}} }
	switch rng.IntN(9) {
	case 0, 1, 2:
		switch v % 4 {
		case 0:
			one(p.deleteMarker(bucket, key, v))
		case 1:
			a.entries = p.upload(bucket, key, v)
			if rng.IntN(4) == 0 {
				a.entries = a.entries[:2] // It was never completed.
			}
		default:
			one(p.version(bucket, key, v))
		}
	case 3, 4:
		one(p.about(bucket, key, v, "remove", Tombstone, 0))
	case 5:
		one(p.about(bucket, key, v, "hold", Lock, 0))
	case 6:
		one(p.about(bucket, key, v, "retain", Lock, uint64(100+rng.IntN(20))))
	case 7: // The legal hold is taken off, or the bucket is emptied.
		a.mark = Garbage
		a.addrs = []blobstor.Address{p.about(bucket, key, v, "hold", Lock, 0).Address}
		if rng.IntN(10) == 0 {
			a.addrs[0].Object = blobstor.ID{}
		}
	case 8: // An upload is aborted, or versions come back.
		a.mark = Mark(rng.IntN(2))
		for part := range s3Parts {
			a.addrs = append(a.addrs, blobstor.Address{Container: id(bucket), Object: s3ID("part", key, v, part)})
		}
	}
	return a
}

// query asks for the versions of keys, newest last, or for current ones.
func (p *s3) query(rng *rand.Rand) Query {
	q := Query{Container: id(1 + rng.IntN(2)), Limit: 1 + rng.IntN(5), Attrs: []string{"key", "etag", "meta"}}
	switch rng.IntN(3) {
	case 0:
		q.Filters = []Filter{{"key", Prefix, "photos/"}, {"deleted", Absent, ""}}
	case 1:
		q.Filters = []Filter{{"version", GE, "2"}, {"version", LT, "6"}, {"key", EQ, "photos/1"}}
	case 2:
		q.Filters = []Filter{{"etag", NE, "\x00\xff5"}}
		q.AnyStatus = true
	}
	return q
}
