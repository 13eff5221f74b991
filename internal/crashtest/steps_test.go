package crashtest

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/granary-store/granary/internal/durable"
)

// moveScenario writes two files and moves one, with a power loss before the step at. It returns how many steps
// there were, and where the image is.
func moveScenario(t *testing.T, at int) (steps int, image string) {
	t.Helper()
	r, err := NewRecorder(t.TempDir())
	check(t, err)
	image = filepath.Join(t.TempDir(), "image")
	s := &Steps{Next: r, At: at, Do: func() { check(t, r.PowerLoss(image)) }}
	d, err := durable.OpenDir(r.root, s)
	check(t, err)
	defer d.Close()
	sub, err := d.Mkdir("sub")
	check(t, err)
	defer sub.Close()
	check(t, d.WriteFile("a", []byte("x")))
	check(t, d.Move("a", sub, "b"))
	check(t, sub.Sync())
	check(t, d.Sync())
	_, err = d.Open("c") // no step
	if err == nil {
		t.Fatal("opened what is not there")
	}
	return s.Count(), image
}

// TestSteps cuts the power at every step: from the moment that the file is durable it is somewhere.
func TestSteps(t *testing.T) {
	var seen []string
	for at := 1; ; at++ {
		steps, image := moveScenario(t, at)
		if steps < at {
			break
		}
		state := ""
		for _, name := range []string{"sub", "a", "sub/b"} {
			if _, err := os.Stat(filepath.Join(image, name)); err == nil {
				state += name + " "
			}
		}
		if len(seen) == 0 || seen[len(seen)-1] != state {
			seen = append(seen, state)
		}
	}
	// The last state, "sub sub/b ", is that after the last step.
	want := []string{"", "sub ", "sub a ", "sub a sub/b "}
	if !slices.Equal(seen, want) {
		t.Fatalf("states %q, want %q", seen, want)
	}
}

func TestStepsCountsChanges(t *testing.T) {
	s := &Steps{}
	d, err := durable.OpenDir(t.TempDir(), s)
	check(t, err)
	defer d.Close()
	step := func(what string, steps int, call func() error) {
		t.Helper()
		before := s.Count()
		check(t, call())
		if got := s.Count() - before; got != steps {
			t.Errorf("%s: %d steps, want %d", what, got, steps)
		}
	}
	var temp *durable.Temp
	var f *durable.File
	step("create", 1, func() (err error) { temp, err = d.Temp(); return err })
	step("write", 1, func() error { _, err := temp.Write([]byte("x")); return err })
	step("reserve", 1, func() error { return temp.Reserve(10) })
	step("truncate", 1, func() error { return temp.Truncate(1) })
	step("sync", 1, func() error { return temp.Datasync() })
	step("link", 1, func() error { return temp.Link("a") })
	step("open", 0, func() (err error) { f, err = d.Open("a"); return err })
	step("read", 0, func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err })
	step("stat", 0, func() error { _, err := d.Stat("a"); return err })
	step("close", 0, func() error { temp.Close(); return f.Close() })
	step("rename", 1, func() error { return d.Rename("a", "b") })
	step("move", 1, func() error { return d.Move("b", d, "c") })
	step("remove", 1, func() error { return d.Remove("c") })
	step("sync directory", 1, d.Sync)
	step("make directory", 2, func() error { return d.MakeDirs("sub") })
	step("sync all", 1, func() error { return d.SyncAll(true) })
}

// TestStepsDoesOnce: of many goroutines one meets the step.
func TestStepsDoesOnce(t *testing.T) {
	var done atomic.Int32
	s := &Steps{At: 50, Do: func() { done.Add(1) }}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 10 {
				if err := s.Before(durable.OpWrite, "", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 || s.Count() != 100 {
		t.Fatalf("done %d times in %d steps", done.Load(), s.Count())
	}
}
