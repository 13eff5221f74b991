// Series watches a store at work: it puts objects into one, records puts per second, latency and bytes as time series,
// seals them into blocks of a few bits per point, and stores these blocks as objects in the same store. Then it opens
// the store again, finds the blocks, and draws them:
//
//	go run . -o series.svg
//
// Read record.go first: that is what a program does that keeps series.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("series: ")
	out := flag.String("o", "series.svg", "the picture to write: .svg, .png or .pdf")
	last := flag.Duration("for", 3*time.Second, "how long to put objects")
	writers := flag.Int("writers", 20, "number of concurrent writers")
	flag.Parse()
	if err := run(context.Background(), *out, *last, *writers, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run does the whole of it in a temporary directory.
func run(ctx context.Context, out string, last time.Duration, writers int, report io.Writer) error {
	dir, err := os.MkdirTemp("", "granary-series-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	recorded, err := work(ctx, dir, last, writers)
	if err != nil {
		return err
	}
	found, err := find(ctx, dir)
	if err != nil {
		return err
	}
	for _, m := range recorded {
		l := found[m.name]
		if l == nil || len(l.points) != m.total || l.mixed != m.mixed {
			return fmt.Errorf("%s: what was read is not what was recorded", m.name)
		}
		fmt.Fprintf(report, "%-10s %5d points in %d blocks, %6d bytes: %.1f bits a point, 128 as they are\n",
			m.name, m.total, l.blocks, l.bytes, float64(l.bytes)*8/float64(m.total))
	}
	return draw(out, found)
}

// work opens a store, records what it does for a while, and closes it.
func work(ctx context.Context, dir string, last time.Duration, writers int) (recorded []*metric, err error) {
	s, err := open(dir, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	r := newRecorder(s)
	ctx, stop := context.WithTimeout(ctx, last)
	defer stop()
	if err := s.load(ctx, writers, r.tick); err != nil {
		return nil, err
	}
	return r.metrics, r.close(context.WithoutCancel(ctx))
}
