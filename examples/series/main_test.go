package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun draws what a store did in a moment, in each kind of picture.
func TestRun(t *testing.T) {
	for ext, magic := range map[string]string{"svg": "<?xml", "png": "\x89PNG"} {
		out := filepath.Join(t.TempDir(), "picture."+ext)
		var report bytes.Buffer
		if err := run(context.Background(), out, 400*time.Millisecond, 4, &report); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"puts/s", "latency", "bytes"} {
			if !strings.Contains(report.String(), name) {
				t.Errorf("nothing about %s:\n%s", name, &report)
			}
		}
		picture, err := os.ReadFile(out)
		if err != nil || !strings.HasPrefix(string(picture), magic) || len(picture) < 1000 {
			t.Errorf("a picture of %d bytes, %v", len(picture), err)
		}
	}
}

// TestJoin: blocks come back in order, whatever order they were found in, and damage is an error.
func TestJoin(t *testing.T) {
	dir := t.TempDir()
	recorded, err := work(context.Background(), dir, 2600*time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range recorded {
		l := found[m.name]
		if l == nil || l.mixed != m.mixed || len(l.points) != m.total {
			t.Errorf("%s: %d points recorded, other ones found", m.name, m.total)
		}
		if m.total > blockPoints && l.blocks < 2 {
			t.Errorf("%s: %d points in %d blocks", m.name, m.total, l.blocks)
		}
	}
	if _, err := join([][]byte{[]byte("no block")}); err == nil {
		t.Error("no block is read as one")
	}
}
