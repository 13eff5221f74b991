// Treeload measures trees under load, as the service that came before was measured: a number of replicas, all in this
// process, an even rate of new nodes with paths and attributes, spread over the replicas or all on one, and ten
// operations a second on a tree of the system's. Each operation goes to all replicas, over links that may delay, lose,
// repeat or be cut. At the end all replicas must have one tree.
//
//	go run ./examples/treeload
//	go run ./examples/treeload -rate 2500 -load spread -duration 10m
//	go run ./examples/treeload -rate 500 -delay 20ms -loss 0.1 -partition 5s
//
// Read replica.go and link.go first: that is what a program does with package pilorama.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/granary-store/granary/metabase/pilorama"
)

// settings are what one run is told.
type settings struct {
	dir       string
	replicas  int
	rate      int  // operations a second in total
	one       bool // all of them on one replica
	sync      bool
	duration  time.Duration
	delay     time.Duration // of every message
	loss      float64       // of messages; as many are repeated
	partition time.Duration // for which the first replica is cut off, in the middle of the run
	check     bool          // the databases too
	progress  io.Writer
}

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the heap is small, and at 100 it is collected so often that latencies double
	}
	log.SetFlags(0)
	log.SetPrefix("treeload: ")
	var s settings
	dir := flag.String("dir", "", "where the databases are made; a temporary directory if empty")
	flag.IntVar(&s.replicas, "replicas", 4, "number of replicas")
	rates := flag.String("rate", "1000,2500,5000", "operations a second in total, one run for each")
	load := flag.String("load", "spread,one", "spread over the replicas, or all on one; one run for each")
	syncs := flag.String("sync", "on", "on or off; one run for each")
	flag.DurationVar(&s.duration, "duration", time.Minute, "length of a run")
	flag.DurationVar(&s.delay, "delay", time.Millisecond, "of every message between replicas")
	flag.Float64Var(&s.loss, "loss", 0, "part of the messages that is lost; as many come twice")
	flag.DurationVar(&s.partition, "partition", 0, "cut the first replica off for so long in the middle of a run")
	flag.BoolVar(&s.check, "check", false, "verify the databases at the end")
	flag.Parse()
	s.progress = os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runAll(ctx, s, *dir, strings.Split(*rates, ","), strings.Split(*load, ","), strings.Split(*syncs, ","), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// runAll makes a run for each combination, and prints a table.
func runAll(ctx context.Context, s settings, dir string, rates, loads, syncs []string, out io.Writer) error {
	dir, err := os.MkdirTemp(dir, "granary-treeload-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(out, "| load | target/s | sync | length | done/s | average | p50 | p95 | p99 | errors | converged |")
	fmt.Fprintln(out, "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, load := range loads {
		for _, sync := range syncs {
			for _, rate := range rates {
				if s.rate, err = strconv.Atoi(rate); err != nil || s.rate <= 0 {
					return fmt.Errorf("rate %q", rate)
				}
				if s.one, s.sync = load == "one", sync == "on"; !s.one && load != "spread" || !s.sync && sync != "off" {
					return fmt.Errorf("load %q with sync %q", load, sync)
				}
				s.dir = filepath.Join(dir, load+sync+rate)
				r, err := run(ctx, s)
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "| %s | %d | %s | %v | %.0f | %v | %v | %v | %v | %d | %v |\n", load, s.rate, sync, s.duration, r.rate,
					round(r.average), round(r.p50), round(r.p95), round(r.p99), r.errors, round(r.converged))
				s.tell(r)
			}
		}
	}
	return nil
}

// tell says what is not in the table: averages minute by minute, and the first error.
func (s *settings) tell(r result) {
	for i, average := range r.minutes {
		fmt.Fprintf(s.progress, "minute %d: average %v\n", i+1, round(average))
	}
	if r.first != nil {
		fmt.Fprintln(s.progress, "first error:", r.first)
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// result is a row of the table.
type result struct {
	rate                   float64
	average, p50, p95, p99 time.Duration
	errors                 int
	first                  error           // of them
	converged              time.Duration   // from the end of the load until all replicas had all operations
	minutes                []time.Duration // the average of each
}

// run makes one run on fresh databases, which are removed.
func run(ctx context.Context, s settings) (r result, err error) {
	c, err := newCluster(s)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if closed := c.close(); err == nil {
			err = closed
		}
		os.RemoveAll(s.dir)
	}()
	c.start(ctx)
	r = c.load(ctx)
	began := time.Now()
	if err := c.settle(ctx); err != nil {
		return r, err
	}
	r.converged = time.Since(began)
	if err := c.wantOne(ctx); err != nil {
		return r, err
	}
	if s.check {
		for _, rep := range c.replicas {
			if err := rep.db.Check(ctx); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// The trees that a node has for each bucket: versions of its objects, and what the system notes.
var (
	versions = pilorama.Tree{Container: [32]byte{1}, Name: "version"}
	system   = pilorama.Tree{Container: [32]byte{1}, Name: "system"}
)
