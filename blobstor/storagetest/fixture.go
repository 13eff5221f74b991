package storagetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// fixture is one storage under test, with what a clause needs to fill and question it.
type fixture struct {
	testing.TB
	h    Harness
	view view
	raw  blobstor.Storage // the harness's own value, which its hooks take
	ctx  context.Context
	rng  *rand.Rand
	data *rand.ChaCha8
}

// blob is what the suite knows to be stored.
type blob struct {
	addr blobstor.Address
	data []byte
	at   blobstor.Location
}

func newFixture(tb testing.TB, h Harness, v view, name string) *fixture {
	tb.Logf("Harness.Seed %d", h.Seed)
	seed := sha256.Sum256(fmt.Append(nil, h.Seed, name))
	data := rand.NewChaCha8(seed)
	return &fixture{TB: tb, h: h, view: v, raw: h.New(tb), ctx: context.Background(), rng: rand.New(data), data: data}
}

// ready returns the storage in the view under test. A clause of a view that reads puts what it needs before.
func (f *fixture) ready() blobstor.BlobStor {
	f.Helper()
	switch f.view {
	case reopened:
		f.reopen()
	case readOnly:
		return blobstor.Stream(f.h.ReadOnly(f, f.raw))
	}
	return f.again()
}

// again returns the storage after it was replaced.
func (f *fixture) again() blobstor.BlobStor {
	if f.view == hidden {
		return blobstor.Stream(Hide(f.raw))
	}
	return blobstor.Stream(f.raw)
}

// reopen closes the storage, opens it again and returns it.
func (f *fixture) reopen() blobstor.BlobStor {
	f.Helper()
	f.need("Reopen", f.h.Reopen != nil)
	f.raw = f.h.Reopen(f, f.raw)
	return f.again()
}

// powerLoss cuts the power, opens the storage again and returns it.
func (f *fixture) powerLoss() blobstor.BlobStor {
	f.Helper()
	f.need("PowerLoss", f.h.PowerLoss != nil)
	f.raw = f.h.PowerLoss(f, f.raw)
	return f.again()
}

func (f *fixture) damage(b blob) {
	f.Helper()
	f.need("Damage", f.h.Damage != nil)
	f.h.Damage(f, f.raw, b.addr)
}

func (f *fixture) need(hook string, has bool) {
	f.Helper()
	if !has {
		f.Skipf("Harness.%s is missing: this clause is not proven", hook)
	}
}

// addr returns a fresh address.
func (f *fixture) addr() (a blobstor.Address) {
	f.data.Read(a.Container[:])
	f.data.Read(a.Object[:])
	return a
}

// bytes returns n random bytes, or as many as the storage's limit allows.
func (f *fixture) bytes(n int) []byte {
	if f.h.Limit > 0 {
		n = min(n, int(f.h.Limit))
	}
	return f.anyBytes(n)
}

func (f *fixture) anyBytes(n int) []byte {
	b := make([]byte, n)
	f.data.Read(b)
	return b
}

// new returns a blob of n bytes that is not stored yet.
func (f *fixture) new(n int) blob { return blob{addr: f.addr(), data: f.bytes(n)} }

// put stores a new blob of n bytes.
func (f *fixture) put(n int) blob {
	f.Helper()
	b := f.new(n)
	f.putTo(f.raw, &b)
	return b
}

// puts stores n blobs of sizes from 0 on to a few KiB.
func (f *fixture) puts(n int) []blob {
	f.Helper()
	blobs := make([]blob, n)
	for i := range blobs {
		blobs[i] = f.put(i * 97 % 5000)
	}
	return blobs
}

func (f *fixture) putTo(s blobstor.Storage, b *blob) {
	f.Helper()
	at, err := s.Put(f.ctx, b.addr, b.data)
	if err != nil {
		f.Fatalf("Put of %d bytes: %v", len(b.data), err)
	}
	b.at = at
}

