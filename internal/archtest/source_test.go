package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/granary-store/granary"
	root   = "../.."
)

// source is a parsed file; paths are relative to the module and use slashes.
type source struct {
	path   string
	pkg    string // directory, "." for the root
	nested bool   // belongs to a module of its own below this one
	fset   *token.FileSet
	ast    *ast.File
}

// at names a place in the file for a report.
func (s *source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// imports lists the import paths.
func (s *source) imports() []string {
	var paths []string
	for _, spec := range s.ast.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		paths = append(paths, p)
	}
	return paths
}

// names maps the name under which the file knows a package to its import path. A name that is not given is
// guessed from the last element of the path, which is right for all that the checks ask about.
func (s *source) names() map[string]string {
	m := make(map[string]string)
	for i, p := range s.imports() {
		name := path.Base(p)
		if given := s.ast.Imports[i].Name; given != nil {
			name = given.Name
		}
		m[name] = p
	}
	return m
}

// isExample reports whether the file belongs to a program that shows how to use the module.
func (s *source) isExample() bool { return strings.HasPrefix(s.path, "examples/") }

// plant parses text as if it stood in the module at that path.
func plant(t *testing.T, at, text string) *source {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, at, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &source{path: at, pkg: path.Dir(at), fset: fset, ast: f}
}

// load parses every file of the module that is not a test, for all systems and build tags.
func load(t *testing.T) []*source {
	t.Helper()
	var all []*source
	nested := make(map[string]bool) // directories of other modules, seen before what is below them
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			nested[rel] = rel != "." && (nested[path.Dir(rel)] || exists(filepath.Join(name, "go.mod")))
			return skip(rel)
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s := plant(t, rel, string(text))
		s.nested = nested[s.pkg]
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// skip leaves out the directories that the go command leaves out.
func skip(dir string) error {
	base := path.Base(dir)
	if base == "testdata" || base != "." && (base[0] == '.' || base[0] == '_') {
		return fs.SkipDir
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// checkAll runs a check over the module and reports what it finds.
func checkAll(t *testing.T, check func(*source) []string) {
	t.Helper()
	for _, s := range load(t) {
		for _, finding := range check(s) {
			t.Error(finding)
		}
	}
}

// wantFindings runs a check over a planted file: it must find exactly n things.
func wantFindings(t *testing.T, check func(*source) []string, at, text string, n int) {
	t.Helper()
	got := check(plant(t, at, text))
	if len(got) != n {
		t.Errorf("%s: %d findings, want %d: %q", at, len(got), n, got)
	}
}
