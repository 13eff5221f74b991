package torture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { children["trap"] = trapMain }

// trialHang is how long one pass of a trial may take before it counts as hanging. It takes some 0.1 s.
const trialHang = 20 * time.Second

// prisoner is a child that does trials with its system calls trapped.
type prisoner struct {
	t      *testing.T
	top    string
	cmd    *exec.Cmd
	trap   *trap
	in     io.Writer
	out    *json.Decoder
	errors bytes.Buffer // its stderr
	trials int
}

func newPrisoner(t *testing.T) *prisoner {
	t.Helper()
	p := &prisoner{t: t, top: fastDir(t)}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(pair[0])
	far := os.NewFile(uintptr(pair[1]), "socket")
	defer far.Close()
	p.cmd = child("trap")
	p.cmd.Env = append(p.cmd.Env, trapNextEnv+"=trial")
	p.cmd.ExtraFiles = []*os.File{far}
	p.cmd.Stderr = &p.errors
	in, err := p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	far.Close()
	p.trap, err = newTrap(pair[0], p.cmd.Process.Pid, p.top)
	if err != nil {
		p.cmd.Wait()
		t.Skipf("system calls cannot be trapped: %v %s", err, p.errors.String())
	}
	go p.trap.serve()
	p.in, p.out = in, json.NewDecoder(bufio.NewReader(out))
	t.Cleanup(func() {
		in.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("child: %v\n%s", err, p.errors.String())
		}
	})
	return p
}

// try has the child do one trial with a fault, nil for none. It returns what calls there were, how
// often the fault happened, and what the child found wrong.
func (p *prisoner) try(f *fault, s scene) (counts map[string]int, hits int, found []string) {
	p.t.Helper()
	p.trials++
	dir := filepath.Join(p.top, fmt.Sprint(p.trials))
	if s.from != "" {
		must(p.t, os.CopyFS(dir, os.DirFS(s.from)))
	}
	defer os.RemoveAll(dir)
	o := order{Dir: dir, Old: s.old, Moves: s.moves, Smooth: true}
	if f != nil {
		o.Errno = f.Errno
		o.Smooth = f.Short || f.Errno == unix.EINTR
	}
	told, err := json.Marshal(o)
	must(p.t, err)
	p.trap.arm(f)
	var said string
	p.say(told, &said, f)
	counts, hits = p.trap.disarm()
	p.say([]byte("verify"), &found, f)
	return counts, hits, found
}

// say tells the child something and decodes its answer. A child that hangs tells where.
func (p *prisoner) say(line []byte, answer any, f *fault) {
	p.t.Helper()
	late := time.AfterFunc(trialHang, func() { p.cmd.Process.Signal(unix.SIGQUIT) })
	_, err := p.in.Write(append(line, '\n'))
	if err == nil {
		err = p.out.Decode(answer)
	}
	late.Stop()
	if err != nil {
		p.trap.disarm()
		p.t.Fatalf("%+v: the child hangs or has died: %v\n%s", f, err, p.errors.String())
	}
}

// errnos are what the calls fail with.
var errnos = []syscall.Errno{unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.EROFS}

// errnosOf are what a call fails with; Tier B tries all with all.
func errnosOf(call string) []syscall.Errno {
	switch call {
	case "pread64", "getdents64", "fstat", "newfstatat", "fstatfs", "flock", "fcntl", "mmap", "fadvise64": // They need no room.
		if currentTier() < tierB {
			return []syscall.Errno{unix.EIO, unix.EMFILE}
		}
	}
	return errnos
}

// slow are the calls that a signal may interrupt, and those of them that may do less than they were asked for. Linux
// interrupts no fdatasync, and bbolt does not repeat it.
var slow = map[string]bool{
	"openat": false, "pread64": true, "pwrite64": true, "write": true, "fsync": false, "syncfs": false,
	"ftruncate": false, "fallocate": false,
}

// plans returns all faults of the first calls of each kind, and some that never end.
func plans(counts map[string]int, first int) (all []fault) {
	for call, n := range counts {
		for i := range min(n, first) {
			for _, e := range errnosOf(call) {
				all = append(all, fault{Call: call, N: i, Errno: e})
			}
			short, slow := slow[call]
			if slow {
				all = append(all, fault{Call: call, N: i, Errno: unix.EINTR})
			}
			if short {
				all = append(all, fault{Call: call, N: i, Short: true})
			}
		}
		for _, e := range errnosOf(call) {
			all = append(all, fault{Call: call, Errno: e, Forever: true}, fault{Call: call, N: n / 2, Errno: e, Forever: true})
		}
	}
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// scene is where trials take place.
type scene struct {
	name  string
	from  string // a stack to copy, "" to make a new one
	old   int    // objects in it
	moves bool   // see order
	first int    // how many calls of each kind fail
}

// TestSystemCallFails has every system call on a stack fail, one in each trial, with every error that it may have.
func TestSystemCallFails(t *testing.T) {
	s := seed(t)
	old := crashedStack(t, 40)
	for _, c := range []scene{
		{name: "new stack", first: amount(5, 40, 10_000)},
		{name: "old stack", first: amount(5, 40, 10_000), from: old, old: 40},
		{name: "moves", first: amount(1, 5, 10_000), from: old, old: 40, moves: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPrisoner(t)
			counts, _, found := p.try(nil, c)
			if len(found) > 0 {
				t.Fatalf("without any fault: %v", found)
			}
			all := plans(counts, c.first)
			rand.New(rand.NewPCG(s, 5)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			all = all[:min(len(all), amount(25, 1<<30, 1<<30))]
			all = chosen(t, all)
			t.Logf("calls: %v; %d faults", counts, len(all))
			tryAll(t, c, all)
		})
	}
}

// chosen returns the fault of the environment, to repeat a failure, ten times, or else all of them.
func chosen(t *testing.T, all []fault) []fault {
	one := os.Getenv("GRANARY_TORTURE_FAULT")
	if one == "" {
		return all
	}
	var f fault
	must(t, json.Unmarshal([]byte(one), &f))
	return slices.Repeat([]fault{f}, 10)
}

// tryAll divides faults between two children.
func tryAll(t *testing.T, c scene, all []fault) {
	var done, hit atomic.Int64
	report(t, "T5", func() string {
		return fmt.Sprintf("%s: %d trials, in %d a call failed", c.name, done.Load(), hit.Load())
	})
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := newPrisoner(t)
			for k := i; k < len(all); k += 2 {
				_, hits, found := p.try(&all[k], c)
				done.Add(1)
				if hits > 0 {
					hit.Add(1)
				}
				for _, s := range found {
					again, _ := json.Marshal(all[k])
					t.Errorf("%+v: %s\nagain with GRANARY_TORTURE_FAULT='%s'", all[k], s, again)
				}
			}
		})
	}
}

// crashedStack makes a stack with objects 0 to n-1, as it is when its process is killed.
func crashedStack(t *testing.T, n int) string {
	t.Helper()
	dir := fastDir(t)
	s, err := Open(filepath.Join(dir, "live"), Options{Create: true, Flat: true})
	must(t, err)
	defer s.Close()
	for n := range Object(n) {
		must(t, s.Put(ctx, n))
	}
	must(t, os.CopyFS(filepath.Join(dir, "dead"), os.DirFS(filepath.Join(dir, "live"))))
	return filepath.Join(dir, "dead")
}
