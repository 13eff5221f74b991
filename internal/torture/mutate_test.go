package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

const mutantEnv = "GRANARY_TORTURE_MUTANT"

// TestMutants plants bugs, one at a time, and runs a test that must fail for each: else that test proves nothing. The
// source is changed for the compiler only. One set of test programs has all the bugs in it, and the environment says which
// is on; so a program of no bug is what the other tests of this run have been.
func TestMutants(t *testing.T) {
	if currentTier() == plain {
		t.Skip("the planted bugs are for Tier A")
	}
	if os.Getenv(mutantEnv) != "" {
		t.Fatal("a mutant plants no bugs")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("the go command is needed: %v", err)
	}
	var caught atomic.Int64
	report(t, "T22", func() string { return fmt.Sprintf("%d of %d planted bugs caught", caught.Load(), len(mutants)) })
	root, err := filepath.Abs("../..")
	must(t, err)
	programs := buildMutants(t, root)
	t.Run("planted", func(t *testing.T) {
		for _, m := range mutants {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				if m.survives(t, root, programs[m.test.pkg]) {
					t.Errorf("%s of %s passes with it", m.test.run, m.test.pkg)
					return
				}
				caught.Add(1)
			})
		}
	})
}

// survives runs the test with the bug, and reports whether it passes.
func (m *mutant) survives(t *testing.T, root, program string) bool {
	args := []string{"-test.run", m.test.run, "-test.failfast", "-test.v", "-test.timeout", "5m"}
	if m.test.pkg != "internal/torture" {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(root, m.test.pkg)
	cmd.Env = append(os.Environ(), mutantEnv+"="+m.name, "GRANARY_TORTURE_FAULT="+m.test.fault, "GRANARY_TORTURE_TABLE=")
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("--- SKIP: "+m.test.run+" ")) {
		t.Skip("the test is skipped here")
	}
	if err == nil {
		return true
	}
	said := tableRow.ReplaceAll(out[max(0, len(out)-1500):], nil)
	t.Logf("%s says %v\n%s", m.test.run, err, said)
	return false
}

// tableRow is one that is not of this run.
var tableRow = regexp.MustCompile(`(?m)^.*: \| T\d+ \|.*\n`)

// buildMutants compiles the tests of all packages that a bug is looked for with, and returns the programs.
func buildMutants(t *testing.T, root string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	overlay := filepath.Join(dir, "overlay.json")
	told, err := json.Marshal(map[string]any{"Replace": plant(t, root, dir)})
	must(t, err)
	must(t, os.WriteFile(overlay, told, 0o600))
	programs := map[string]string{}
	for _, m := range mutants {
		if programs[m.test.pkg] != "" {
			continue
		}
		program := filepath.Join(dir, strings.ReplaceAll(m.test.pkg, "/", "-")+".test")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+m.test.pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		programs[m.test.pkg] = program
	}
	return programs
}

// plant writes the changed sources into dir and returns which of them stands for which.
func plant(t *testing.T, root, dir string) map[string]string {
	t.Helper()
	sources, replace := map[string]string{}, map[string]string{}
	for _, m := range mutants {
		path := filepath.Join(root, m.file)
		if sources[path] == "" {
			b, err := os.ReadFile(path)
			must(t, err)
			sources[path] = string(b)
			pkg := filepath.Base(filepath.Dir(path))
			sources[filepath.Join(filepath.Dir(path), "mutated.go")] = "package " + pkg + "\n\nimport \"os\"\n\n" +
				"var bug = os.Getenv(\"" + mutantEnv + "\")\n\nfunc mutated(name string) bool { return bug == name }\n"
		}
		if n := strings.Count(sources[path], m.old); n != 1 {
			t.Fatalf("%s: its place is %d times in %s, not once: the source has changed, so must the bug", m.name, n, m.file)
		}
		sources[path] = strings.Replace(sources[path], m.old, m.bug, 1)
	}
	for path, source := range sources {
		at := filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		must(t, os.WriteFile(at, []byte(source), 0o600))
		replace[path] = at
	}
	return replace
}
