package metabase

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

const (
	crashEnv   = "GRANARY_METABASE_CRASH"
	rebuildEnv = "GRANARY_METABASE_REBUILD"
)

// TestMain turns the test binary into the child of TestKill or TestKillRebuild.
func TestMain(m *testing.M) {
	for env, child := range map[string]func(dir string) error{crashEnv: crashChild, rebuildEnv: rebuildChild} {
		if dir := os.Getenv(env); dir != "" {
			fmt.Println("error", child(dir))
			return
		}
	}
	os.Exit(m.Run())
}

// crashKinds are the operations that a child is killed in. Each does the n-th of its kind and returns what must hold
// once it was acknowledged. They stay in containers of their own.
var crashKinds = []struct {
	name string
	do   func(db *DB, n int) error
	hold func(db *DB, n int) error
}{
	{"put", func(db *DB, n int) error { return db.Put(ctx, crashRecord(1, n), virtual(1, 1<<30+n)) }, func(db *DB, n int) error { return isState(db, object(1, n), Available) }},
	{"batch", func(db *DB, n int) error {
		es := make([]Entry, 50)
		for i := range es {
			es[i].Records = []Record{crashRecord(2, 50*n+i)}
		}
		return db.PutBatch(ctx, es)
	}, func(db *DB, n int) error { return isState(db, object(2, 50*n+49), Available) }},
	{"mark", func(db *DB, n int) error {
		err := db.Put(ctx, crashRecord(3, n))
		if err == nil {
			err = db.Mark(ctx, Garbage, object(3, n))
		}
		return err
	}, func(db *DB, n int) error { return isState(db, object(3, n), Marked) }},
	{"tombstone", func(db *DB, n int) error { return db.Put(ctx, tombstone(4, 1<<30+n, n)) }, func(db *DB, n int) error { return isState(db, object(4, n), Buried) }},
	{"collect", func(db *DB, n int) error {
		err := db.Put(ctx, crashRecord(5, n))
		if err == nil {
			err = db.Mark(ctx, Garbage, object(5, n))
		}
		if err == nil {
			_, err = db.Collect(ctx, 10_000, onlyOf(id(5)))
		}
		if errors.Is(err, errOther) {
			err = nil
		}
		return err
	}, func(db *DB, n int) error { return isState(db, object(5, n), Missing) }},
	{"drop", func(db *DB, n int) error {
		es := make([]Entry, 300)
		for i := range es {
			es[i].Records = []Record{crashRecord(1000+n, i)}
		}
		err := db.PutBatch(ctx, es)
		if err == nil {
			err = db.Drop(ctx, id(1000+n))
		}
		return err
	}, func(db *DB, n int) error { return isState(db, object(1000+n, 7), Missing) }},
	{"compact", func(db *DB, n int) error {
		if err := db.Put(ctx, crashRecord(6, n)); err != nil {
			return err
		}
		return db.Compact(ctx)
	}, func(db *DB, n int) error { return isState(db, object(6, n), Available) }},
}

func crashRecord(c, n int) Record {
	return Record{Address: object(c, n), Size: 1, Expires: 1000 + uint64(n), Attrs: []Attr{{"n", fmt.Sprint(n), Auto}}}
}

var errOther = errors.New("another container's")

// onlyOf removes the blobs of one container and leaves all others.
func onlyOf(c blobstor.ID) func(context.Context, []blobstor.Item) error {
	return func(_ context.Context, items []blobstor.Item) error {
		for i := range items {
			if items[i].Address.Container != c {
				items[i].Err = errOther
			}
		}
		return nil
	}
}

func isState(db *DB, addr blobstor.Address, want State) error {
	s, err := db.Status(ctx, addr)
	if err == nil && s.State != want {
		err = fmt.Errorf("%+v, want state %d", s, want)
	}
	return err
}

// crashChild does operations until it is killed, and prints each when it was acknowledged. The first of each kind is
// one that no earlier life did, and what n is a target or part of has numbers of its own.
func crashChild(dir string) error {
	db, err := Open(dir, &Options{Create: true, Ballast: -1, pending: 200})
	if err != nil {
		return err
	}
	for n := 1000 * int(time.Now().UnixMilli()%20_000); ; n++ {
		for k := range crashKinds {
			if err := crashKinds[k].do(db, n); err != nil {
				return fmt.Errorf("%s: %w", crashKinds[k].name, err)
			}
			fmt.Println(k, n)
		}
	}
}

