package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
)

// Life is what a process is told to do on a stack until something ends it.
type Life struct {
	Dir     string
	Seed    uint64
	First   Object   // numbers from here on were never used
	Old     []Object // these are there
	Workers int
	Chores  []string // what goes on beside the workers
	Cut     *Cut     // if set, the power fails
}

// Cut says when the power fails: right after an acknowledgement was written to the journal, before anything that this
// process does can make more durable than it had promised by then.
type Cut struct {
	Mount string // of the file system that fails
	After int    // so many acknowledgements
	Flush bool   // the journal of the file system still reaches the disk
}

// Main is the driver: it reads a Life from stdin, leads it, and writes the journal to stdout. It returns when the life
// could not go on, or the power has failed.
func Main() error {
	var l Life
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return err
	}
	return l.Lead(os.Stdout)
}

// Lead leads the life and writes its journal. Each line is one write, so that a pipe has it as a whole or not at all.
func (l *Life) Lead(journal io.Writer) error {
	d := &driver{Life: l, journal: journal, live: map[Object]int{}}
	s, err := Open(l.Dir, Options{Create: true})
	if err != nil {
		d.sayFailed("open", err)
		return err
	}
	d.Stack = s
	for _, n := range l.Old {
		d.live[n] = 0
	}
	d.say(wordOpen)
	ctx, end := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for g := range l.Workers {
		wg.Go(func() { d.work(ctx, g); end() })
	}
	for i, name := range l.Chores {
		rng := rand.New(rand.NewPCG(l.Seed, uint64(1000+i)))
		wg.Go(func() { d.chore(ctx, name, rng); end() })
	}
	wg.Wait()
	end()
	if d.failed {
		return nil // the power
	}
	return errors.Join(errEnded, s.Close())
}

var errEnded = errors.New("the driver ended before it was ended")

// driver leads a life.
type driver struct {
	*Life
	*Stack

	mu      sync.Mutex // guards all below
	journal io.Writer
	acked   int
	failed  bool // the power has
	puts    int
	live    map[Object]int // objects that are there, each with the number of the put that brought it
}

// say writes lines of the journal.
func (d *driver) say(word string, ns ...Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines(word, ns)
}

func (d *driver) lines(word string, ns []Object) {
	if len(ns) == 0 {
		d.write(word)
	}
	for _, n := range ns {
		d.write(fmt.Sprintf("%s %d", word, n))
	}
}

func (d *driver) write(line string) {
	if _, err := io.WriteString(d.journal, line+"\n"); err != nil {
		panic(err) // nobody listens any more
	}
}

// acknowledge is say for what was promised, which iterations that begin now must have. The power fails under the lock, so
// that nothing else is promised in between, and nothing is promised any more when it has begun to fail: a real loss of
// power leaves nobody to hear it. The file system, though, goes on to answer, and not always by an error: an fsync of
// a directory of XFS that has shut down succeeds.
func (d *driver) acknowledge(word string, ns ...Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed {
		return
	}
	d.lines(word, ns)
	for _, n := range ns {
		if _, ok := d.live[n]; !ok && word == wordPut {
			d.puts++
			d.live[n] = d.puts
		}
	}
	d.acked += len(ns)
	if c := d.Cut; c != nil && d.acked >= c.After {
		d.failed = true
		if err := cutPower(c.Mount, c.Flush); err != nil {
			d.write(wordFailed + " to cut the power: " + err.Error())
		}
	}
}

// begin announces a removal, after which no iteration needs to have the objects.
func (d *driver) begin(word string, ns ...Object) {
	if word == wordRemoving {
		d.mu.Lock()
		for _, n := range ns {
			delete(d.live, n)
		}
		d.mu.Unlock()
	}
	d.say(word, ns...)
}

// sayWrong tells what may never be.
func (d *driver) sayWrong(format string, args ...any) {
	d.say(wordWrong + " " + oneLine(fmt.Sprintf(format, args...)))
}

// sayFailed tells of a call that failed, unless it failed as all calls do when the power has.
func (d *driver) sayFailed(what string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.failed {
		d.write(wordFailed + " " + oneLine(what+": "+err.Error()))
	}
}

// snapshot returns what is there now, and since which put.
func (d *driver) snapshot() map[Object]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.live)
}

func oneLine(s string) string {
	s = strings.ReplaceAll(s, "\n", ";")
	return s[:min(len(s), 3000)] // a pipe takes no more at once
}
