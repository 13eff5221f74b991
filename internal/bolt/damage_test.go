package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestSampleIsSound(t *testing.T) {
	m := sample(t)
	if p := m.apples(t); p.kind != typeBranch {
		t.Fatalf("the bucket's root is of type %d", p.kind)
	}
	for _, trusted := range []trust{trustClosed, trustCommits, trustNothing} {
		check(t, verifyFile(bytes.NewReader(m), int64(len(m)), trusted))
	}
	for _, mark := range []string{markClean, markDirty, markUnsynced, ""} {
		db := reopen(t, m.store(t, mark), Options{})
		check(t, db.Check(ctx))
		if n := len(contents(t, db, apples)); n != 1701 {
			t.Errorf("mark %q: %d keys", mark, n)
		}
	}
}

// damages are what a file can suffer, one of each kind. Each must be found in a file without a mark.
var damages = []struct {
	name string
	do   func(t *testing.T, m image) image
	want error // nil: blobstor.ErrCorrupt
}{
	{"both metas", func(_ *testing.T, m image) image { m[40]++; m.at(1)[40]++; return m }, nil},
	{"commits far apart", func(t *testing.T, m image) image { m.metaAt(t)[64] += 2; return m.seal() }, nil},
	{"commit in the wrong meta", func(t *testing.T, m image) image { m.metaAt(t)[64]++; return m.seal() }, nil},
	{"meta's header", func(t *testing.T, m image) image { m.metaAt(t)[0] += 2; return m }, nil},
	{"page size", func(_ *testing.T, m image) image { order.PutUint32(m[24:], 8192); return m.seal() }, blobstor.ErrLayout},
	{"page size 0", func(_ *testing.T, m image) image { order.PutUint32(m[24:], 0); return m.seal() }, blobstor.ErrLayout},
	{"version", func(_ *testing.T, m image) image { m[20]++; return m.seal() }, blobstor.ErrLayout},
	{"end", func(t *testing.T, m image) image { m.metaAt(t)[60] = 0x7f; return m.seal() }, nil},
	{"cut", func(t *testing.T, m image) image { return m[:(m.meta(t).end-1)*pageSize] }, nil},
	{"cut to nothing", func(_ *testing.T, m image) image { return m[:0] }, nil},
	{"cut in a meta", func(_ *testing.T, m image) image { return m[:pageSize+40] }, nil},
	{"root is a meta", func(t *testing.T, m image) image { order.PutUint64(m.metaAt(t)[32:], 1); return m.seal() }, nil},
	{"root outside", func(t *testing.T, m image) image { order.PutUint64(m.metaAt(t)[32:], 1<<60); return m.seal() }, nil},
	{"no freelist", func(t *testing.T, m image) image { order.PutUint64(m.metaAt(t)[48:], 1<<64-1); return m.seal() }, nil},

	{"freelist type", func(t *testing.T, m image) image { m.at(m.meta(t).freelist)[8] = typeLeaf; return m }, nil},
	{"freelist count", func(t *testing.T, m image) image { m.at(m.meta(t).freelist)[11] = 0xf0; return m }, nil},
	{"freelist long count", func(t *testing.T, m image) image {
		f := m.at(m.meta(t).freelist)
		order.PutUint16(f[10:], manyFree)
		order.PutUint64(f[16:], 1<<63+1)
		return m
	}, nil},
	{"freelist order", func(t *testing.T, m image) image {
		f := m.at(m.meta(t).freelist)
		copy(f[headerSize:headerSize+idSize], f[headerSize+idSize:])
		return m
	}, nil},
	{"free page outside", func(t *testing.T, m image) image {
		f := m.at(m.meta(t).freelist)
		order.PutUint64(f[headerSize+idSize*(uint64(order.Uint16(f[10:]))-1):], 1<<40)
		return m
	}, nil},
	{"free page in use", func(t *testing.T, m image) image { return m.free(t, m.leaf(t).id) }, nil},
	{"lost page", func(t *testing.T, m image) image { m.at(m.meta(t).freelist)[10]--; return m }, nil},

	{"cycle", func(t *testing.T, m image) image { p := m.apples(t); m.lead(p, 1, p.id); return m }, nil},
	{"twice", func(t *testing.T, m image) image { p := m.apples(t); m.lead(p, 1, p.child(0)); return m }, nil},
	{"child outside", func(t *testing.T, m image) image { m.lead(m.apples(t), 1, 1<<50); return m }, nil},
	{"child is a meta", func(t *testing.T, m image) image { m.lead(m.apples(t), 1, 1); return m }, nil},
	{"child is the freelist", func(t *testing.T, m image) image { m.lead(m.apples(t), 1, m.meta(t).freelist); return m }, nil},
	{"branch count", func(t *testing.T, m image) image { order.PutUint16(m.apples(t).b[10:], 0xffff); return m }, nil},
	{"branch without children", func(t *testing.T, m image) image { order.PutUint16(m.apples(t).b[10:], 0); return m }, nil},
	{"branch key", func(t *testing.T, m image) image { p := m.apples(t); p.key(1)[0] = 'z'; return m }, nil},
	{"branch key too low", func(t *testing.T, m image) image { p := m.apples(t); p.key(1)[9]--; return m }, nil},
	{"branch key too high", func(t *testing.T, m image) image { p := m.apples(t); p.key(1)[9]++; return m }, nil},

	{"leaf names another", func(t *testing.T, m image) image { m.leaf(t).b[0]++; return m }, nil},
	{"leaf type", func(t *testing.T, m image) image { m.leaf(t).b[8] = 0; return m }, nil},
	{"leaf two types", func(t *testing.T, m image) image { m.leaf(t).b[8] = typeLeaf | typeBranch; return m }, nil},
	{"leaf count", func(t *testing.T, m image) image { order.PutUint16(m.leaf(t).b[10:], 0xffff); return m }, nil},
	{"overflow", func(t *testing.T, m image) image { order.PutUint32(m.leaf(t).b[12:], 1<<32-1); return m }, nil},
	{"overflow over the next", func(t *testing.T, m image) image { m.leaf(t).b[12]++; return m }, nil},
	{"leaf flags", func(t *testing.T, m image) image { m.leaf(t).b[headerSize] = 2; return m }, nil},
	{"leaf bucket", func(t *testing.T, m image) image { m.leaf(t).b[headerSize] = 1; return m }, nil},
	{"leaf offset", func(t *testing.T, m image) image { order.PutUint32(m.leaf(t).b[headerSize+4:], 1<<32-8); return m }, nil},
	{"leaf offset in the table", func(t *testing.T, m image) image { order.PutUint32(m.leaf(t).b[headerSize+4:], 8); return m }, nil},
	{"leaf key size", func(t *testing.T, m image) image { order.PutUint32(m.leaf(t).b[headerSize+8:], 1<<32-8); return m }, nil},
	{"leaf no key", func(t *testing.T, m image) image { order.PutUint32(m.leaf(t).b[headerSize+8:], 0); return m }, nil},
	{"leaf value size", func(t *testing.T, m image) image { order.PutUint32(m.leaf(t).b[headerSize+12:], 1<<32-8); return m }, nil},
	{"leaf keys", func(t *testing.T, m image) image { p := m.leaf(t); copy(p.key(1), p.key(0)); return m }, nil},

	{"small bucket type", func(t *testing.T, m image) image { m.pears(t)[bucketSize+8] = typeBranch; return m }, nil},
	{"small bucket count", func(t *testing.T, m image) image { m.pears(t)[bucketSize+10] = 9; return m }, nil},
	{"small bucket in it", func(t *testing.T, m image) image { m.pears(t)[bucketSize+headerSize] = 1; return m }, nil},
	{"bucket root", func(t *testing.T, m image) image { order.PutUint64(m.pears(t), m.meta(t).root); return m }, nil},
}