// has checks that s returns the blob by Get and Stat.
func (f *fixture) has(s blobstor.Storage, b blob) {
	f.Helper()
	got, err := s.Get(f.ctx, b.addr, b.at, nil)
	if err != nil {
		f.Fatalf("Get of a stored blob: %v", err)
	}
	f.same(got, b.data)
	info, err := s.Stat(f.ctx, b.addr, b.at)
	if err != nil {
		f.Fatalf("Stat of a stored blob: %v", err)
	}
	if info.Address != b.addr || info.Size != int64(len(b.data)) {
		f.Fatalf("Stat: %v, %d bytes; want %v, %d bytes", info.Address, info.Size, b.addr, len(b.data))
	}
}

func (f *fixture) hasAll(s blobstor.Storage, blobs []blob) {
	f.Helper()
	for _, b := range blobs {
		f.has(s, b)
	}
}

// lacks checks that no method of s finds the blob.
func (f *fixture) lacks(s blobstor.BlobStor, b blob) {
	f.Helper()
	for _, op := range lookups {
		if err := op.do(f.ctx, s, b.addr, b.at); !errors.Is(err, blobstor.ErrNotFound) {
			f.Fatalf("%s of a blob that is not there: %v, want ErrNotFound", op.name, err)
		}
	}
}

// lookups are the methods that look for one blob.
var lookups = []struct {
	name string
	do   func(ctx context.Context, s blobstor.BlobStor, addr blobstor.Address, at blobstor.Location) error
}{
	{"Get", func(ctx context.Context, s blobstor.BlobStor, addr blobstor.Address, at blobstor.Location) error {
		_, err := s.Get(ctx, addr, at, nil)
		return err
	}},
	{"Stat", func(ctx context.Context, s blobstor.BlobStor, addr blobstor.Address, at blobstor.Location) error {
		_, err := s.Stat(ctx, addr, at)
		return err
	}},
	{"ReadRange", func(ctx context.Context, s blobstor.BlobStor, addr blobstor.Address, at blobstor.Location) error {
		_, _, err := blobstor.ReadRange(ctx, s, addr, at, nil, 0)
		return err
	}},
	{"NewReader", func(ctx context.Context, s blobstor.BlobStor, addr blobstor.Address, at blobstor.Location) error {
		r, err := s.NewReader(ctx, addr, at)
		if err == nil {
			r.Close()
		}
		return err
	}},
}

// same compares content without printing it.
func (f *fixture) same(got, want []byte) {
	f.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		f.Fatalf("wrong content: got %d bytes, want %d, they differ from byte %d on", len(got), len(want), i)
	}
}

// is checks that err is one of the wanted errors.
func (f *fixture) is(what string, err error, want ...error) {
	f.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	f.Fatalf("%s: %v; want %v", what, err, want)
}

func (f *fixture) ok(what string, err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// await calls fn beside the test and fails with all stacks if it does not come back.
func (f *fixture) await(what string, fn func() error) error {
	f.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(cmp.Or(f.h.Patience, time.Minute)):
		stacks := make([]byte, 1<<20)
		f.Fatalf("%s hangs\n%s", what, stacks[:runtime.Stack(stacks, true)])
		return nil
	}
}

// list runs over All and returns what it yielded, by address.
func (f *fixture) list(s blobstor.Storage, after blobstor.Location) map[blobstor.Address]blobstor.Info {
	f.Helper()
	infos := map[blobstor.Address]blobstor.Info{}
	for info, err := range s.All(f.ctx, after) {
		if err != nil {
			f.Fatalf("All: %v", err)
		}
		if _, twice := infos[info.Address]; twice {
			f.Fatalf("All yielded %v twice", info.Address)
		}
		infos[info.Address] = info
	}
	return infos
}

// lists checks that All yields exactly these blobs.
func (f *fixture) lists(s blobstor.Storage, blobs []blob) {
	f.Helper()
	infos := f.list(s, "")
	for _, b := range blobs {
		info, ok := infos[b.addr]
		if !ok {
			f.Fatalf("All misses %v", b.addr)
		}
		if info.Size != int64(len(b.data)) && info.Size != -1 || info.Stored < 0 {
			f.Fatalf("All: %d bytes, %d stored; want %d", info.Size, info.Stored, len(b.data))
		}
	}
	if len(infos) != len(blobs) {
		f.Fatalf("All yielded %d blobs, want %d", len(infos), len(blobs))
	}
}
