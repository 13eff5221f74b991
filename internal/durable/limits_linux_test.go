package durable

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// inChild runs the rest of the test in a process of its own, which may change its limits or be killed.
func inChild(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	const variable, alive = "DURABLE_CHILD", "the child lives"
	if os.Getenv(variable) != "" {
		body(t)
		fmt.Println(alive)
		return
	}
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), alive) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// limit lowers a limit of the process and returns how to restore it.
func limit(t *testing.T, resource int, n uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	check(t, unix.Getrlimit(resource, &old))
	check(t, unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: old.Max}))
	return func() { check(t, unix.Setrlimit(resource, &old)) }
}

func wantNoSpace(t *testing.T, err error, errno unix.Errno) {
	t.Helper()
	checkIs(t, err, errno)
	for _, err := range []error{blobstor.Wrap("put", blobstor.Address{}, "", err), blobstor.Failed(err)} {
		if blobstor.IsFault(err) {
			t.Errorf("%v is a fault", err)
		}
	}
	checkIs(t, blobstor.Wrap("put", blobstor.Address{}, "", err), blobstor.ErrNoSpace)
}

// TestFileSizeLimit: the signal that comes with the error ends no Go program, and the error is a refusal.
func TestFileSizeLimit(t *testing.T) {
	inChild(t, func(t *testing.T) {
		const most = 1 << 16
		d := openDir(t, nil)
		f := temp(t, d, "x")
		defer f.Discard()
		defer limit(t, unix.RLIMIT_FSIZE, most)()
		n, err := f.WriteAt(make([]byte, 2*most), 0)
		wantNoSpace(t, err, unix.EFBIG)
		if n > most {
			t.Errorf("wrote %d bytes", n)
		}
		_, err = f.WriteAt([]byte("x"), most)
		wantNoSpace(t, err, unix.EFBIG)
		wantNoSpace(t, f.Truncate(most+1), unix.EFBIG)
		wantNoSpace(t, f.Reserve(most+1), unix.EFBIG)
		wantNoSpace(t, writeZeros(&f.f, most+1), unix.EFBIG)
		check(t, d.WriteFile("small", []byte("x")))
	})
}

// TestOpenFilesLimit: whatever needs a descriptor says so when there is none left, and works again afterwards.
func TestOpenFilesLimit(t *testing.T) {
	inChild(t, func(t *testing.T) {
		path := t.TempDir()
		openStore(t, path, StoreOptions{Descriptor: want("x"), Create: true}).Close()
		d, known, named := openDir(t, nil), openDir(t, nil), openDir(t, nil)
		check(t, temp(t, known, "x").Discard())
		named.o.named = true
		check(t, d.MakeDirs("sub"))
		check(t, os.WriteFile(d.join("sub/f"), nil, 0o600))
		check(t, os.WriteFile(d.join("f"), nil, 0o600))
		calls := []func() error{
			func() error { _, err := d.Open("f"); return err },
			func() error { _, err := d.OpenRW("f"); return err },
			func() error { _, err := d.Sub("sub"); return err },
			func() error { _, err := d.Mkdir("sub"); return err },
			func() error { _, err := d.Names(); return err },
			func() error { _, err := d.Temp(); return err },
			func() error { _, err := known.Temp(); return err },
			func() error { _, err := named.Temp(); return err },
			func() error { return d.RemoveAll("sub") },
			func() error { _, err := OpenDir(path, nil); return err },
			func() error { _, err := OpenStore(path, StoreOptions{Descriptor: want("x")}); return err },
		}
		restore := limit(t, unix.RLIMIT_NOFILE, 0)
		var errs []error
		for _, call := range calls {
			errs = append(errs, call())
		}
		restore()
		for i, err := range errs {
			if checkIs(t, err, unix.EMFILE); blobstor.IsFault(err) {
				t.Errorf("call %d: %v is a fault", i, err)
			}
			check(t, calls[i]())
		}
	})
}

// TestFullDisk: both ways of allocating meet a full disk before a byte is written. The file system must be one
// that counts before it takes, or the test would fill the disk.
func TestFullDisk(t *testing.T) {
	path, err := os.MkdirTemp("/dev/shm", "granary-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(path)
	var st unix.Statfs_t
	check(t, unix.Statfs(path, &st))
	size := (int64(st.Blocks) + 1) * int64(st.Bsize)
	if st.Type != unix.TMPFS_MAGIC || st.Blocks == 0 || st.Blocks > math.MaxInt32 {
		t.Skip("not a tmpfs with a limit")
	}
	d, err := OpenDir(path, nil)
	check(t, err)
	defer d.Close()
	f := temp(t, d, "x")
	defer f.Discard()
	wantNoSpace(t, f.Preallocate(size), unix.ENOSPC)
	wantNoSpace(t, f.Reserve(size), unix.ENOSPC)

	const room = 1 << 20
	check(t, f.Reserve(room))
	info, err := f.Stat()
	check(t, err)
	if got := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != room || got < room {
		t.Errorf("%d bytes take %d, want %d", info.Size(), got, room)
	}
}