// lead makes a branch's element lead to another page.
func (m image) lead(p page, i int, to uint64) {
	order.PutUint64(p.b[headerSize+elementSize*i+8:], to)
}

// free puts a page into the freelist, in order.
func (m image) free(t *testing.T, id uint64) image {
	f := m.at(m.meta(t).freelist)
	n := int(order.Uint16(f[10:]))
	i := 0
	for i < n && freeID(f[headerSize:], i) < id {
		i++
	}
	ids := f[headerSize : headerSize+idSize*(n+1)]
	copy(ids[idSize*(i+1):], ids[idSize*i:idSize*n])
	order.PutUint64(ids[idSize*i:], id)
	order.PutUint16(f[10:], uint16(n+1))
	return m
}

// pears is the value of the small bucket.
func (m image) pears(t *testing.T) []byte {
	t.Helper()
	root := m.page(t, m.meta(t).root)
	v, ok := root.bucket(pears)
	if !ok || order.Uint64(v) != 0 {
		t.Fatal("no small bucket")
	}
	return v
}

func TestDamage(t *testing.T) {
	sound := sample(t)
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			want := cmp.Or(d.want, blobstor.ErrCorrupt)
			m := d.do(t, sound.clone())
			checkIs(t, verifyFile(bytes.NewReader(m), int64(len(m)), trustNothing), want)
			_, err := Open(m.store(t, ""), options(Options{}))
			checkIs(t, err, want)
		})
	}
}

