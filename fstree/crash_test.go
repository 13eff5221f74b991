package fstree

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

const (
	crashFirst   = "FSTREE_TEST_FIRST"
	crashRename  = "FSTREE_TEST_RENAME"
	crashReshape = "FSTREE_TEST_RESHAPE"
)

func crashSize(n int) int { return n * 7919 % 150_000 }

// TestCrash kills a process that puts and deletes, and checks what it had acknowledged. This shows what the death
// of a process does; what a loss of power does is shown with a model, in TestPowerLoss.
func TestCrash(t *testing.T) { killCycles(t) }

func killCycles(t *testing.T) {
	t.Helper()
	cycles := 12
	switch {
	case testing.Short():
		cycles = 6
	case thorough:
		cycles = 30
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := crash{dir: filepath.Join(t.TempDir(), "store"), state: map[int]string{}}
	check(t, reopen(t, c.dir, Options{}).Close())
	for cycle := range cycles {
		first := cycle * 10_000
		c.run(t, first, time.Duration(rng.IntN(60_000))*time.Microsecond, cycle%2 == 1)
		c.verify(t, first)
	}
	t.Logf("%d operations acknowledged in %d cycles", c.acked, cycles)
}

type crash struct {
	dir   string
	state map[int]string // last word about each number: put, deleting, deleted
	acked int
}

// run lets the child work for a while after its first word and kills it.
func (c *crash) run(t *testing.T, first int, d time.Duration, rename bool) {
	t.Helper()
	cmd := again(t, "crash", c.dir, fmt.Sprintf("%s=%d", crashFirst, first), fmt.Sprintf("%s=%v", crashRename, rename))
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	r := bufio.NewReader(out)
	for timer := (*time.Timer)(nil); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			break // What lacks its end was not said.
		}
		word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		check(t, err)
		c.state[n] = word
		c.acked++
		if timer == nil {
			timer = time.AfterFunc(d, func() { cmd.Process.Kill() })
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// verify checks all that was ever acknowledged, and that nothing else is there but whole blobs that the last child
// may have put.
func (c *crash) verify(t *testing.T, first int) {
	t.Helper()
	tree := reopen(t, c.dir, Options{})
	defer tree.Close()
	known := map[blobstor.Address]int{}
	for n, word := range c.state {
		known[address(n)] = n
		_, err := tree.Get(ctx, address(n), "", nil)
		switch word {
		case "put":
			has(t, tree, n, crashSize(n))
		case "deleted":
			checkIs(t, err, blobstor.ErrNotFound)
		case "deleting":
			if err == nil {
				has(t, tree, n, crashSize(n))
				c.state[n] = "put"
			} else {
				checkIs(t, err, blobstor.ErrNotFound)
				c.state[n] = "deleted"
			}
		}
	}
	for info, err := range tree.All(ctx, "") {
		check(t, err)
		if _, ok := known[info.Address]; !ok {
			c.adopt(t, tree, info.Address, first)
		}
	}
}

// adopt takes in a blob whose put was not acknowledged any more; it must be whole.
func (c *crash) adopt(t *testing.T, tree *Tree, addr blobstor.Address, first int) {
	t.Helper()
	for n := first; n < first+10_000; n++ {
		if address(n) == addr {
			has(t, tree, n, crashSize(n))
			c.state[n] = "put"
			return
		}
	}
	t.Fatalf("%v was never put", addr)
}

// childCrash puts and deletes blobs until it is killed, and says so after each acknowledgement.
func childCrash(dir string) error {
	first, err := strconv.Atoi(os.Getenv(crashFirst))
	if err != nil {
		return err
	}
	tree, err := Open(dir, &Options{rename: os.Getenv(crashRename) == "true"})
	if err != nil {
		return err
	}
	var next atomic.Int64
	var mu sync.Mutex
	say := func(word string, n int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%s %d\n", word, n)
	}
	var all sync.WaitGroup
	if os.Getenv(crashReshape) == "true" {
		all.Go(func() {
			for depth := 0; ; depth++ {
				if err := tree.Reshape(ctx, depth%3); err != nil {
					panic(err) // It shows as an early end of the child.
				}
			}
		})
	}
	errs := make([]error, 6)
	for i := range errs {
		all.Go(func() {
			for errs[i] == nil {
				errs[i] = crashStep(tree, first+int(next.Add(1)), say)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func crashStep(tree *Tree, n int, say func(string, int)) error {
	if _, err := tree.Put(ctx, address(n), content(n, crashSize(n))); err != nil {
		return err
	}
	say("put", n)
	if n%3 != 0 {
		return nil
	}
	say("deleting", n)
	if err := tree.Delete(ctx, address(n), ""); err != nil {
		return err
	}
	say("deleted", n)
	return nil
}
