package archtest

import (
	"slices"
	"strings"
	"testing"
)

// rule says what the files of a package may import.
type rule struct {
	inside  []string // packages of this module
	outside []string // other modules, by prefix; the standard library is always allowed
}

const (
	base58    = "github.com/mr-tron/base58"
	bbolt     = "go.etcd.io/bbolt"
	compress  = "github.com/klauspost/compress"
	neoGo     = "github.com/nspcc-dev/neo-go"
	sys       = "golang.org/x/sys"
	xorfilter = "github.com/FastFilter/xorfilter"
)

// table is the import law. Storages import the contract and never each other; the program wires them. A package
// without a row may not exist: add the row, and argue for it.
var table = map[string]rule{
	".":                    {},
	"blobstor":             {outside: []string{compress, base58}},
	"blobstor/storagetest": {inside: []string{"blobstor"}},
	"fstree":               {inside: []string{"blobstor", "internal/durable"}, outside: []string{sys}},
	"blobovnicza": {
		inside:  []string{"blobstor", "internal/durable", "internal/groupcommit"},
		outside: []string{xorfilter, sys},
	},
	"metabase":          {inside: []string{"blobstor", "internal/bolt", "internal/groupcommit"}},
	"metabase/neofs":    {inside: []string{"blobstor", "metabase"}, outside: []string{neoGo}},
	"metabase/pilorama": {inside: []string{"blobstor", "internal/bolt", "internal/groupcommit"}},
	"tsz":               {},
	"internal/archtest": {},
	// These two import blobstor only for the sentinels of its errors.
	"internal/bolt":        {inside: []string{"blobstor", "internal/durable"}, outside: []string{bbolt}},
	"internal/durable":     {inside: []string{"blobstor"}, outside: []string{sys}},
	"internal/groupcommit": {},
}

// testOnly are packages that only tests import; what they import is their own affair.
var testOnly = []string{"internal/crashtest", "internal/torture"}

// checkImports holds a file to the table. Programs under examples use what users can use; one with heavy
// dependencies is a module of its own, so that the module's go.mod stays small.
func checkImports(s *source) []string {
	if slices.Contains(testOnly, s.pkg) {
		return nil
	}
	row, ok := table[s.pkg]
	if !ok && !s.isExample() {
		return []string{s.path + ": package " + s.pkg + " has no row in the import table"}
	}
	var found []string
	for _, imp := range s.imports() {
		if !mayImport(s, row, imp) {
			found = append(found, s.path+": may not import "+imp)
		}
	}
	return found
}

func mayImport(s *source, row rule, imp string) bool {
	inside, isInside := strings.CutPrefix(imp, module)
	switch {
	case isInside && s.isExample():
		return !strings.HasPrefix(inside, "/internal/")
	case isInside:
		return slices.Contains(row.inside, strings.TrimPrefix(inside, "/"))
	case !strings.Contains(strings.Split(imp, "/")[0], "."):
		return true // the standard library: its first element has no dot
	case s.isExample():
		return s.nested
	}
	return slices.ContainsFunc(row.outside, func(m string) bool {
		return imp == m || strings.HasPrefix(imp, m+"/")
	})
}

func TestImports(t *testing.T) { checkAll(t, checkImports) }

func TestImportsCanFail(t *testing.T) {
	for _, test := range []struct {
		name, at, imp string
		n             int
	}{
		{"sibling", "fstree/a.go", module + "/blobovnicza", 1},
		{"upwards", "blobstor/a.go", module + "/fstree", 1},
		{"root", "blobstor/a.go", module, 1},
		{"internal of another", "fstree/a.go", module + "/internal/groupcommit", 1},
		{"test package", "fstree/a.go", module + "/blobstor/storagetest", 1},
		{"other module", "blobstor/a.go", bbolt, 1},
		{"prefix of a name", "fstree/a.go", sys + "tem/unix", 1},
		{"no row", "cache/a.go", "fmt", 1},
		{"example of internals", "examples/a/a.go", module + "/internal/durable", 1},
		{"heavy example", "examples/a/a.go", bbolt, 1},
		{"allowed", "fstree/a.go", module + "/blobstor", 0},
		{"allowed module", "fstree/a.go", sys + "/unix", 0},
		{"standard library", "tsz/a.go", "math/bits", 0},
		{"example", "examples/a/a.go", module + "/fstree", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantFindings(t, checkImports, test.at, "package a\n\nimport _ \""+test.imp+"\"\n", test.n)
		})
	}
}