// TestRecentDamage: after an unclean stop Open finds damage in what the last commit wrote, and does not look for more.
func TestRecentDamage(t *testing.T) {
	sound := sample(t)
	now, before, err := readMetas(bytes.NewReader(sound), int64(len(sound)))
	check(t, err)
	v := recent{pages: pages{bytes.NewReader(sound), *now}, left: maxRecent, seen: map[uint64]bool{}}
	check(t, v.compare(before.root))
	if n := len(v.seen); n < 3 || n > 6 {
		t.Fatalf("%d pages of the last commit, want one path", n)
	}
	for id := range v.seen {
		m := sound.clone()
		m.at(id)[10] = 0xff
		m.at(id)[11] = 0xff
		_, err := Open(m.store(t, markDirty), options(Options{}))
		checkIs(t, err, blobstor.ErrCorrupt)
		m = sound.clone().free(t, id)
		_, err = Open(m.store(t, markDirty), options(Options{}))
		checkIs(t, err, blobstor.ErrCorrupt)
	}
	m := sound.clone()
	p := m.apples(t)
	old := p.child(0)
	if v.seen[old] {
		t.Fatal("the first leaf is recent")
	}
	m.at(old)[8] = 0
	db := reopen(t, m.store(t, markDirty), Options{})
	checkIs(t, db.Check(ctx), blobstor.ErrCorrupt)
	checkIs(t, db.View(func(tx *Tx) error { tx.Bucket(apples).Cursor().First(); return nil }), blobstor.ErrCorrupt)
}

// TestTornMeta: a meta page that a commit was writing when the process died is not missed; one that Close left is.
func TestTornMeta(t *testing.T) {
	sound := sample(t)
	for id := range uint64(2) {
		m := sound.clone()
		m.at(id)[70]++
		_, err := Open(m.store(t, markClean), options(Options{}))
		checkIs(t, err, blobstor.ErrCorrupt)
		db := reopen(t, m.store(t, markDirty), Options{})
		check(t, db.Check(ctx))
		put(t, db, 0, 10, 10)
		check(t, db.Check(ctx))
	}
}

// TestManyDamages: Check names all damaged pages, up to its limit, and ends with its context.
func TestManyDamages(t *testing.T) {
	m := sample(t)
	db := reopen(t, m.store(t, markClean), Options{})
	check(t, db.Check(ctx))
	done, cancel := context.WithCancel(ctx)
	cancel()
	checkIs(t, db.Check(done), context.Canceled)
	p := m.apples(t)
	f, err := os.OpenFile(filepath.Join(db.store.Dir.Path(), fileName), os.O_RDWR, 0)
	check(t, err)
	defer f.Close()
	for i := range p.len() {
		_, err := f.WriteAt([]byte{0}, int64(p.child(i))*pageSize+8)
		check(t, err)
	}
	err = db.Check(ctx)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatal(err)
	}
	if n, want := len(joined.Unwrap()), min(p.len(), maxErrors); n != want {
		t.Errorf("%d errors for %d damaged pages, want %d", n, p.len(), want)
	}
	for _, err := range joined.Unwrap() {
		checkIs(t, err, blobstor.ErrCorrupt)
	}
}

// TestCompactDamaged: what a branch has lost no read misses, so Compact must not make a whole file of the rest.
func TestCompactDamaged(t *testing.T) {
	m := sample(t)
	b := m.apples(t).b
	order.PutUint16(b[10:], order.Uint16(b[10:])-1) // nothing leads to the last leaf any more
	db := reopen(t, m.store(t, markClean), Options{})
	want := contents(t, db, apples)
	checkIs(t, db.Compact(ctx), blobstor.ErrCorrupt)
	same(t, contents(t, db, apples), want)
	check(t, db.Close())
	dir := db.store.Dir.Path()
	left, err := os.ReadFile(filepath.Join(dir, fileName))
	check(t, err)
	if !bytes.Equal(left, m) {
		t.Error("the damaged file was changed")
	}
	wantNames(t, dir, "DESCRIPTOR", "LOCK", fileName, markClean)
}

