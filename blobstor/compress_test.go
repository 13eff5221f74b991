package blobstor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

func newCompressed(tb testing.TB, s blobstor.Storage, o blobstor.CompressOptions) *blobstor.Compressed {
	tb.Helper()
	c, err := blobstor.Compress(s, &o)
	must(tb, err)
	return c
}

// compressed returns a storage that compresses, and the memory below it.
func compressed(tb testing.TB, o blobstor.CompressOptions) (*blobstor.Compressed, *storagetest.Memory) {
	tb.Helper()
	m := storagetest.NewMemory(0)
	return newCompressed(tb, m, o), m
}

// text returns n bytes that look like prose, the same for the same n and seed.
func text(n int, seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	words := rand.NewZipf(rnd, 1.2, 4, 5000)
	var b bytes.Buffer
	for b.Len() < n {
		w := words.Uint64()
		length, spell := 2+w%9, rand.New(rand.NewPCG(w, 2))
		for range length {
			b.WriteByte("etaoinshrdlucmfwypvbgkqjxz"[min(25, int(spell.ExpFloat64()*6))])
		}
		b.WriteString([]string{" ", " ", " ", " ", ", ", ". ", "\n"}[rnd.IntN(7)])
	}
	return b.Bytes()[:n]
}

// records returns n bytes of JSON lines, as text does.
func records(n int, seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 3))
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := 0; b.Len() < n; i++ {
		_ = enc.Encode(map[string]any{
			"id": rnd.Uint32(), "owner": fmt.Sprintf("%08x", rnd.IntN(500)), "epoch": 100_000 + i/50,
			"attributes": []string{"FileName", fmt.Sprintf("image-%d.png", i), "ContentType", "image/png"}, "size": rnd.IntN(1 << 20),
		})
	}
	return b.Bytes()[:n]
}

func random(n int, seed uint64) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	rand.NewChaCha8(key).Read(b)
	return b
}

// mixed has blocks of both kinds.
func mixed(n int, seed uint64) (b []byte) {
	for i := uint64(0); len(b) < n; i++ {
		part := 1 + (n-len(b))/2
		if i%2 == 0 {
			b = append(b, text(part, seed+i)...)
		} else {
			b = append(b, random(part, seed+i)...)
		}
	}
	return b[:n]
}

var contents = []struct {
	name string
	make func(n int, seed uint64) []byte
}{{"text", text}, {"json", records}, {"random", random}, {"mixed", mixed}}

// compressHarness is the harness of a storage that compresses over the one that inner makes.
func compressHarness(o blobstor.CompressOptions, inner storagetest.Harness) storagetest.Harness {
	under := func(s blobstor.Storage) blobstor.Storage { return s.(*onCompressed).under }
	over := func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
		return &onCompressed{newCompressed(tb, s, o), s}
	}
	h := inner
	h.Limit = o.MaxSize
	h.New = func(tb testing.TB) blobstor.Storage { return over(tb, inner.New(tb)) }
	h.Reopen = func(tb testing.TB, s blobstor.Storage) blobstor.Storage { return over(tb, inner.Reopen(tb, under(s))) }
	h.ReadOnly = func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
		return over(tb, inner.ReadOnly(tb, under(s)))
	}
	if inner.PowerLoss != nil {
		h.PowerLoss = func(tb testing.TB, s blobstor.Storage) blobstor.Storage {
			return over(tb, inner.PowerLoss(tb, under(s)))
		}
		h.Damage = func(tb testing.TB, s blobstor.Storage, addr blobstor.Address) { inner.Damage(tb, under(s), addr) }
		h.Full = func(tb testing.TB, s blobstor.Storage) func() { return inner.Full(tb, under(s)) }
		h.FailSync = func(tb testing.TB, s blobstor.Storage) func() { return inner.FailSync(tb, under(s)) }
	}
	return h
}

// onCompressed lets the harness reach the storage below.
type onCompressed struct {
	*blobstor.Compressed
	under blobstor.Storage
}

