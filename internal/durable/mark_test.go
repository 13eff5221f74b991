package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

var allMarks = []string{durable.MarkClean, durable.MarkDirty, durable.MarkUnsynced}

// marked returns a directory of which a loss of power leaves the given files, and these alone.
func marked(t *testing.T, marks ...string) (*durable.Dir, *crashtest.Recorder) {
	t.Helper()
	root := t.TempDir()
	for _, m := range marks {
		check(t, os.WriteFile(filepath.Join(root, m), nil, 0o600))
	}
	power, err := crashtest.NewRecorder(root)
	check(t, err)
	d, err := durable.OpenDir(root, power)
	check(t, err)
	t.Cleanup(func() { d.Close() })
	return d, power
}

// wantMark checks that the mark is there, alone, now and after a loss of power.
func wantMark(t *testing.T, d *durable.Dir, power *crashtest.Recorder, want string) {
	t.Helper()
	after := filepath.Join(t.TempDir(), "after")
	check(t, power.PowerLoss(after))
	lost, err := durable.OpenDir(after, nil)
	check(t, err)
	defer lost.Close()
	for _, d := range []*durable.Dir{d, lost} {
		names, err := d.Names()
		check(t, err)
		if got, err := d.FindMark(); got != want || err != nil || !slices.Equal(names, []string{want}) {
			t.Fatalf("mark %q, %v, among %q, want %q", got, err, names, want)
		}
	}
}

func TestSetMark(t *testing.T) {
	for _, from := range append(allMarks, "") {
		for _, to := range allMarks {
			var there []string
			if from != "" {
				there = append(there, from)
			}
			d, power := marked(t, there...)
			check(t, d.SetMark(from, to))
			wantMark(t, d, power, to)
		}
	}
}

// TestSetMarkAgain: the process that set the mark died before the sync, so the name is found but may yet be lost.
func TestSetMarkAgain(t *testing.T) {
	for _, open := range []string{durable.OpenMark(false), durable.OpenMark(true)} {
		d, power := marked(t, durable.MarkClean)
		check(t, d.Rename(durable.MarkClean, open))
		found, err := d.FindMark()
		check(t, err)
		check(t, d.SetMark(found, open))
		wantMark(t, d, power, open)
	}
}

// TestSetMarkNeedsNoSpace: a store can be opened and closed on a full disk.
func TestSetMarkNeedsNoSpace(t *testing.T) {
	d, faults, _ := watched(t)
	check(t, d.SetMark("", durable.MarkClean))
	for _, op := range []durable.Op{durable.OpCreate, durable.OpWrite, durable.OpLink} {
		faults.Add(crashtest.Fault{Op: op, Forever: true, Err: syscall.ENOSPC})
	}
	check(t, d.SetMark(durable.MarkClean, durable.MarkDirty))
	check(t, d.SetMark(durable.MarkDirty, durable.MarkClean))
}

func TestFindMark(t *testing.T) {
	for _, c := range []struct {
		there []string
		want  string
	}{
		{nil, ""},
		{allMarks[:2], durable.MarkDirty},
		{allMarks, durable.MarkUnsynced},
	} {
		d, _ := marked(t, c.there...)
		if got, err := d.FindMark(); got != c.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", c.there, got, err, c.want)
		}
	}
	d, _ := marked(t, durable.MarkClean)
	check(t, d.MakeDirs(durable.MarkDirty))
	if got, err := d.FindMark(); !errors.Is(err, durable.ErrNotRegular) { // It could not look, and must not say clean.
		t.Errorf("%q, %v", got, err)
	}
}
