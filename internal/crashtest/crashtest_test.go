package crashtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/internal/durable"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a file in d, without syncs but those asked for.
func write(t *testing.T, d *durable.Dir, name, content string, sync bool) {
	t.Helper()
	f, err := d.Temp()
	check(t, err)
	_, err = f.Write([]byte(content))
	check(t, err)
	if sync {
		check(t, f.Datasync())
	}
	check(t, f.Link(name))
	check(t, f.Close())
}

func recorded(t *testing.T) (*Recorder, *durable.Dir) {
	t.Helper()
	root := t.TempDir()
	check(t, os.WriteFile(filepath.Join(root, "before"), []byte("old"), 0o600))
	r, err := NewRecorder(root)
	check(t, err)
	d, err := durable.OpenDir(root, r)
	check(t, err)
	t.Cleanup(func() { d.Close() })
	return r, d
}

// expect cuts the power and compares; "-" means that the file must not be there.
func expect(t *testing.T, r *Recorder, want map[string]string) {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "after")
	check(t, r.PowerLoss(dst))
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(dst, name))
		switch {
		case content == "-" && !errors.Is(err, os.ErrNotExist):
			t.Errorf("%s is there: %q, %v", name, got, err)
		case content != "-" && (err != nil || string(got) != content):
			t.Errorf("%s: got %q, %v, want %q", name, got, err, content)
		}
	}
}

func TestPowerLossKeepsWhatWasSynced(t *testing.T) {
	r, d := recorded(t)
	write(t, d, "whole", "x", true)
	write(t, d, "hollow", "x", false)
	expect(t, r, map[string]string{"before": "old", "whole": "-", "hollow": "-"})
	check(t, d.Sync())
	write(t, d, "nameless", "x", true)
	expect(t, r, map[string]string{"before": "old", "whole": "x", "hollow": "", "nameless": "-"})
}

func TestPowerLossUndoesRemovals(t *testing.T) {
	r, d := recorded(t)
	check(t, d.Remove("before"))
	for range 20 { // Likely to be given the inode number that has become free.
		f, err := d.Temp()
		check(t, err)
		f.Write([]byte("other"))
		check(t, f.Datasync())
		check(t, f.Discard())
	}
	expect(t, r, map[string]string{"before": "old"})
	check(t, d.Sync())
	expect(t, r, map[string]string{"before": "-"})
}

func TestPowerLossRevertsOverwrites(t *testing.T) {
	r, d := recorded(t)
	f, err := d.OpenRW("before")
	check(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("new!"), 0)
	check(t, err)
	expect(t, r, map[string]string{"before": "old"})
	check(t, f.Datasync())
	check(t, d.Rename("before", "after"))
	expect(t, r, map[string]string{"before": "new!", "after": "-"})
	check(t, d.Sync())
	expect(t, r, map[string]string{"before": "-", "after": "new!"})
}

// moved has a file "from/f" that is durable and was moved to "to/g", without syncs.
func moved(t *testing.T) (r *Recorder, from, to *durable.Dir) {
	t.Helper()
	r, d := recorded(t)
	from, err := d.Mkdir("from")
	check(t, err)
	t.Cleanup(func() { from.Close() })
	to, err = d.Mkdir("to")
	check(t, err)
	t.Cleanup(func() { to.Close() })
	check(t, from.WriteFile("f", []byte("x")))
	check(t, from.Move("f", to, "g"))
	return r, from, to
}

func TestPowerLossOfMove(t *testing.T) {
	r, from, to := moved(t)
	expect(t, r, map[string]string{"from/f": "x", "to/g": "-"})
	check(t, to.Sync())
	expect(t, r, map[string]string{"from/f": "x", "to/g": "x"})
	check(t, from.Sync())
	expect(t, r, map[string]string{"from/f": "-", "to/g": "x"})
}

func TestPowerLossOfMoveInWrongOrder(t *testing.T) {
	r, from, _ := moved(t)
	check(t, from.Sync())
	expect(t, r, map[string]string{"from/f": "-", "to/g": "-"})
}

// TestPowerLossAfterMoveOfOpenFile: bytes written through a file that was opened under its old name are its own,
// also when another file has that name by now and both syncs run at once.
func TestPowerLossAfterMoveOfOpenFile(t *testing.T) {
	r, from, to := moved(t)
	check(t, to.Move("g", from, "f"))
	old, err := from.OpenRW("f")
	check(t, err)
	defer old.Close()
	check(t, from.Move("f", to, "g"))
	write(t, from, "f", "other", false)
	other, err := from.OpenRW("f")
	check(t, err)
	defer other.Close()
	_, err = old.WriteAt([]byte("moved"), 0)
	check(t, err)
	check(t, errors.Join(from.Sync(), to.Sync()))
	expect(t, r, map[string]string{"from/f": "", "to/g": "x"})

	path := filepath.Join(from.Path(), "f")
	check(t, r.Before(durable.OpSync, path, old))
	check(t, r.Before(durable.OpSync, path, other))
	r.After(durable.OpSync, path, old)
	expect(t, r, map[string]string{"from/f": "", "to/g": "moved"})
	r.After(durable.OpSync, path, other)
	expect(t, r, map[string]string{"from/f": "other", "to/g": "moved"})
}

func TestPowerLossLosesUnsyncedLevels(t *testing.T) {
	r, d := recorded(t)
	check(t, os.Mkdir(filepath.Join(d.Path(), "level"), 0o700))
	sub, err := d.Sub("level")
	check(t, err)
	defer sub.Close()
	write(t, sub, "file", "x", true)
	check(t, sub.Sync())
	expect(t, r, map[string]string{"level/file": "-"})
	check(t, d.MakeDirs("level"))
	expect(t, r, map[string]string{"level/file": "x"})
}

func TestSyncAll(t *testing.T) {
	r, d := recorded(t)
	check(t, os.MkdirAll(filepath.Join(d.Path(), "a", "b"), 0o700))
	check(t, os.WriteFile(filepath.Join(d.Path(), "a", "b", "f"), []byte("x"), 0o600))
	expect(t, r, map[string]string{"a/b/f": "-"})
	check(t, d.SyncAll(true))
	expect(t, r, map[string]string{"a/b/f": "x"})
}

func TestFaults(t *testing.T) {
	broken := errors.New("broken")
	r, err := NewRecorder(t.TempDir())
	check(t, err)
	f := &Faults{Next: r}
	d, err := durable.OpenDir(r.root, f)
	check(t, err)
	defer d.Close()

	f.Add(Fault{Op: durable.OpRemove, N: 1, Err: broken})
	f.Add(Fault{Op: durable.OpLink, Path: "never", Forever: true, Err: broken})
	for _, name := range []string{"a", "b", "c"} {
		write(t, d, name, "x", true)
	}
	check(t, d.Remove("a"))
	if err := d.Remove("b"); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	check(t, d.Remove("b"))
	for range 2 {
		temp, err := d.Temp()
		check(t, err)
		if err := temp.Link("never"); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		check(t, temp.Discard())
	}
	f.Clear()
	write(t, d, "never", "x", true)
	f.Add(Fault{Match: func(op durable.Op, path string) bool { return op >= durable.OpRemove && path == r.root }, Err: broken})
	for range 2 {
		if err := d.Sync(); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	expect(t, r, map[string]string{"c": "-"})
}