func TestCompressConformance(t *testing.T) {
	options := []blobstor.CompressOptions{
		{Level: -1}, {Level: 1, BlockSize: 4 << 10}, {}, {Level: 7, BlockSize: 1 << 20}, {Level: 22}, {MaxSize: 50_000},
	}
	if testing.Short() {
		options = options[1:3]
	}
	for _, o := range options {
		t.Run(fmt.Sprintf("level=%d block=%d max=%d", o.Level, o.BlockSize, o.MaxSize), func(t *testing.T) {
			t.Parallel()
			storagetest.Test(t, compressHarness(o, storagetest.MemoryHarness(0)))
		})
	}
	t.Run("router", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the router and what is below it are tested alone")
		}
		t.Parallel()
		for _, hide := range []bool{false, true} {
			storagetest.Test(t, compressHarness(blobstor.CompressOptions{BlockSize: 4 << 10}, harness(0, hide, func() []blobstor.Route {
				return []blobstor.Route{
					{Name: "small", MaxSize: 1000, Storage: storagetest.NewMemory(0)},
					{Name: "large", Storage: storagetest.NewMemory(0)},
				}
			})))
		}
	})
}

// eachWay reads a blob in every way and compares.
func eachWay(t testing.TB, s blobstor.BlobStor, addr blobstor.Address, want []byte, rnd *rand.Rand) {
	t.Helper()
	wantGet(t, s, addr, want)
	if info, err := s.Stat(ctx, addr, ""); err != nil || info.Size != int64(len(want)) {
		t.Fatalf("Stat: %+v, %v; want a size of %d", info, err, len(want))
	}
	r, err := s.NewReader(ctx, addr, "")
	must(t, err)
	defer r.Close()
	if r.Size() != int64(len(want)) {
		t.Fatalf("a reader of %d bytes, want %d", r.Size(), len(want))
	}
	for range 20 {
		off, n := edge(rnd, len(want)), edge(rnd, len(want))
		if off+n > len(want) {
			n = len(want) - off
		}
		got, err := blobstor.GetRange(ctx, s, addr, "", int64(off), int64(n))
		if err != nil || !bytes.Equal(got, want[off:off+n]) {
			t.Fatalf("GetRange(%d, %d) of %d: %d bytes, %v", off, n, len(want), len(got), err)
		}
		p := make([]byte, n)
		if m, err := r.ReadAt(p, int64(off)); m != n || err != nil && err != io.EOF || !bytes.Equal(p, want[off:off+n]) {
			t.Fatalf("ReadAt(%d, %d) of %d: %d bytes, %v", off, n, len(want), m, err)
		}
	}
	off := edge(rnd, len(want))
	if at, err := r.Seek(int64(off), io.SeekStart); err != nil || at != int64(off) {
		t.Fatalf("Seek(%d): %d, %v", off, at, err)
	}
	var rest bytes.Buffer
	if n, err := r.WriteTo(&rest); err != nil || n != int64(len(want)-off) || !bytes.Equal(rest.Bytes(), want[off:]) {
		t.Fatalf("WriteTo from %d of %d: %d bytes, %v", off, len(want), n, err)
	}
}

// edge returns a number from 0 to n, often one next to the border of a block.
func edge(rnd *rand.Rand, n int) int {
	at := rnd.IntN(n + 1)
	if rnd.IntN(2) == 0 {
		at = at>>12<<12 + rnd.IntN(3) - 1
	}
	return min(max(at, 0), n)
}

// TestCompressRanges is ranges, readers and writers against a slice.
func TestCompressRanges(t *testing.T) {
	const seed = 4
	rnd := rand.New(rand.NewPCG(seed, seed))
	small, large := storagetest.NewMemory(0), storagetest.NewMemory(0)
	routed := newRouter(t, blobstor.Route{Name: "small", MaxSize: 20_000, Storage: small}, blobstor.Route{Name: "large", Storage: large})
	n := 0
	for _, o := range []blobstor.CompressOptions{{BlockSize: 4 << 10}, {BlockSize: 4 << 10, Level: -1}, {}} {
		s := newCompressed(t, routed, o)
		for _, size := range []int{0, 1, 63, 64, 4095, 4096, 4097, 8192, 40_000, 131_072, 300_001, 1_200_000} {
			for _, content := range contents {
				data := content.make(size, uint64(n))
				n += 2
				mustPut(t, s, address(n), data)
				eachWay(t, s, address(n), data, rnd)
				stream(t, s, address(n+1), data, rnd)
				eachWay(t, s, address(n+1), data, rnd)
			}
		}
	}
	if count(t, small) == 0 || count(t, large) == 0 {
		t.Error("a route was not tried")
	}
	info, err := newCompressed(t, small, blobstor.CompressOptions{}).Stat(ctx, address(2), "")
	if err != nil || info.Size != 0 {
		t.Errorf("an empty blob: %+v, %v", info, err)
	}
}

