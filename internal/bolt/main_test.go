package bolt

import (
	"os"
	"os/exec"
	"testing"
)

// children are what this test binary does when a test runs it again, by the value of childEnv.
var children = map[string]func(dir string) error{}

const childEnv, childDir = "BOLT_TEST_CHILD", "BOLT_TEST_DIR"

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		if err := child(os.Getenv(childDir)); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// again is a command that runs this test binary as a child.
func again(t *testing.T, child, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), env...), childEnv+"="+child, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}