// TestBitFlips: whatever bit is wrong, Open and reads return errors at worst, and what Open lets in without a mark
// bbolt can read.
func TestBitFlips(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	sound := sampleOf(t, 300)
	dir := sound.store(t, "")
	const flips = 100
	found := 0
	for range flips {
		m := sound.clone()
		page := rng.Uint64N(m.meta(t).end)
		bit := rng.Uint64N(128 * 8) // the header and the first elements of a page
		m.at(page)[bit/8] ^= 1 << (bit % 8)
		check(t, os.WriteFile(filepath.Join(dir, fileName), m, 0o600))
		os.Remove(filepath.Join(dir, markClean))
		db, err := Open(dir, options(Options{}))
		if err != nil {
			if !errors.Is(err, blobstor.ErrCorrupt) && !errors.Is(err, blobstor.ErrLayout) {
				t.Fatal(err)
			}
			found++
			continue
		}
		contents(t, db, apples)
		contents(t, db, pears)
		check(t, db.Close())
	}
	t.Logf("%d of %d found", found, flips)
}

// TestTruncatedUnderneath: a fault in the map is an error, in a transaction of either kind.
func TestTruncatedUnderneath(t *testing.T) {
	read := func(tx *Tx) error {
		return tx.Bucket(apples).ForEach(func(_, v []byte) error {
			_ = bytes.Clone(v)
			return nil
		})
	}
	db := create(t, Options{})
	put(t, db, 0, 1000, 400)
	path := filepath.Join(db.store.Dir.Path(), fileName)
	check(t, os.Truncate(path, 4*pageSize))
	checkIs(t, db.View(read), blobstor.ErrCorrupt)
	checkIs(t, db.View(read), blobstor.ErrCorrupt)
	checkIs(t, db.Check(ctx), blobstor.ErrCorrupt)
	checkIs(t, db.Update(read), blobstor.ErrCorrupt)
	checkIs(t, db.Update(read), blobstor.ErrCorrupt, blobstor.ErrFailed)
	check(t, db.Close())
	_, err := Open(db.store.Dir.Path(), options(Options{}))
	checkIs(t, err, blobstor.ErrCorrupt)
}

// TestLimits: what a damaged file says of itself costs no more than the limits let it.
func TestLimits(t *testing.T) {
	m := sample(t)
	for range maxDepth { // Above the first leaf go branches of one child.
		p := m.apples(t)
		id, key, below := m.meta(t).end, p.key(0), p.child(0)
		b := make([]byte, pageSize)
		order.PutUint64(b, id)
		order.PutUint16(b[8:], typeBranch)
		order.PutUint16(b[10:], 1)
		order.PutUint32(b[headerSize:], elementSize)
		order.PutUint32(b[headerSize+4:], uint32(len(key)))
		order.PutUint64(b[headerSize+8:], below)
		copy(b[headerSize+elementSize:], key)
		m.lead(p, 0, id)
		m = append(m, b...)
		order.PutUint64(m.metaAt(t)[56:], id+1)
		m.seal()
	}
	checkIs(t, verifyFile(bytes.NewReader(m), int64(len(m)), trustNothing), blobstor.ErrCorrupt)

	p, buf := pages{bytes.NewReader(m), meta{end: 1 << 40}}, make([]byte, pageSize)
	_, err := p.body(header{id: 2, kind: typeLeaf, overflow: maxOverflow + 1}, &buf)
	checkIs(t, err, blobstor.ErrCorrupt)
	if len(buf) != pageSize {
		t.Errorf("a buffer of %d bytes", len(buf))
	}
}

// TestRecentIsBounded: however much the last commit wrote, Open reads little of it.
func TestRecentIsBounded(t *testing.T) {
	m := sampleAfter(t, func(db *DB) { put(t, db, 0, 30_000, 100) })
	reads := 0
	r := readerAt(func(b []byte, off int64) (int, error) {
		reads++
		return bytes.NewReader(m).ReadAt(b, off)
	})
	check(t, verifyFile(r, int64(len(m)), trustCommits))
	if n := int(m.meta(t).end); reads < maxRecent || reads > 3*maxRecent || n < 4*maxRecent {
		t.Errorf("%d reads of %d pages, want about %d", reads, n, maxRecent)
	}
}

type readerAt func(b []byte, off int64) (int, error)

func (r readerAt) ReadAt(b []byte, off int64) (int, error) { return r(b, off) }
