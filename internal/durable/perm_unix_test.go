//go:build unix

package durable

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPerm: all that a store makes has the permissions asked for, less the umask.
func TestPerm(t *testing.T) {
	for _, test := range []struct {
		perm        fs.FileMode
		umask       int
		files, dirs fs.FileMode
	}{
		{0, 0, 0o600, 0o700},
		{0o600, 0, 0o600, 0o700},
		{0o640, 0, 0o640, 0o750},
		{0o640, 0o027, 0o640, 0o750},
		{0o640, 0o077, 0o600, 0o700},
		{0o664, 0, 0o664, 0o775},
		{0o664, 0o022, 0o644, 0o755},
		{0o620, 0, 0o620, 0o720},
	} {
		for _, named := range []bool{false, true} {
			old := syscall.Umask(test.umask)
			path := makeAll(t, test.perm, named)
			syscall.Umask(old)
			checkPerms(t, path, test.files, test.dirs)
		}
	}
}

// makeAll makes a store with all kinds of what a store can hold.
func makeAll(t *testing.T, perm fs.FileMode, named bool) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "above")
	s, err := OpenStore(filepath.Join(top, "store"), StoreOptions{
		Descriptor: want("x"), Create: true, Perm: perm, NamedTemp: named,
	})
	check(t, err)
	defer s.Close()
	a, err := s.Dir.Mkdir("a")
	check(t, err)
	defer a.Close()
	b, err := a.Mkdir("b")
	check(t, err)
	defer b.Close()
	f := temp(t, b, "x")
	check(t, f.LinkIn(a, "f"))
	check(t, f.Close())
	check(t, b.WriteFile("g", nil))
	return top
}

func checkPerms(t *testing.T, top string, files, dirs fs.FileMode) {
	t.Helper()
	seen := 0
	check(t, filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := files
		if e.IsDir() {
			want = dirs
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: %v, want %v", filepath.Base(path), got, want)
		}
		seen++
		return nil
	}))
	if seen != 8 { // above, store, a, b; LOCK, DESCRIPTOR, f, g
		t.Errorf("%d files and directories", seen)
	}
}
