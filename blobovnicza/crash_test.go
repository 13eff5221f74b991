package blobovnicza

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

const (
	crashEnv = "GRANARY_CRASH_DIR"
	churnEnv = "GRANARY_CRASH_CHURN"
)

// TestMain turns the test binary into the child of TestKill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		crashChild(dir)
		return
	}
	code := m.Run()
	removeFilled()
	os.Exit(code)
}

// crashOptions are those of the child, and how many of five blobs it keeps: few, where it shall compact.
func crashOptions() (opts *Options, kept int) {
	opts = &Options{Create: true, Width: 2, Depth: 1, FileSize: 256 << 10}
	if os.Getenv(churnEnv) == "" {
		return opts, 4
	}
	opts.FileSize, opts.Compact.DeadRatio = 32<<10, 0.02
	return opts, 1
}

func crashData(n int) []byte { return dataOf(n, n%5000) }

// crashChild puts and deletes until it is killed, and prints each acknowledgement: "+n" and "-n". It announces a
// delete with "?n" before, for one that was under way may have happened.
func crashChild(dir string) {
	opts, kept := crashOptions()
	s, err := Open(dir, opts)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var mu sync.Mutex
	say := func(mark string, n int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%s%d\n", mark, n)
	}
	base := int(s.Stats().Records) + os.Getpid()*100_000
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := base + g; ; n += 8 {
				if _, err := s.Put(ctx, addrOf(n), crashData(n)); err != nil {
					fmt.Println("error", err)
					return
				}
				say("+", n)
				if n%5 >= kept {
					say("?", n)
					if err := s.Delete(ctx, addrOf(n), ""); err != nil {
						fmt.Println("error", err)
						return
					}
					say("-", n)
				}
			}
		})
	}
	wg.Wait()
}

// A killed process loses nothing that it acknowledged, over many lives of one store.
func TestKill(t *testing.T) {
	killCycles(t, 30, 40, 1, func(string) {})
}

// killCycles runs and kills children on one store, a fifth of the cycles in short mode, and verifies after each, behind
// what look does, that nothing is lost that they acknowledged. Life is in milliseconds and at most that.
func killCycles(t *testing.T, cycles, life int, seed uint64, look func(dir string)) {
	t.Helper()
	if testing.Short() {
		cycles /= 5
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	acked := map[int]string{}
	for range cycles {
		runAndKill(t, dir, time.Duration(1+rng.IntN(life))*time.Millisecond, acked)
		look(dir)
		verifyAcked(t, dir, acked)
	}
	if len(acked) < cycles {
		t.Errorf("only %d acknowledgements in %d lives", len(acked), cycles)
	}
}

// runAndKill lets a child run for a while after its first acknowledgement and notes what it acknowledged.
func runAndKill(t *testing.T, dir string, life time.Duration, acked map[int]string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewReader(out)
	var kill *time.Timer
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err != io.EOF && !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			break
		}
		if strings.HasPrefix(line, "error") {
			t.Fatal(line)
		}
		var n int
		if _, err := fmt.Sscanf(line[1:], "%d\n", &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		acked[n] = line[:1]
		if kill == nil {
			kill = time.AfterFunc(life, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait()
}

func verifyAcked(t *testing.T, dir string, acked map[int]string) {
	t.Helper()
	s := mustOpen(t, dir, Options{})
	for n, state := range acked {
		got, err := s.Get(ctx, addrOf(n), "", nil)
		gone := errors.Is(err, blobstor.ErrNotFound)
		switch {
		case state == "?" && gone, state == "-" && gone:
		case state == "-" || err != nil || !bytes.Equal(got, crashData(n)):
			t.Errorf("blob %d, acknowledged %q: %d bytes, %v", n, state, len(got), err)
		}
	}
	for info, err := range s.All(ctx, "") {
		check(t, err)
		_, err = s.Get(ctx, info.Address, info.Location, nil)
		check(t, err)
	}
	if s.Stats().Lost > 0 {
		t.Errorf("stats %+v", s.Stats())
	}
	check(t, s.Close())
}
