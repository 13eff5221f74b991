package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRuns makes short runs over links that lose, repeat and are cut: no operation fails, and all replicas come to one
// tree. Times are for a quiet machine.
func TestRuns(t *testing.T) {
	for name, s := range map[string]settings{
		"spread":    {replicas: 4, rate: 300},
		"one":       {replicas: 4, rate: 300, one: true, sync: true},
		"lossy":     {replicas: 3, rate: 200, delay: 3 * time.Millisecond, loss: 0.2},
		"partition": {replicas: 3, rate: 200, partition: 300 * time.Millisecond},
		"alone":     {replicas: 1, rate: 100},
	} {
		t.Run(name, func(t *testing.T) {
			s.dir, s.duration, s.check, s.progress = filepath.Join(t.TempDir(), "run"), time.Second, true, io.Discard
			r, err := run(context.Background(), s)
			if err != nil || r.errors > 0 {
				t.Fatalf("%d errors, %v, %v", r.errors, r.first, err)
			}
			if r.average <= 0 || r.p50 > r.p99 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestTable: every combination is a row.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	s := settings{replicas: 2, duration: 100 * time.Millisecond, progress: io.Discard}
	if err := runAll(context.Background(), s, t.TempDir(), []string{"100", "200"}, []string{"spread", "one"}, []string{"off"}, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d lines:\n%s", n, &out)
	}
	for _, bad := range [][2]string{{"x", "spread"}, {"0", "one"}, {"1", "both"}} {
		if err := runAll(context.Background(), s, t.TempDir(), []string{bad[0]}, []string{bad[1]}, []string{"off"}, io.Discard); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestDifferentTreesAreFound: the comparison at the end can fail.
func TestDifferentTreesAreFound(t *testing.T) {
	s := settings{dir: filepath.Join(t.TempDir(), "run"), replicas: 2, rate: 1, progress: io.Discard}
	c, err := newCluster(s)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for i := range c.replicas {
		c.replicas[i].links = nil
		if err := c.version(context.Background(), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.wantOne(context.Background()); err == nil {
		t.Error("two trees are one")
	}
}