// stream writes a blob in pieces.
func stream(t testing.TB, s blobstor.BlobStor, addr blobstor.Address, data []byte, rnd *rand.Rand) {
	t.Helper()
	size := int64(-1)
	if rnd.IntN(2) == 0 {
		size = int64(len(data))
	}
	w, err := s.NewWriter(ctx, size)
	must(t, err)
	defer w.Close()
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 1+rnd.IntN(1+len(data)/2))
		m, err := w.Write(rest[:n])
		must(t, err)
		rest = rest[m:]
	}
	_, err = w.Commit(addr)
	must(t, err)
}

// TestCompressReaderContract runs the standard library's test of readers at the borders of blocks.
func TestCompressReaderContract(t *testing.T) {
	s, _ := compressed(t, blobstor.CompressOptions{BlockSize: 4 << 10})
	for i, n := range []int{0, 1, 4095, 4096, 4097, 9000} {
		for k, content := range contents {
			data, addr := content.make(n, 1), address(10*i+k)
			mustPut(t, s, addr, data)
			r, err := s.NewReader(ctx, addr, "")
			must(t, err)
			must(t, iotest.TestReader(r, data))
			must(t, r.Close())
		}
	}
}

// TestCompressStreamsAlike: a blob makes the same frame whichever way it came, so that copies in two routes are equal.
func TestCompressStreamsAlike(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	s, m := compressed(t, blobstor.CompressOptions{BlockSize: 8 << 10})
	for i, content := range contents {
		data := content.make(100_000, 7)
		mustPut(t, s, address(2*i), data)
		stream(t, s, address(2*i+1), data, rnd)
		put, err := m.Get(ctx, address(2*i), "", nil)
		must(t, err)
		wantGet(t, m, address(2*i+1), put)
	}
}

// TestCompressStoresLess: what does not become smaller costs an index and a footer, and what does is smaller.
func TestCompressStoresLess(t *testing.T) {
	const n = 300_000 // three blocks
	already, err := zstd.NewWriter(nil)
	must(t, err)
	cases := []struct {
		name string
		data []byte
		raw  bool
	}{
		{"text", text(n, 1), false},
		{"json", records(n, 1), false},
		{"zeros", make([]byte, n), false},
		{"random", random(n, 1), true},
		{"zstd", already.EncodeAll(text(4*n, 1), nil)[:n], true},
		{"short", []byte("aaaaaaaaaaaaaaaaaaaaaaaa"), true},
	}
	s, m := compressed(t, blobstor.CompressOptions{})
	off := newCompressed(t, m, blobstor.CompressOptions{Level: -1})
	for i, c := range cases {
		mustPut(t, s, address(2*i), c.data)
		mustPut(t, off, address(2*i+1), c.data)
		raw := int64(len(c.data)) + 16*int64((len(c.data)+128<<10-1)/(128<<10)) + 24
		for k, isRaw := range []bool{c.raw, true} {
			info, err := s.Stat(ctx, address(2*i+k), "")
			must(t, err)
			if isRaw != (info.Stored == raw) || info.Stored > raw {
				t.Errorf("%s: %d of %d bytes stored", c.name, info.Stored, len(c.data))
			}
			wantGet(t, s, address(2*i+k), c.data)
			wantGet(t, off, address(2*i+k), c.data)
		}
	}
	if got, raw := s.Stats(), uint64(0); got.Puts != uint64(len(cases)) || got.Stored >= got.Bytes || got.Bytes == raw {
		t.Errorf("%+v", got)
	}
}

