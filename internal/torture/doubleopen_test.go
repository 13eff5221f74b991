package torture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/granary-store/granary/blobovnicza"
	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/fstree"
	"github.com/granary-store/granary/metabase"
)

// openers open each of the stores.
var openers = map[string]func(dir string, readOnly bool) (io.Closer, error){
	"small": func(dir string, readOnly bool) (io.Closer, error) {
		return blobovnicza.Open(dir, &blobovnicza.Options{Create: !readOnly, ReadOnly: readOnly})
	},
	"large": func(dir string, readOnly bool) (io.Closer, error) {
		return fstree.Open(dir, &fstree.Options{Create: !readOnly, ReadOnly: readOnly})
	},
	"meta": func(dir string, readOnly bool) (io.Closer, error) {
		return metabase.Open(dir, &metabase.Options{Create: !readOnly, ReadOnly: readOnly, Ballast: -1})
	},
}

const (
	holdStoreEnv    = "GRANARY_TORTURE_HOLD_STORE"
	holdDirEnv      = "GRANARY_TORTURE_HOLD_DIR"
	holdReadOnlyEnv = "GRANARY_TORTURE_HOLD_READ_ONLY"
)

func init() { children["hold"] = holdMain }

// holdMain is a child that opens a store and holds it until its stdin ends.
func holdMain() error {
	s, err := openers[os.Getenv(holdStoreEnv)](os.Getenv(holdDirEnv), os.Getenv(holdReadOnlyEnv) == "true")
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err = io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Close()
}

// holder is who has the store when another wants it.
type holder func(t *testing.T, store, dir string) (let func())

// sameProcess holds the store in this process.
func sameProcess(readOnly bool) holder {
	return func(t *testing.T, store, dir string) func() {
		s, err := openers[store](dir, readOnly)
		must(t, err)
		return func() { must(t, s.Close()) }
	}
}

// otherProcess holds it in a child, which ends by being killed if it is not to close it.
func otherProcess(readOnly, killed bool) holder {
	return func(t *testing.T, store, dir string) func() {
		cmd := child("hold")
		cmd.Env = append(cmd.Env, holdStoreEnv+"="+store, holdDirEnv+"="+dir, fmt.Sprintf("%s=%v", holdReadOnlyEnv, readOnly))
		in, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
			t.Fatalf("the child says %q, %v", line, err)
		}
		return func() {
			if killed {
				must(t, cmd.Process.Kill())
			}
			in.Close()
			if err := cmd.Wait(); err != nil && !killed {
				t.Error(err)
			}
		}
	}
}

// without holds it and removes the file of its lock, which may look stale.
func without(h holder) holder {
	return func(t *testing.T, store, dir string) func() {
		let := h(t, store, dir)
		must(t, os.Remove(filepath.Join(dir, "LOCK")))
		return let
	}
}

func asIs(_ *testing.T, dir string) string { return dir }

func copied(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func linked(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, to))
	return to
}

// TestDoubleOpen opens every store while somebody has it. Only readers share it.
func TestDoubleOpen(t *testing.T) {
	const write, read = false, true
	cases := []struct {
		name string
		by   holder
		at   func(t *testing.T, dir string) string
		want bool // read-only
		is   error
	}{
		{"write, write", sameProcess(write), asIs, write, blobstor.ErrInUse},
		{"write, read", sameProcess(write), asIs, read, blobstor.ErrInUse},
		{"read, write", sameProcess(read), asIs, write, blobstor.ErrInUse},
		{"read, read", sameProcess(read), asIs, read, nil},
		{"other write, write", otherProcess(write, false), asIs, write, blobstor.ErrInUse},
		{"other write, read", otherProcess(write, true), asIs, read, blobstor.ErrInUse},
		{"other read, write", otherProcess(read, true), asIs, write, blobstor.ErrInUse},
		{"other read, read", otherProcess(read, false), asIs, read, nil},
		{"lock removed", without(sameProcess(write)), asIs, write, blobstor.ErrInUse},
		{"lock of other removed", without(otherProcess(write, true)), asIs, write, blobstor.ErrInUse},
		{"lock of reader removed", without(otherProcess(read, false)), asIs, write, blobstor.ErrInUse},
		{"copy", otherProcess(write, false), copied, write, nil},
		{"copy in the same process", sameProcess(write), copied, write, nil},
		{"through a link", sameProcess(write), linked, write, blobstor.ErrInUse},
	}
	report(t, "T13", func() string { return fmt.Sprintf("%d cases on %d stores", len(cases), len(openers)) })
	for store := range openers {
		for _, c := range cases {
			t.Run(store+"/"+c.name, func(t *testing.T) {
				if runtime.GOOS == "windows" {
					t.Skip("files that are open can be neither removed nor copied")
				}
				dir := filepath.Join(t.TempDir(), "store")
				s, err := openers[store](dir, false)
				must(t, err)
				must(t, s.Close())
				let := c.by(t, store, dir)
				at := c.at(t, dir)
				if s, err = openers[store](at, c.want); !errors.Is(err, c.is) {
					t.Errorf("got %v, want %v", err, c.is)
				}
				if err == nil {
					must(t, s.Close())
				}
				let()
				s, err = openers[store](at, false) // Whoever had it is gone.
				must(t, err)
				must(t, s.Close())
			})
		}
	}
}