// TestKill kills a process in the middle of operations of every kind, many times on one database: Check is clean and all
// that was acknowledged holds.
func TestKill(t *testing.T) {
	lives := 20
	if testing.Short() {
		lives = 4
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "meta")
	acked := map[[2]int]bool{}
	for range lives {
		liveAndDie(t, crashEnv+"="+dir, time.Duration(rng.IntN(120))*time.Millisecond, func(line string) {
			var k, n int
			if _, err := fmt.Sscan(line, &k, &n); err != nil {
				t.Fatal(line)
			}
			acked[[2]int{k, n}] = true
		})
		db, err := Open(dir, &Options{Ballast: -1, pending: 50})
		must(t, err)
		must(t, db.Check(ctx))
		for a := range acked {
			if err := crashKinds[a[0]].hold(db, a[1]); err != nil {
				t.Fatalf("%s %d: %v", crashKinds[a[0]].name, a[1], err)
			}
		}
		must(t, db.Close())
	}
	if len(acked) < lives {
		t.Errorf("only %d acknowledgements", len(acked))
	}
}

// liveAndDie runs a child until some time after its first line, and hands on all of its lines.
func liveAndDie(t *testing.T, env string, life time.Duration, seen func(line string)) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		seen(lines.Text())
		if kill == nil {
			kill = time.AfterFunc(life, func() { cmd.Process.Kill() })
			defer kill.Stop()
		}
	}
	cmd.Wait() // it was killed
}

// crashBlobs is how many blobs a rebuild finds: a few more than one of its commits takes.
const crashBlobs = rebuildBatch + 2000

func crashShelf() (blobstor.BlobStor, error) {
	s := storagetest.NewMemory(1 << 20)
	for n := range crashBlobs {
		if _, err := s.Put(ctx, object(1, n), []byte("x")); err != nil {
			return nil, err
		}
	}
	return blobstor.Stream(s), nil
}

func parseAddress(info blobstor.Info, _ io.ReaderAt) ([]Record, error) {
	return []Record{{Address: info.Address, Size: 1}}, nil
}

// rebuildChild resets and rebuilds a database until it is killed, and says which of that it begins or has done.
func rebuildChild(dir string) error {
	s, err := crashShelf()
	if err != nil {
		return err
	}
	db, err := Open(dir, &Options{Create: true, Ballast: -1, pending: 200})
	for err == nil {
		fmt.Println("resets")
		if err = db.Reset(ctx); err == nil {
			fmt.Println("rebuilds")
			if _, err = Rebuild(ctx, db, s, parseAddress, nil); err == nil {
				fmt.Println("whole")
			}
		}
	}
	return err
}

// TestKillRebuild kills a process in the middle of Reset and Rebuild: the database is as it was or empty, has what the
// commits of a rebuild left, and another rebuild makes it whole.
func TestKillRebuild(t *testing.T) {
	lives := 8
	if testing.Short() {
		lives = 3
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s, err := crashShelf()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "meta")
	before := int64(0)
	for range lives {
		last := ""
		liveAndDie(t, rebuildEnv+"="+dir, time.Duration(rng.IntN(800))*time.Millisecond, func(line string) {
			if last = line; last == "whole" {
				before = crashBlobs
			} else if last != "resets" && last != "rebuilds" {
				t.Fatal(line)
			}
		})
		db, err := Open(dir, &Options{Ballast: -1, pending: 50})
		must(t, err)
		must(t, db.Check(ctx))
		c, err := db.Counters(ctx, id(1))
		must(t, err)
		switch n := c.Objects; {
		case last == "whole" && n != crashBlobs, last == "resets" && n != 0 && n != before, last == "rebuilds" && n > crashBlobs:
			t.Errorf("it died when it said %q, with %d objects", last, n)
		}
		_, err = Rebuild(ctx, db, s, parseAddress, nil)
		must(t, err)
		must(t, db.Check(ctx))
		if c, err = db.Counters(ctx, id(1)); err != nil || c != (Counters{Objects: crashBlobs, Roots: crashBlobs, Payload: crashBlobs}) {
			t.Errorf("rebuilt: %+v, %v", c, err)
		}
		must(t, db.Close())
		before = crashBlobs
	}
}
