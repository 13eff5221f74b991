package pilorama

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
)

const crashEnv = "GRANARY_PILORAMA_CRASH"

// TestMain turns the test binary into the child of TestKill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		fmt.Println("error", crashChild(dir))
		return
	}
	os.Exit(m.Run())
}

var doomed = Tree{blobstor.ID{2}, "doomed"}

func crashOps() (*rand.Rand, []Operation) {
	rng := rand.New(rand.NewPCG(7, 7))
	return rng, randomOps(rng, 3000, 200)
}

// crashChild applies operations in an order of this life's own until it is killed, and prints each batch that was
// acknowledged; and it fills and drops another tree meanwhile.
func crashChild(dir string) error {
	db, err := Open(dir, &Options{Create: true, Ballast: -1})
	if err != nil {
		return err
	}
	go func() {
		for {
			var ops []Operation
			for i := range uint64(5000) {
				ops = append(ops, Operation{i + 1, Root, NodeID(i + 1), named(fmt.Sprint(i))})
			}
			if err := db.ApplyBatch(ctx, doomed, ops); err != nil {
				fmt.Println("error", err)
			}
			if err := db.Drop(ctx, doomed); err != nil {
				fmt.Println("error", err)
			}
		}
	}()
	_, ops := crashOps()
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 0))
	for {
		from := rng.IntN(len(ops))
		to := min(len(ops), from+1+rng.IntN(20))
		if err := db.ApplyBatch(ctx, tree, ops[from:to]); err != nil {
			return err
		}
		fmt.Println(from, to)
	}
}

// TestKill kills a process while it applies and drops, again and again. What was acknowledged is there, the database is
// whole, and in the end it is the tree of the model. A kill leaves the page cache: power loss is internal/bolt's test.
func TestKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trees")
	rng, ops := crashOps()
	lives := 12
	if testing.Short() {
		lives = 3
	}
	acknowledged := map[uint64]bool{}
	for range lives {
		for at := range liveUntilKilled(t, dir, time.Duration(30+rng.IntN(200))*time.Millisecond, len(ops)) {
			acknowledged[ops[at].Time] = true
		}
		w := &world{dir: dir, opts: Options{Ballast: -1, NoSync: true, Create: true}}
		w.reopen(t)
		w.check(t)
		if len(acknowledged) > 0 {
			stored, err := w.OpLog(ctx, tree, 0, len(ops))
			must(t, err)
			left := len(acknowledged)
			for _, op := range stored {
				if acknowledged[op.Time] {
					left--
				}
			}
			if left > 0 {
				t.Errorf("%d acknowledged operations are lost", left)
			}
			if got, want := w.state(t, tree), modelText(stored); got != want {
				t.Error("it is not what the log makes of it")
			}
		}
		must(t, w.Close())
	}
	w := &world{dir: dir, opts: Options{Ballast: -1, NoSync: true}}
	w.reopen(t)
	must(t, w.Drop(ctx, doomed))
	w.deliver(t, rng, shuffled(rng, ops, 50))
	if w.state(t, tree) != modelText(ops) {
		t.Error("it is not the tree of the model")
	}
	w.check(t)
	must(t, w.Close())
}

// liveUntilKilled runs a child for a time after its first acknowledgement, and returns the operations it acknowledged.
func liveUntilKilled(tb testing.TB, dir string, life time.Duration, most int) map[int]bool {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	acknowledged := map[int]bool{}
	var timer *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var from, to int
		if n, _ := fmt.Sscan(lines.Text(), &from, &to); n != 2 || to > most {
			tb.Error("the child said: ", strconv.Quote(lines.Text()))
			break
		}
		if timer == nil {
			timer = time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
		}
		for ; from < to; from++ {
			acknowledged[from] = true
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed, as meant
	return acknowledged
}
