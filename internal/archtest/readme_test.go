package archtest

import (
	"bytes"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme does what README.md tells a user to do: its code becomes a module of its own, outside of this one,
// which runs and passes its test. So the README cannot show what does not work.
func TestReadme(t *testing.T) {
	text := readFile(t, "README.md")
	blocks := goBlocks(text)
	if len(blocks) != 4 {
		t.Fatalf("README.md has %d blocks of Go, want a program and three tests", len(blocks))
	}
	dir := t.TempDir()
	writeFile(t, dir, "main.go", blocks[0])
	writeFile(t, dir, "main_test.go", blocks[1])
	writeFile(t, dir, "index_test.go", blocks[2])
	writeFile(t, dir, "series_test.go", blocks[3])
	writeFile(t, dir, "go.mod", userModule(t))
	writeFile(t, dir, "go.sum", readFile(t, "go.sum"))

	const want = "\"an object of any size\", \"object\"\n"
	if got := goCommand(t, dir, "run", "."); got != want {
		t.Errorf("the program printed %q, want %q", got, want)
	}
	goCommand(t, dir, "test", ".")
	wantAllImported(t, strings.Join(blocks, ""))
}

// wantAllImported checks that the code uses every package that users can import. The root is only documentation.
func wantAllImported(t *testing.T, code string) {
	t.Helper()
	for _, s := range load(t) {
		if s.pkg == "." || s.isExample() || strings.HasPrefix(s.pkg, "internal/") {
			continue
		}
		if !strings.Contains(code, `"`+module+"/"+s.pkg+`"`) {
			t.Errorf("README.md does not import %s", s.pkg)
		}
	}
}

// goBlocks returns the fenced blocks of Go in a text.
func goBlocks(text string) []string {
	var blocks []string
	for {
		_, rest, ok := strings.Cut(text, "\n```go\n")
		if !ok {
			return blocks
		}
		block, rest, _ := strings.Cut(rest, "\n```\n")
		blocks = append(blocks, block+"\n")
		text = rest
	}
}

// userModule requires this module in the place of a released version, which is all that differs for a user. Its
// other lines are this module's own, as go get would write them, so that nothing has to be looked up.
func userModule(t *testing.T) string {
	t.Helper()
	own, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(readFile(t, "go.mod"), "\n")
	return "module example.com/user\n" + rest +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + own + "\n"
}

// goCommand runs the go command in dir and returns what it printed.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if err := cmd.Run(); err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writeFile writes a file, which must be formatted if it is Go.
func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if strings.HasSuffix(name, ".go") {
		formatted, err := format.Source([]byte(text))
		if err != nil || string(formatted) != text {
			t.Errorf("%s in README.md is not formatted: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
