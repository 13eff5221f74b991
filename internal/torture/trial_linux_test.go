package torture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// trial is one pass through all that a stack can do, during which something goes wrong once or for ever. It runs in a
// child, which takes one order after the other.
type trial struct {
	*Ledger
	s     *Stack
	order order
	found []string // what may not be
}

// order is what a child is told to try.
type order struct {
	Dir    string
	Old    int           // objects 0 to Old-1 are there
	Errno  syscall.Errno // what calls may fail with
	Smooth bool          // nothing may fail: what goes wrong is to be borne
	Moves  bool          // blobs move to a deeper tree, and that is all
	Files  uint64        // so many may be open at a time; 0 for as many as ever
}

func init() { children["trial"] = trialMain }

// trialMain takes an order, does the trial, says so, waits until nothing goes wrong any more, verifies, and says what it
// found.
func trialMain() error {
	warmUp()
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		t := &trial{Ledger: NewLedger()}
		if err := json.Unmarshal(in.Bytes(), &t.order); err != nil {
			return err
		}
		if err := t.limited(t.run); err != nil {
			return err
		}
		if err := out.Encode("tried"); err != nil {
			return err
		}
		in.Scan()
		t.verify()
		if err := out.Encode(t.found); err != nil {
			return err
		}
	}
	return in.Err()
}

// warmUp has the runtime open what it keeps open for itself, without which it cannot live.
func warmUp() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

// limited calls run while few files may be open, if that was ordered.
func (t *trial) limited(run func()) error {
	var before syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before)
	if err == nil && t.order.Files > 0 {
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: t.order.Files, Max: before.Max})
	}
	if err != nil {
		return err
	}
	run()
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)
}

func (t *trial) wrong(format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf(format, args...))
}

// judge looks at the error of a call: it must say what went wrong, or that the store had met that before, and too few
// files are no fault of the store.
func (t *trial) judge(what string, err error) {
	if t.order.Files > 0 && blobstor.IsFault(err) {
		t.wrong("%s: %v: counts as a fault", what, err)
	}
	t.explain(what, err)
}

// explain is judge for what a report says.
func (t *trial) explain(what string, err error) {
	if err == nil {
		return
	}
	if t.order.Smooth {
		t.wrong("%s: %v; but nothing had failed for good", what, err)
		return
	}
	causes := []error{t.order.Errno, blobstor.ErrFailed, blobstor.ErrReadOnly, blobstor.ErrUncertain}
	if t.order.Errno == syscall.ENOSPC || t.order.Errno == syscall.EDQUOT {
		causes = append(causes, blobstor.ErrNoSpace)
	}
	if slices.ContainsFunc(causes, func(c error) bool { return errors.Is(err, c) }) {
		return
	}
	if text := err.Error(); strings.Contains(text, "file resize error: ") || strings.Contains(text, "file sync error: ") {
		if strings.Contains(text, t.order.Errno.Error()) {
			return // bbolt keeps no more of the cause than its text
		}
	}
	t.wrong("%s: %v: not what went wrong", what, err)
}