// TestCompressFramesInFrames: what looks like a frame is a blob like any other.
func TestCompressFramesInFrames(t *testing.T) {
	s, m := compressed(t, blobstor.CompressOptions{})
	data := text(200_000, 1)
	for i := range 5 {
		mustPut(t, s, address(i), data)
		wantGet(t, s, address(i), data)
		frame, err := m.Get(ctx, address(i), "", nil)
		must(t, err)
		data = frame
	}
	enc, err := zstd.NewWriter(nil)
	must(t, err)
	frame := enc.EncodeAll(text(1000, 1), nil)
	mustPut(t, s, address(9), frame)
	wantGet(t, s, address(9), frame)
}

func TestCompressOptions(t *testing.T) {
	bad := blobstor.CompressOptions{Level: 23, BlockSize: 5000, MaxSize: -1}
	_, err := blobstor.Compress(storagetest.NewMemory(0), &bad)
	for _, what := range []string{"level 23", "5000", "MaxSize"} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v does not name %s", err, what)
		}
	}
	if _, err := blobstor.Compress(storagetest.NewMemory(0), nil); err != nil {
		t.Error(err)
	}
}

// TestCompressReaders: many goroutines on one reader; its blob is deleted, it is closed, the storage is.
func TestCompressReaders(t *testing.T) {
	s, _ := compressed(t, blobstor.CompressOptions{BlockSize: 4 << 10})
	data := mixed(100_000, 1)
	mustPut(t, s, address(1), data)
	r, err := s.NewReader(ctx, address(1), "")
	must(t, err)
	var wg sync.WaitGroup
	for g := range uint64(16) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(g, 6))
			p := make([]byte, 10_000)
			for range 200 {
				off, n := edge(rnd, len(data)), edge(rnd, len(p))
				m, err := r.ReadAt(p[:n], int64(off))
				if err != nil && err != io.EOF || m != min(n, len(data)-off) || !bytes.Equal(p[:m], data[off:off+m]) {
					t.Errorf("ReadAt(%d, %d): %d bytes, %v", off, n, m, err)
					return
				}
			}
		})
	}
	wg.Wait()
	must(t, s.Delete(ctx, address(1), ""))
	if got, err := io.ReadAll(r); err == nil && !bytes.Equal(got, data) {
		t.Error("other bytes after the blob was deleted")
	}
	must(t, r.Close())
	_, err = r.ReadAt(make([]byte, 1), 0)
	wantIs(t, err, blobstor.ErrClosed)
	mustPut(t, s, address(2), data)
	r, err = s.NewReader(ctx, address(2), "")
	must(t, err)
	_, err = r.ReadAt(make([]byte, 1), 0) // the block is at hand from now on
	must(t, err)
	must(t, s.Close())
	_, err = r.ReadAt(make([]byte, 1), 0)
	wantIs(t, err, blobstor.ErrClosed)
	must(t, r.Close())
}

// TestCompressLeavesNoGoroutine: encoders and decoders run in the caller.
func TestCompressLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		s, _ := compressed(t, blobstor.CompressOptions{})
		data := text(300_000, 1)
		mustPut(t, s, address(1), data)
		wantGet(t, s, address(1), data)
		must(t, s.Close())
	}
	if now := runtime.NumGoroutine(); now > before+5 { // of other tests
		t.Errorf("%d goroutines, %d before", now, before)
	}
}

// TestCompressSource: the Go source tree, file by file, is hardly larger than zstd alone makes it.
func TestCompressSource(t *testing.T) {
	src := filepath.Join(build.Default.GOROOT, "src")
	if _, err := os.Stat(src); err != nil || testing.Short() {
		t.Skip("reads the Go source tree")
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)), zstd.WithEncoderConcurrency(1))
	must(t, err)
	m := storagetest.NewMemory(0)
	s := newCompressed(t, m, blobstor.CompressOptions{})
	var alone, raw int
	var buf []byte
	must(t, filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		buf = enc.EncodeAll(data, buf[:0])
		alone, raw = alone+len(buf), raw+len(data)
		mustPut(t, s, address(1), data)
		return s.Delete(ctx, address(1), "")
	}))
	stored := s.Stats().Stored
	t.Logf("%d bytes, %d stored, %d by zstd -3: %.3f", raw, stored, alone, float64(stored)/float64(alone))
	if float64(stored) > 1.05*float64(alone) {
		t.Error("more than 1.05 of zstd -3")
	}
}
