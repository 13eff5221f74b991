package tsz

import (
	"syscall"
	"testing"
)

// TestReadOnlyMemory reads, seeks and resumes from memory that cannot be written, up to its very last byte.
func TestReadOnlyMemory(t *testing.T) {
	for _, s := range corpus() {
		if len(s.ts) == 0 {
			continue
		}
		e := encoderOf(t, s.unit, s.t0, s.ts, s.vs)
		var d Decoder
		d.Reset(mapped(t, mustSeal(t, s)))
		wantPoints(t, &d, s)
		block := mapped(t, e.AppendBlock(nil))
		d.Reset(block)
		wantAll(t, &d, s)
		d.Reset(block)
		if !d.SeekTo(s.ts[len(s.ts)/2]) {
			t.Fatalf("%s: %v", s.name, d.Err())
		}
		if err := e.Resume(block); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		d.ResetStream(s.unit, s.t0, mapped(t, e.Finish()))
		wantPoints(t, &d, s)
	}
}

// mapped returns a copy of b in pages that can only be read, at their end: behind it lies nothing.
func mapped(t *testing.T, b []byte) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	size := (len(b) + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	at := size - len(b)
	copy(m[at:], b)
	if err := syscall.Mprotect(m[:size], syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mprotect(m[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[at:size:size]
}
