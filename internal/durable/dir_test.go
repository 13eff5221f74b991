package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func openDir(t *testing.T, tap Tap) *Dir {
	t.Helper()
	d, err := OpenDir(t.TempDir(), tap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkIs(t *testing.T, err, is error) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("got %v, want %v", err, is)
	}
}

func names(t *testing.T, d *Dir) []string {
	t.Helper()
	n, err := d.Names()
	check(t, err)
	slices.Sort(n)
	return n
}

func temp(t *testing.T, d *Dir, content string) *Temp {
	t.Helper()
	f, err := d.Temp()
	check(t, err)
	_, err = f.Write([]byte(content))
	check(t, err)
	check(t, f.Datasync())
	return f
}

// eachTemp runs the test with temporaries that have no name, where the system can, and with such that have.
func eachTemp(t *testing.T, test func(t *testing.T, d *Dir)) {
	for _, named := range []bool{false, true} {
		t.Run(map[bool]string{false: "default", true: "named"}[named], func(t *testing.T) {
			d := openDir(t, nil)
			d.o.named = named
			test(t, d)
		})
	}
}

func TestTemp(t *testing.T) {
	eachTemp(t, func(t *testing.T, d *Dir) {
		a := temp(t, d, "one")
		check(t, a.Link("a"))
		check(t, a.Close())
		b := temp(t, d, "two")
		checkIs(t, b.Link("a"), fs.ErrExist)
		check(t, b.Discard())
		if got := names(t, d); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("names %q", got)
		}
		c := temp(t, d, "three")
		check(t, c.Replace("a"))
		check(t, c.Close())
		check(t, d.WriteFile("b", []byte("four")))
		check(t, d.WriteFile("b", []byte("five")))
		for name, want := range map[string]string{"a": "three", "b": "five"} {
			got, err := os.ReadFile(d.join(name))
			if string(got) != want || err != nil {
				t.Fatalf("%s: %q, %v", name, got, err)
			}
		}
		if got := names(t, d); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("names %q", got)
		}
	})
}

func TestTempLinksInto(t *testing.T) {
	eachTemp(t, func(t *testing.T, d *Dir) {
		sub, err := d.Mkdir("sub")
		check(t, err)
		defer sub.Close()
		a := temp(t, d, "one")
		check(t, a.LinkIn(sub, "a"))
		check(t, a.Close())
		b := temp(t, d, "two")
		checkIs(t, b.LinkIn(sub, "a"), fs.ErrExist)
		check(t, b.ReplaceIn(sub, "a"))
		check(t, b.Discard())
		got, err := os.ReadFile(sub.join("a"))
		if string(got) != "two" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		if got := names(t, d); !slices.Equal(got, []string{"sub"}) {
			t.Fatalf("names %q", got)
		}
	})
}

func TestMove(t *testing.T) {
	d := openDir(t, nil)
	sub, err := d.Mkdir("sub")
	check(t, err)
	defer sub.Close()
	check(t, d.WriteFile("a", []byte("one")))
	check(t, sub.WriteFile("b", []byte("two")))
	checkIs(t, d.Move("a", sub, "b"), fs.ErrExist)
	checkIs(t, d.Move("c", sub, "d"), fs.ErrNotExist)
	checkIs(t, d.Move("a", sub, ".."), fs.ErrInvalid)
	checkIs(t, d.Move("../a", sub, "c"), fs.ErrInvalid)
	check(t, d.Move("a", sub, "c"))
	check(t, sub.Move("b", d, "a"))
	check(t, sub.Move("c", sub, "d"))
	for path, want := range map[string]string{"a": "two", "sub/d": "one"} {
		got, err := os.ReadFile(filepath.Join(d.path, path))
		if string(got) != want || err != nil {
			t.Fatalf("%s: %q, %v", path, got, err)
		}
	}
	if a, b := names(t, d), names(t, sub); !slices.Equal(a, []string{"a", "sub"}) || !slices.Equal(b, []string{"d"}) {
		t.Fatalf("names %q and %q", a, b)
	}
}

// TestMoveTap: the tap sees the new name, and its veto leaves the file where it is.
func TestMoveTap(t *testing.T) {
	var seen []string
	stop := errors.New("stop")
	d := openDir(t, vetoes(func(op Op, path string) error {
		if op != OpRename {
			return nil
		}
		seen = append(seen, path)
		return stop
	}))
	sub, err := d.Mkdir("sub")
	check(t, err)
	defer sub.Close()
	check(t, os.WriteFile(d.join("a"), nil, 0o600))
	checkIs(t, d.Move("a", sub, "b"), stop)
	if !slices.Equal(seen, []string{sub.join("b")}) || len(names(t, sub)) != 0 {
		t.Fatalf("tapped %q, names %q", seen, names(t, sub))
	}
}