// run does all there is to do, then closes the stack and looks for what it has left behind.
func (t *trial) run() {
	files, routines := openFiles(), runtime.NumGoroutine()
	for n := range Object(t.order.Old) {
		t.fates[n] = there
	}
	s, err := Open(t.order.Dir, Options{Create: true, Flat: true})
	t.judge("open", err)
	if err == nil {
		t.s = s
		if t.order.Moves {
			t.judge("reshape", s.Large.Reshape(ctx, 1))
		} else {
			t.reads()
			t.writes()
			t.upkeep()
		}
		t.list()
		t.judge("close", s.Close())
	}
	for end := time.Now().Add(2 * time.Second); openFiles() > files || runtime.NumGoroutine() > routines; {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.wrong("%d files open, before %d; %d goroutines, before %d\n%s", openFiles(), files,
				runtime.NumGoroutine(), routines, stacks[:runtime.Stack(stacks, true)])
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// openFiles counts this process's descriptors.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(names)
}

// reads reads what is there in every way.
func (t *trial) reads() {
	for i, n := range t.There() {
		if i == 6 {
			break
		}
		got, err := t.s.Blobs.Get(ctx, n.Address(), "", nil)
		t.judge("get", err)
		if err == nil && !bytes.Equal(got, n.Data()) {
			t.wrong("get: object %d differs", n)
		}
		half := int64(n.Size() / 2)
		got, err = blobstor.GetRange(ctx, t.s.Blobs, n.Address(), "", half/2, half)
		t.judge("range", err)
		if err == nil && !bytes.Equal(got, n.Data()[half/2:][:half]) {
			t.wrong("range: object %d differs", n)
		}
		info, err := t.s.Blobs.Stat(ctx, n.Address(), "")
		t.judge("stat", err)
		if err == nil && info.Size != int64(n.Size()) {
			t.wrong("stat: object %d has %d bytes", n, info.Size)
		}
		if !n.Bare() {
			_, err = t.s.Index.Get(ctx, n.Address())
			t.judge("record", err)
		}
	}
	t.list()
}

// list iterates: what is there comes, or an error does.
func (t *trial) list() {
	seen, failed := map[Object]bool{}, false
	for info, err := range t.s.Blobs.All(ctx, "") {
		t.judge("all", err)
		if err != nil {
			failed = true
			continue
		}
		if n, ok := objectAt(info.Address); !ok || t.fates[n] == unheard {
			t.wrong("all: %v was never put", info.Address)
		} else {
			seen[n] = true
		}
	}
	for n, f := range t.fates {
		if f == there && !seen[n] && !failed {
			t.wrong("all: object %d is left out without an error", n)
		}
	}
}

// change does a change and notes how it went.
func (t *trial) change(before, after string, call func() error, ns ...Object) {
	for _, n := range ns {
		t.noteAll(before, n)
	}
	err := call()
	t.judge(after, err)
	if err == nil {
		for _, n := range ns {
			t.noteAll(after, n)
		}
	}
}

func (t *trial) noteAll(word string, n Object) {
	if err := t.turn(word, n); err != nil {
		t.wrong("%v", err)
	}
}

// writes changes things in every way. The numbers are of sizes and kinds that all paths have.
func (t *trial) writes() {
	s, next := t.s, Object(1000)
	put := func(n Object) { t.change(wordPutting, wordPut, func() error { return s.Put(ctx, n) }, n) }
	stream := func(n Object) { t.change(wordPutting, wordPut, func() error { return s.PutStream(ctx, n) }, n) }
	remove := func(ns ...Object) {
		ns = slices.DeleteFunc(ns, func(n Object) bool { return t.fates[n] != there }) // their puts have failed
		t.change(wordRemoving, wordRemoved, func() error { return s.Remove(ctx, ns...) }, ns...)
	}
	pick := func(fits func(Object) bool) Object {
		for ; !fits(next); next++ {
		}
		next++
		return next - 1
	}
	small := func(n Object) bool { return n.Size() > 3000 && n.Size() < smallMax }
	large := func(n Object) bool { return n.Size() > 40_000 && n.Size() < 100_000 }
	bare := func(fits func(Object) bool) func(Object) bool {
		return func(n Object) bool { return n.Bare() && fits(n) }
	}
	a, b, c, d := pick(bare(small)), pick(small), pick(bare(large)), pick(large)
	put(a)
	put(b)
	put(c)
	put(d)
	put(b) // again
	put(c)
	stream(pick(large))
	stream(pick(small))
	batch := []Object{pick(small), pick(large), pick(small), pick(bare(small)), pick(bare(large))}
	t.change(wordPutting, wordPut, func() error { return s.PutBatch(ctx, batch) }, batch...)
	for range 12 - 8*min(t.order.Files, 1) { // A file is full, unless each put may wait.
		put(pick(small))
	}
	remove(a)
	remove(b)
	remove(c)
	remove(batch[1:]...)
	if t.order.Old > 10 {
		remove(1, 2, 3, 7)
	}
}

// upkeep does what a program does now and then.
func (t *trial) upkeep() {
	gone, err := t.s.Collect(ctx)
	t.judge("collect", err)
	for _, n := range gone {
		t.noteAll(wordGone, n)
	}
	t.judge("compact", t.s.Small.Compact(ctx))
	t.judge("compact index", t.s.Index.Compact(ctx))
	small, err := t.s.Small.Check(ctx)
	t.judge("check", err)
	t.explain("check", t.reported(smallFaults(small)))
	large, err := t.s.Large.Scrub(ctx, nil)
	t.judge("scrub", err)
	t.explain("scrub", t.reported(largeFaults(large)))
	t.judge("check index", t.s.Index.Check(ctx))
}

// reported is a fault that a report has. It must be the error of a read, never damage.
func (t *trial) reported(err error) error {
	if errors.Is(err, blobstor.ErrCorrupt) && !errors.Is(err, t.order.Errno) {
		t.wrong("reported damage: %v", err)
	}
	return err
}

// verify opens the stack again, now that nothing goes wrong, compares it, and puts something.
func (t *trial) verify() {
	s, err := Open(t.order.Dir, Options{Create: true})
	if err != nil {
		t.wrong("open again: %v", err)
		return
	}
	err = t.Verify(ctx, s)
	if err == nil {
		err = errors.Join(s.Put(ctx, 5001), s.Put(ctx, 5003))
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.wrong("again: %v", err)
	}
}
