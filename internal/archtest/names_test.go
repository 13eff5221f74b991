package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// namers may create, link, rename and remove names: the package that makes names durable, and test support.
var namers = []string{"internal/durable", "internal/crashtest"}

// naming lists, by package, what makes, moves or removes a name, and the flags with which an open does. A Root
// is listed because its methods, which a parser cannot tell from others, do all of it.
var naming = map[string][]string{
	"os": {
		"CopyFS", "Create", "CreateTemp", "Link", "Mkdir", "MkdirAll", "MkdirTemp", "O_CREATE", "OpenInRoot",
		"OpenRoot", "Remove", "RemoveAll", "Rename", "Root", "Symlink", "WriteFile",
	},
	"syscall":                  systemCalls,
	"golang.org/x/sys/unix":    systemCalls,
	"golang.org/x/sys/windows": systemCalls,
}

var systemCalls = []string{
	"CREATE_ALWAYS", "CREATE_NEW", "Creat", "CreateDirectory", "CreateFile", "CreateHardLink", "DeleteFile",
	"Link", "Linkat", "Mkdir", "Mkdirat", "Mknod", "Mknodat", "MoveFile", "MoveFileEx", "O_CREAT", "O_TMPFILE",
	"RemoveDirectory", "Rename", "Renameat", "Renameat2", "RenamexNp", "Rmdir", "Symlink", "Symlinkat", "Unlink",
	"Unlinkat",
}

// checkNames finds every use of them, called or only mentioned, outside the packages that may.
func checkNames(s *source) []string {
	if s.isExample() || slices.Contains(namers, s.pkg) {
		return nil
	}
	var found []string
	packages := s.names()
	if naming[packages["."]] != nil {
		found = append(found, s.path+": imports "+packages["."]+" without a name, which hides its uses")
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			pkg, ok := sel.X.(*ast.Ident)
			if ok && slices.Contains(naming[packages[pkg.Name]], sel.Sel.Name) {
				found = append(found, s.at(n)+": "+pkg.Name+"."+sel.Sel.Name+" is for internal/durable alone")
			}
		}
		return true
	})
	return found
}

func TestNames(t *testing.T) { checkAll(t, checkNames) }

func TestNamesCanFail(t *testing.T) {
	for _, test := range []struct {
		name, imp, code string
		n               int
	}{
		{"create", `"os"`, `f, err := os.Create("a"); _, _ = f, err`, 1},
		{"flag", `"os"`, `f, err := os.OpenFile("a", os.O_RDWR|os.O_CREATE, 0); _, _ = f, err`, 1},
		{"as a value", `"os"`, `remove := os.Remove; _ = remove("a")`, 1},
		{"renamed import", `sys "golang.org/x/sys/unix"`, `_ = sys.Linkat(0, "a", 0, "b", 0)`, 1},
		{"dot import", `. "os"`, `_ = Remove("a")`, 1},
		{"two", `"syscall"`, `_, _ = syscall.Unlink("a"), syscall.Rmdir("b")`, 2},
		{"reading", `"os"`, `f, err := os.Open("a"); _, _ = f, err`, 0},
		{"writing", `"os"`, `f, err := os.OpenFile("a", os.O_RDWR, 0); _, _ = f, err`, 0},
		{"another Remove", `"container/list"`, `list.New().Remove(nil)`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := "package a\n\nimport " + test.imp + "\n\nfunc f() { " + test.code + " }\n"
			wantFindings(t, checkNames, "fstree/a.go", text, test.n)
			wantFindings(t, checkNames, "internal/durable/a.go", text, 0)
			wantFindings(t, checkNames, "examples/a/a.go", text, 0)
		})
	}
}

func TestNamesAreSorted(t *testing.T) {
	for pkg, names := range naming {
		if !slices.IsSortedFunc(names, strings.Compare) {
			t.Errorf("names of %s are not sorted", pkg)
		}
	}
}
