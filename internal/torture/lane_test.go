package torture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lane is a stack through many lives of drivers, one at a time.
type lane struct {
	t      *testing.T
	dir    string
	rng    *rand.Rand
	ledger *Ledger
	next   Object
	lives  int

	life    Life     // the last one
	journal []string // its
}

// livesPerStack is after how many lives a lane begins with a fresh stack, because all that was ever put is verified.
const livesPerStack = 16

func newLane(t *testing.T, dir string, seed uint64) *lane {
	return &lane{t: t, dir: dir, rng: rand.New(rand.NewPCG(seed, 1)), ledger: NewLedger()}
}

// deadline bounds everything a child does: one that hangs fails the test.
const deadline = 60 * time.Second

// fastDir returns a directory for what needs no disk: the page cache outlives a process on any file system.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "torture-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// lead starts a driver and follows its journal until it ends. At each line it calls seen, which may kill it.
func (l *lane) lead(life Life, seen func(line string, kill func())) {
	l.t.Helper()
	life.Dir, life.Seed, life.First = filepath.Join(l.dir, "stack"), l.rng.Uint64(), l.next
	l.next += 1 << 20
	l.lives++
	l.life, l.journal = life, nil
	cmd := child("driver")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	told, err := json.Marshal(life)
	must(l.t, err)
	cmd.Stdin = bytes.NewReader(told)
	out, err := cmd.StdoutPipe()
	must(l.t, err)
	must(l.t, cmd.Start())
	killed := false
	kill := func() { killed = true; cmd.Process.Kill() }
	late := time.AfterFunc(deadline, func() { cmd.Process.Kill() })
	seen("", kill)
	l.follow(out, func(line string) { seen(line, kill) })
	err = cmd.Wait()
	if !late.Stop() {
		l.t.Fatalf("life %+v hangs", life)
	}
	if err != nil && !killed {
		l.t.Fatalf("life %+v: %v\n%s", life, err, complaint.String())
	}
}

// follow notes all lines of a journal. The last one may lack its end, and was not said then.
func (l *lane) follow(journal io.Reader, seen func(line string)) {
	l.t.Helper()
	lines := bufio.NewReader(journal)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				l.t.Error(err)
			}
			return
		}
		line = line[:len(line)-1]
		l.journal = append(l.journal, line)
		if err := l.ledger.Note(line); err != nil {
			l.t.Error(err)
		}
		seen(line)
	}
}

// verify opens the stack and compares it with the ledger.
func (l *lane) verify() {
	l.t.Helper()
	s, err := Open(filepath.Join(l.dir, "stack"), Options{Create: true})
	if err == nil {
		err = l.ledger.Verify(ctx, s)
		if err == nil && l.rng.IntN(4) == 0 {
			err = l.ledger.VerifyRebuilt(ctx, s)
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		l.life.Old = nil
		l.t.Logf("the last life was %+v, %+v and ended with\n%s", l.life, l.life.Cut, strings.Join(l.journal[max(0, len(l.journal)-40):], "\n"))
		l.t.Fatalf("after life %d: %v", l.lives, err)
	}
}

// old returns some objects that are there, for the next life to work on.
func (l *lane) old(n int) []Object {
	ns := l.ledger.There()
	l.rng.Shuffle(len(ns), func(i, j int) { ns[i], ns[j] = ns[j], ns[i] })
	return ns[:min(n, len(ns))]
}

// chores returns some of them, chosen at random.
func (l *lane) chores(n int) []string {
	var some []string
	for _, i := range l.rng.Perm(len(Chores))[:n] {
		some = append(some, Chores[i])
	}
	return some
}

// child is the test binary as a child of itself.
func child(what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	return cmd
}

// seed returns the one of the environment, to repeat a failure, or a random one, and tells it.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if s := os.Getenv("GRANARY_TORTURE_SEED"); s != "" {
		must(t, json.Unmarshal([]byte(s), &n))
	}
	t.Logf("seed: GRANARY_TORTURE_SEED=%d", n)
	return n
}
