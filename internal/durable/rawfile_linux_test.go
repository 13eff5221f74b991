//go:build linux && !generic

package durable

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestBusy(t *testing.T) {
	d := openDir(t, nil)
	f := temp(t, d, "x")
	defer f.Discard()
	for range 2 {
		if f.Busy() {
			t.Fatal("busy without a call")
		}
		check(t, f.f.do(func(int) error {
			if !f.Busy() {
				t.Error("not busy during a call")
			}
			return nil
		}))
	}
	check(t, f.Close())
	if f.Busy() {
		t.Fatal("busy after Close")
	}
}

// TestNamedDecides: a shortage does not make an open give up temporaries without names, nor does it get lost.
func TestNamedDecides(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.EDQUOT} {
		mode, err := named(errno)
		checkIs(t, err, errno)
		if mode != modeUnknown {
			t.Fatalf("%v decides", errno)
		}
	}
}