func TestLink(t *testing.T) {
	d := openDir(t, nil)
	sub, err := d.Mkdir("sub")
	check(t, err)
	defer sub.Close()
	check(t, d.WriteFile("a", []byte("one")))
	check(t, sub.WriteFile("b", []byte("two")))
	checkIs(t, d.Link("a", sub, "b"), fs.ErrExist)
	checkIs(t, d.Link("c", sub, "d"), fs.ErrNotExist)
	checkIs(t, d.Link("a", sub, ".."), fs.ErrInvalid)
	checkIs(t, d.Link("../a", sub, "c"), fs.ErrInvalid)
	check(t, d.Link("a", sub, "c"))
	for name, want := range map[string]bool{"c": true, "b": false} {
		f, err := d.Open("a")
		check(t, err)
		defer f.Close()
		g, err := sub.Open(name)
		check(t, err)
		if same, err := f.Same(g); same != want || err != nil {
			t.Fatalf("a and sub/%s are the same: %v, %v", name, same, err)
		}
		check(t, g.Close())
		_, err = f.Same(g)
		checkIs(t, err, fs.ErrClosed)
	}
	check(t, os.WriteFile(d.join("a"), []byte("both"), 0o600))
	if got, err := os.ReadFile(sub.join("c")); string(got) != "both" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
}

// vetoes is a tap that may fail operations.
type vetoes func(op Op, path string) error

func (v vetoes) Before(op Op, path string, _ *File) error { return v(op, path) }
func (v vetoes) After(Op, string, *File)                  {}

func TestSweep(t *testing.T) {
	d := openDir(t, nil)
	d.o.named = true
	live := temp(t, d, "x")
	defer live.Discard()
	stale := newOrigin(nil).tempName()
	for _, name := range []string{stale, "tmp-x", "tmp-0123456789abcdef-", "tmp-0123456789abcdeX-1"} {
		check(t, os.WriteFile(d.join(name), nil, 0o600))
	}
	n, err := d.Sweep()
	check(t, err)
	if _, err := os.Stat(d.join(stale)); n != 1 || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("swept %d, %v", n, err)
	}
}

func TestRefusesWhatIsNoFile(t *testing.T) {
	d := openDir(t, nil)
	check(t, os.WriteFile(d.join("file"), nil, 0o600))
	check(t, os.Mkdir(d.join("dir"), 0o700))
	check(t, os.Symlink("file", d.join("link")))
	check(t, os.Symlink("dir", d.join("dirlink")))
	special := []string{"link", "dir", "dirlink"}
	if mkfifo(d.join("pipe")) == nil {
		special = append(special, "pipe")
	}
	for _, name := range special {
		_, err := d.Open(name)
		checkIs(t, err, ErrNotRegular)
		_, err = d.Stat(name)
		checkIs(t, err, ErrNotRegular)
	}
	for _, name := range []string{"file", "link", "dirlink", "missing"} {
		if _, err := d.Sub(name); err == nil {
			t.Fatalf("%s opened as a directory", name)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00"} {
		_, err := d.Open(name)
		checkIs(t, err, fs.ErrInvalid)
		_, err = d.Stat(name)
		checkIs(t, err, fs.ErrInvalid)
		checkIs(t, d.Remove(name), fs.ErrInvalid)
	}
}

func TestStat(t *testing.T) {
	d := openDir(t, nil)
	check(t, d.WriteFile("a", []byte("four")))
	if size, err := d.Stat("a"); size != 4 || err != nil {
		t.Fatalf("size %d, %v", size, err)
	}
	_, err := d.Stat("b")
	checkIs(t, err, fs.ErrNotExist)
}

func TestRemoveAll(t *testing.T) {
	d := openDir(t, nil)
	check(t, os.MkdirAll(filepath.Join(d.path, "a", "b", "c"), 0o700))
	check(t, os.WriteFile(filepath.Join(d.path, "a", "b", "f"), nil, 0o600))
	check(t, os.Symlink("..", filepath.Join(d.path, "a", "up")))
	check(t, d.RemoveAll("a"))
	check(t, d.RemoveAll("a"))
	if got := names(t, d); len(got) != 0 {
		t.Fatalf("names %q", got)
	}
}
