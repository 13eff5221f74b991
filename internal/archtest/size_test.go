package archtest

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// Hard stops, not aims: a file of 300 lines and a function of ten read best.
const (
	maxFileLines     = 400
	maxFunctionLines = 70
)

// checkSize finds files and functions that want to be two.
func checkSize(s *source) []string {
	var found []string
	if n := s.fset.File(s.ast.Pos()).LineCount(); n > maxFileLines {
		found = append(found, fmt.Sprintf("%s: %d lines, at most %d", s.path, n, maxFileLines))
	}
	for _, decl := range s.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := lines(s, fn); n > maxFunctionLines {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, at most %d", s.at(fn), fn.Name.Name, n, maxFunctionLines))
		}
	}
	return found
}

// lines counts a function from its first word to its closing brace, without its comment.
func lines(s *source, fn *ast.FuncDecl) int {
	return s.fset.Position(fn.End()).Line - s.fset.Position(fn.Type.Pos()).Line + 1
}

func TestSize(t *testing.T) { checkAll(t, checkSize) }

func TestSizeCanFail(t *testing.T) {
	function := func(n int) string { return "func f() {\n" + strings.Repeat("\t_ = 0\n", n-2) + "}\n" }
	file := func(n int) string { return "package a\n" + strings.Repeat("\n", n-1) }
	wantFindings(t, checkSize, "fstree/a.go", "package a\n\n"+function(maxFunctionLines), 0)
	wantFindings(t, checkSize, "fstree/a.go", "package a\n\n"+function(maxFunctionLines+1), 1)
	wantFindings(t, checkSize, "fstree/a.go", file(maxFileLines), 0)
	wantFindings(t, checkSize, "fstree/a.go", file(maxFileLines+1), 1)
}
