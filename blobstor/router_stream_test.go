package blobstor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// TestRouterReaderPrefersWholeCopies: a blob that lies in two routes is read from whichever copy is whole, also
// when the damage shows only while reading.
func TestRouterReaderPrefersWholeCopies(t *testing.T) {
	data := payload(1000)
	for _, test := range []struct {
		name         string
		small, large bool // damaged
		want         error
	}{
		{"both whole", false, false, nil},
		{"first damaged", true, false, nil},
		{"second damaged", false, true, nil},
		{"both damaged", true, true, blobstor.ErrCorrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, small, large := two(t)
			mustPut(t, small, address(1), data)
			mustPut(t, large, address(1), data)
			if test.small {
				small.Damage(address(1))
			}
			if test.large {
				large.Damage(address(1))
			}
			for _, at := range []blobstor.Location{"", "small/?", "large/?"} {
				got, err := r.Get(ctx, address(1), at, nil)
				sameOr(t, got, data, err, test.want)
				got, err = blobstor.GetRange(ctx, r, address(1), at, 0, 1000)
				sameOr(t, got, data, err, test.want)
				rd, err := r.NewReader(ctx, address(1), at)
				must(t, err)
				if test.want == nil {
					must(t, iotest.TestReader(rd, data))
				}
				_, err = rd.Seek(0, io.SeekStart)
				must(t, err)
				var buf bytes.Buffer
				_, err = rd.WriteTo(&buf)
				sameOr(t, buf.Bytes(), data, err, test.want)
				must(t, rd.Close())
			}
		})
	}
}

func sameOr(t testing.TB, got, want []byte, err, wantErr error) {
	t.Helper()
	if wantErr != nil {
		wantIs(t, err, wantErr)
	} else if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d bytes", len(got), err, len(want))
	}
}

// TestRouterReaderMixesCopies: two copies that are damaged in different places are one whole blob.
func TestRouterReaderMixesCopies(t *testing.T) {
	small, large := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewFault(storagetest.NewMemory(0))
	r := newRouter(t, blobstor.Route{Name: "small", MaxSize: 100, Storage: small}, blobstor.Route{Name: "large", Storage: large})
	data := payload(300)
	mustPut(t, small, address(1), data)
	mustPut(t, large, address(1), data)
	rd, err := r.NewReader(ctx, address(1), "")
	must(t, err)
	defer rd.Close()
	p := make([]byte, 100)
	for i := range 3 { // the first copy fails in the first and the last piece, the second in the middle
		if i != 1 {
			small.Fail(storagetest.ReadRange, 1, blobstor.ErrCorrupt)
		}
		_, err := rd.ReadAt(p, int64(i)*100)
		must(t, err)
		if !bytes.Equal(p, data[i*100:i*100+100]) {
			t.Errorf("piece %d differs", i)
		}
	}
	small.Fail(storagetest.ReadRange, 1, syscall.EIO)
	large.Fail(storagetest.ReadRange, 1, blobstor.ErrCorrupt)
	_, err = rd.ReadAt(p, 0)
	wantIs(t, err, syscall.EIO, blobstor.ErrCorrupt)
}

func TestRouterReaderErrors(t *testing.T) {
	small, large := storagetest.NewFault(storagetest.NewMemory(0)), storagetest.NewFault(storagetest.NewMemory(0))
	r := newRouter(t, blobstor.Route{Name: "small", MaxSize: 100, Storage: small}, blobstor.Route{Name: "large", Storage: large})
	mustPut(t, small, address(1), payload(50))
	large.Fail(storagetest.Stat, 0, syscall.EIO)
	rd, err := r.NewReader(ctx, address(1), "")
	must(t, err)
	small.Fail(storagetest.ReadRange, 0, blobstor.ErrCorrupt)
	_, err = rd.Read(make([]byte, 5))
	wantIs(t, err, blobstor.ErrCorrupt, syscall.EIO) // the second copy, if there is one, could not be opened
	wantNot(t, err, blobstor.ErrNotFound)
	must(t, rd.Close())

	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.NewReader(done, address(1), "")
	wantIs(t, err, context.Canceled)
}

