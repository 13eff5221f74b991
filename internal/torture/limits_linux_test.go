package torture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// runTrial has a child of its own do one trial, and returns what it finds.
func runTrial(o order) (found []string, err error) {
	told, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := child("trial")
	cmd.Stdin = bytes.NewReader(append(append(told, '\n'), "verify\n"...))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	late := time.AfterFunc(patience, func() { cmd.Process.Signal(unix.SIGQUIT) })
	defer late.Stop()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the child hangs or has died: %w\n%s", err, complaint.String())
	}
	said := json.NewDecoder(bytes.NewReader(out))
	var tried string
	return found, errors.Join(said.Decode(&tried), said.Decode(&found))
}

// patience is for trials in which each call may wait a second for a file that another closes.
const patience = 5 * time.Minute

// TestFewFiles does all there is to do while a process may have few files open: what cannot be done says so, and speaks
// against nothing. The trials spend their time waiting, so they run at once.
func TestFewFiles(t *testing.T) {
	step := uint64(1)
	if currentTier() == plain {
		step = 14
	}
	var done atomic.Int64
	report(t, "T15", func() string { return fmt.Sprintf("%d limits of open files", done.Load()) })
	var all sync.WaitGroup
	for n := uint64(8); n <= 64; n += step {
		o := order{Dir: filepath.Join(fastDir(t), "stack"), Errno: unix.EMFILE, Files: n}
		all.Go(func() {
			found, err := runTrial(o)
			if err != nil {
				t.Errorf("%+v: %v", o, err)
			}
			for _, s := range found {
				t.Errorf("%+v: %s", o, s)
			}
			done.Add(1)
		})
	}
	all.Wait()
}

// TestTurnsReadOnly has a file system find an error in itself and become read-only under the stack.
func TestTurnsReadOnly(t *testing.T) {
	if !isolated(t) {
		return
	}
	report(t, "T15", func() string { return "a file system that turns read-only, and a read-only mount" })
	d := newDisk(t, "ext4", "errors=remount-ro", diskSizes["ext4"])
	dir := filepath.Join(d.mount, "stack")
	tr := &trial{Ledger: NewLedger(), order: order{Dir: dir, Errno: unix.EROFS}}
	s, err := Open(dir, Options{Create: true})
	must(t, err)
	tr.s = s
	tr.writes()
	if len(tr.found) > 0 {
		t.Fatal(tr.found)
	}
	trigger := "/sys/fs/ext4/" + filepath.Base(d.loop) + "/trigger_fs_error"
	if err := os.WriteFile(trigger, []byte("x"), 0); err != nil {
		t.Skipf("an error of the file system is needed: %v", err)
	}
	before := len(tr.There())
	tr.reads()
	for n := range Object(40) {
		n += 7000
		tr.change(wordPutting, wordPut, func() error { return s.Put(ctx, n) }, n)
	}
	for _, n := range tr.There()[:5] {
		tr.change(wordRemoving, wordRemoved, func() error { return s.Remove(ctx, n) }, n)
	}
	tr.reads()
	if len(tr.There()) > before {
		t.Error("a put was acknowledged on a file system that takes no writes")
	}
	tr.judge("close", s.Close())
	must(t, d.detach())
	d.options = ""
	must(t, d.attach())
	tr.verify()
	for _, s := range tr.found {
		t.Error(s)
	}
	readOnlyMount(t, d, tr.Ledger)
}

// readOnlyMount verifies a stack on a file system that was mounted read-only.
func readOnlyMount(t *testing.T, d *disk, l *Ledger) {
	must(t, d.detach())
	d.flags = unix.MS_RDONLY
	must(t, d.attach())
	dir := filepath.Join(d.mount, "stack")
	if _, err := Open(dir, Options{}); !errors.Is(err, blobstor.ErrReadOnly) {
		t.Errorf("open for writing: %v", err)
	}
	s, err := Open(dir, Options{ReadOnly: true})
	must(t, err)
	l.fates[5001], l.fates[5003] = there, there // which verify has put
	if err := l.Verify(ctx, s); err != nil {
		t.Error(err)
	}
	if err := s.Put(ctx, 9000); !errors.Is(err, blobstor.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
	must(t, s.Close())
}

// nobody is a user without any rights.
const nobody = 65534

func init() { children["nobody"] = nobodyMain }

// TestUnprivileged does all there is to do as a user without rights, and then takes away what rights that user has.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	report(t, "T15", func() string { return "a user without rights" })
	dir := fastDir(t)
	program := filepath.Join(dir, "program") // where that user may run it
	text, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(program, text, 0o755))
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "own"), 0o700))
	must(t, os.Chown(filepath.Join(dir, "own"), nobody, nobody))
	cmd := child("nobody")
	cmd.Path, cmd.Dir = program, filepath.Join(dir, "own")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	must(t, err)
	var found []string
	must(t, json.Unmarshal(out, &found))
	for _, s := range found {
		t.Error(s)
	}
}

// nobodyMain works in the directory where it is run.
func nobodyMain() error {
	warmUp()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "stack")
	t := &trial{Ledger: NewLedger(), order: order{Dir: dir, Errno: unix.EACCES, Smooth: true}}
	t.run()
	t.verify()
	t.fates[5001], t.fates[5003] = there, there // which verify has put
	t.modes(dir)
	t.order.Smooth = false
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	t.s = s
	if err := os.Chmod(filepath.Join(dir, "large"), 0o500); err != nil {
		return err
	}
	if _, err := s.Large.Put(ctx, Object(8003).Address(), make([]byte, 50_000)); !errors.Is(err, fs.ErrPermission) {
		t.wrong("put where nothing may be written: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, "large"), 0); err != nil {
		return err
	}
	t.list()
	if err := os.Chmod(filepath.Join(dir, "large"), 0o700); err != nil {
		return err
	}
	t.judge("close", s.Close())
	for _, name := range []string{"small", "large", "meta"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			return err
		}
		if _, err := openers[name](filepath.Join(dir, name), false); !errors.Is(err, fs.ErrPermission) {
			t.wrong("open of %s, which is forbidden: %v", name, err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	t.verify()
	return json.NewEncoder(os.Stdout).Encode(t.found)
}

// modes verifies that nobody else may read what is stored.
func (t *trial) modes(dir string) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.wrong("%s is %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.wrong("%v", err)
	}
}
