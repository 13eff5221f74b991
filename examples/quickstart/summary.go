package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/granary-store/granary/blobstor"
)

// route sums up what the router sent one way.
type route struct {
	name    string
	objects int
	bytes   int64
	stored  int64 // bytes with headers, checksums and padding
}

// measure sums up the store's listing by route, and the files it takes on disk.
func (t *tour) measure(ctx context.Context, s blobstor.BlobStor) error {
	for info, err := range s.All(ctx, "") {
		if err != nil {
			return err
		}
		r := t.route(info.Location)
		r.objects++
		r.bytes += info.Size
		r.stored += info.Stored
	}
	return filepath.WalkDir(t.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			t.disk += info.Size()
		}
		return err
	})
}

// route finds the sums of a route by its name, which a router's location begins with.
func (t *tour) route(at blobstor.Location) *route {
	name, _, _ := strings.Cut(string(at), "/")
	for _, r := range t.routes {
		if r.name == name {
			return r
		}
	}
	r := &route{name: name}
	t.routes = append(t.routes, r)
	return r
}

// summarize prints the table at the end.
func (t *tour) summarize(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nroute\tobjects\tMB\tMB with checksums\n")
	var total route
	for _, r := range t.routes {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\n", r.name, r.objects, mb(r.bytes), mb(r.stored))
		total.objects += r.objects
		total.bytes += r.bytes
	}
	fmt.Fprintf(w, "\nstep\tobjects/s\tMB/s\n")
	for _, what := range []string{"put", "get"} {
		seconds := t.took[what].Seconds()
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\n", what, float64(total.objects)/seconds, mb(total.bytes)/seconds)
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d writers; each put was durable before it was acknowledged\n", t.writers)
	fmt.Fprintf(out, "%d commits of small objects, %.1f objects each\n", t.groups, ratio(t.ops, t.groups))
	fmt.Fprintf(out, "%.3f bytes on disk per byte stored\n", ratio(t.disk, total.bytes))
	fmt.Fprintf(out, "%d objects from %s, %d deleted, store reopened: every byte is right, whole and in ranges\n",
		total.objects, t.source, len(t.deleted))
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

func mb(n int64) float64 { return float64(n) / 1e6 }