// TestRouterWriterSpools: what is small stays in memory until Commit; what outgrows it goes to the largest route
// with all that was written before.
func TestRouterWriterSpools(t *testing.T) {
	for _, size := range []int{0, 1, 99, 100, 101, 1000} {
		for _, piece := range []int{1, 7, 100, 5000} {
			r, _, _ := two(t)
			w, err := r.NewWriter(ctx, -1)
			must(t, err)
			data := payload(size)
			for rest := data; len(rest) > 0; {
				n, err := w.Write(rest[:min(piece, len(rest))])
				must(t, err)
				rest = rest[n:]
			}
			at, err := w.Commit(address(1))
			must(t, err)
			must(t, w.Close())
			if small := strings.HasPrefix(string(at), "small/"); small != (size <= 100) {
				t.Errorf("%d bytes in pieces of %d went to %q", size, piece, at)
			}
			wantGet(t, r, address(1), data)
			if n := count(t, r); n != 1 {
				t.Errorf("%d blobs, want 1", n)
			}
			_, err = w.Commit(address(2))
			wantIs(t, err, blobstor.ErrClosed)
			_, err = w.Write(payload(1))
			wantIs(t, err, blobstor.ErrClosed)
		}
	}
}

func TestRouterWriterDiscards(t *testing.T) {
	r, _, _ := two(t)
	for _, size := range []int{50, 500} {
		w, err := r.NewWriter(ctx, -1)
		must(t, err)
		_, err = w.Write(payload(size))
		must(t, err)
		must(t, w.Close())
		must(t, w.Close())
		_, err = w.Commit(address(1))
		wantIs(t, err, blobstor.ErrClosed)
	}
	if n := count(t, r); n != 0 {
		t.Errorf("%d blobs, want none", n)
	}
}

// TestRouterWriterKeepsTheLimit: a stream of unknown size that grows above the last route's MaxSize is refused as
// soon as it does, and holds no more memory than the limit.
func TestRouterWriterKeepsTheLimit(t *testing.T) {
	r := newRouter(t,
		blobstor.Route{Name: "a", MaxSize: 100, Storage: storagetest.NewMemory(0)},
		blobstor.Route{Name: "b", MaxSize: 300, Storage: storagetest.NewMemory(0)})
	w, err := r.NewWriter(ctx, -1)
	must(t, err)
	for range 30 {
		_, err = w.Write(payload(10))
		must(t, err)
	}
	for range 2 {
		_, err = w.Write(payload(1))
		wantIs(t, err, blobstor.ErrTooLarge)
	}
	_, err = w.Commit(address(1))
	wantIs(t, err, blobstor.ErrTooLarge)
	if n := count(t, r); n != 0 {
		t.Errorf("%d blobs, want none", n)
	}
	w, err = r.NewWriter(ctx, -1)
	must(t, err)
	_, err = w.Write(payload(301))
	wantIs(t, err, blobstor.ErrTooLarge)
	_, err = w.Commit(address(1))
	wantIs(t, err, blobstor.ErrTooLarge)
}

func TestRouterWriterFails(t *testing.T) {
	broken := errors.New("broken")
	r := newRouter(t,
		blobstor.Route{Name: "a", MaxSize: 100, Storage: storagetest.NewMemory(0)},
		blobstor.Route{Name: "b", Storage: failingStreams{storagetest.NewMemory(0), broken}})
	w, err := r.NewWriter(ctx, -1)
	must(t, err)
	_, err = w.Write(payload(60))
	must(t, err)
	_, err = w.Write(payload(60))
	wantIs(t, err, broken)
	_, err = w.Commit(address(1))
	wantIs(t, err, broken)
	w, err = r.NewWriter(ctx, 1000)
	must(t, err)
	_, err = w.Commit(address(1))
	wantIs(t, err, broken)

	done, cancel := context.WithCancel(ctx)
	w, err = r.NewWriter(done, -1)
	must(t, err)
	cancel()
	_, err = w.Write(payload(200))
	wantIs(t, err, context.Canceled)
	_, err = r.NewWriter(done, -1)
	wantIs(t, err, context.Canceled)
}

// TestRouterSpoolWithoutSmallRoute: a single route without MaxSize still spools, so its small streams are puts.
func TestRouterSpoolWithoutSmallRoute(t *testing.T) {
	f := storagetest.NewFault(storagetest.NewMemory(0))
	r := newRouter(t, blobstor.Route{Name: "a", Storage: f})
	for i, size := range []int{blobstor.DefaultSmall, blobstor.DefaultSmall + 1} {
		w, err := r.NewWriter(ctx, -1)
		must(t, err)
		_, err = w.Write(payload(size))
		must(t, err)
		_, err = w.Commit(address(i))
		must(t, err)
		wantGet(t, r, address(i), payload(size))
	}
}
