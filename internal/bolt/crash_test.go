package bolt

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/granary-store/granary/internal/durable"
)

func init() {
	children["crash"] = childCrash
}

const crashStart, crashNoSync = "BOLT_TEST_START", "BOLT_TEST_NOSYNC"

// childCrash commits one number after the other, in the order of the file's own count, and says so after each; now
// and then it compacts.
func childCrash(dir string) error {
	start, err := strconv.Atoi(os.Getenv(crashStart))
	if err != nil {
		return err
	}
	db, err := Open(dir, options(Options{Ballast: 1 << 16, NoSync: os.Getenv(crashNoSync) == "true"}))
	if err != nil {
		return err
	}
	for n := start; ; n++ {
		if err := db.Update(putting(n*10, n*10+10, 300)); err != nil {
			return err
		}
		fmt.Println(n)
		if n%50 == 49 {
			if err := db.Compact(ctx); err != nil {
				return err
			}
		}
	}
}

// TestCrash kills a process in the middle of commits and compactions: what it had acknowledged is there, a commit is
// there as a whole or not at all, and the pages are sound. This shows the death of a process; the system's cache
// survives it.
func TestCrash(t *testing.T) {
	cycles := 40
	if testing.Short() {
		cycles = 8
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "store")
	check(t, reopen(t, dir, Options{}).Close())
	next := 0
	for cycle := range cycles {
		acked := runAndKill(t, dir, next, time.Duration(rng.IntN(40_000))*time.Microsecond, cycle%4 == 3)
		db := reopen(t, dir, Options{})
		check(t, db.Check(ctx))
		n := len(contents(t, db, apples))
		if n%10 != 0 || n/10 < acked || n/10 > acked+1 {
			t.Fatalf("%d keys after %d commits", n, acked)
		}
		next = n / 10
		check(t, db.Close())
		entries, err := os.ReadDir(dir)
		check(t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "tmp-") {
				t.Errorf("%s was not swept", e.Name())
			}
		}
	}
	t.Logf("%d commits", next)
}

// runAndKill returns how many commits there are by the child's last word.
func runAndKill(t *testing.T, dir string, start int, after time.Duration, noSync bool) int {
	t.Helper()
	cmd := again(t, "crash", dir, fmt.Sprintf("%s=%d", crashStart, start),
		fmt.Sprintf("%s=%v", crashNoSync, noSync))
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	acked, killing := start, false
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			break // What lacks its end was not said.
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		check(t, err)
		acked = n + 1
		if !killing {
			killing = true
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || !killing {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return acked
}

// TestCrashInReplace stops a compaction at each of its steps, as if the process had died: the store has all it had.
func TestCrashInReplace(t *testing.T) {
	for n := 0; ; n++ {
		tap := &stopTap{left: 1 << 30}
		db := create(t, Options{tap: tap})
		put(t, db, 0, 1000, 100)
		want := contents(t, db, apples)
		tap.left = n
		err := db.Compact(ctx)
		whole := tap.left > 0
		tap.left = 0 // Close cannot tidy up either.
		db.Close()
		db = reopen(t, db.store.Dir.Path(), Options{})
		same(t, contents(t, db, apples), want)
		check(t, db.Check(ctx))
		check(t, db.Close())
		wantNames(t, db.store.Dir.Path(), "DESCRIPTOR", "LOCK", fileName, markClean)
		if whole {
			check(t, err)
			break
		}
		if err != nil && !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
	}
}

// TestMarks: the mark says how the store was left.
func TestMarks(t *testing.T) {
	for name, o := range map[string]Options{markDirty: {}, markUnsynced: {NoSync: true}} {
		db := create(t, o)
		dir := db.store.Dir.Path()
		wantNames(t, dir, "DESCRIPTOR", "LOCK", fileName, name)
		put(t, db, 0, 1, 1)
		check(t, db.Close())
		wantNames(t, dir, "DESCRIPTOR", "LOCK", fileName, markClean)
		check(t, os.Rename(filepath.Join(dir, markClean), filepath.Join(dir, name)))
		check(t, reopen(t, dir, Options{ReadOnly: true}).Close())
		wantNames(t, dir, "DESCRIPTOR", "LOCK", fileName, name)
		check(t, reopen(t, dir, Options{}).Close())
		wantNames(t, dir, "DESCRIPTOR", "LOCK", fileName, markClean)
	}
}

// TestCloseSyncs: what NoSync left is durable before the mark says so.
func TestCloseSyncs(t *testing.T) {
	tap := &failTap{}
	db := create(t, Options{NoSync: true, tap: tap})
	put(t, db, 0, 1, 1)
	tap.fail(durable.OpSync, syscall.EIO)
	checkIs(t, db.Close(), syscall.EIO)
	wantNames(t, db.store.Dir.Path(), "DESCRIPTOR", "LOCK", fileName, markUnsynced)
}
