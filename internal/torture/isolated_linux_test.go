package torture

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const isolatedEnv = "GRANARY_TORTURE_ISOLATED"

// isolated runs the test that calls it once more, in a process with mounts of its own, which end with it whatever
// happens, and reports whether this is that process. The test is skipped where that is not allowed.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(isolatedEnv) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may mount file systems")
	}
	runtime.LockOSThread() // The death of the thread that starts the process is that of the process.
	defer runtime.UnlockOSThread()
	args := []string{"-test.run", "^" + t.Name() + "$", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if at, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout", time.Until(at).String())
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), isolatedEnv+"="+t.Name(), "GRANARY_TORTURE_TABLE=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("mounts of its own are needed: %v", err)
	}
	err := cmd.Wait()
	passOn(t, &out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// passOn tells what the process has told, rows of the table included.
func passOn(t *testing.T, out *bytes.Buffer) {
	t.Helper()
	t.Log("\n" + out.String())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, row, ok := strings.Cut(lines.Text(), ": | ")
		if ok {
			results.add("| " + row)
		}
		if strings.Contains(lines.Text(), "--- SKIP: "+t.Name()+" ") {
			t.Skip("see above")
		}
	}
}
