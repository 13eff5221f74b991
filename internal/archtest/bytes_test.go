package archtest

import (
	"path"
	"slices"
	"testing"
)

// byteFiles are the names of files that own bytes on disk: the only ones that know an offset or a byte order.
// Whoever reviews a format reads them and nothing else. The reference storage in memory owns its locations.
var byteFiles = []string{
	"bits.go",
	"blobstor/storagetest/memory.go",
	"descriptor.go",
	"encode.go",
	"envelope.go",
	"footer.go",
	"format.go",
	"frame.go",
	"index.go",
	"keys.go",
	"location.go",
	"manifest.go",
	"number.go",
	"record.go",
}

// checkBytes keeps encoding/binary out of all other files. Examples are programs, they may.
func checkBytes(s *source) []string {
	if s.isExample() || slices.Contains(byteFiles, path.Base(s.path)) || slices.Contains(byteFiles, s.path) {
		return nil
	}
	if slices.Contains(s.imports(), "encoding/binary") {
		return []string{s.path + ": imports encoding/binary, but does not own bytes"}
	}
	return nil
}

func TestBytes(t *testing.T) { checkAll(t, checkBytes) }

func TestBytesCanFail(t *testing.T) {
	const text = "package a\n\nimport enc \"encoding/binary\"\n\nvar _ = enc.BigEndian\n"
	wantFindings(t, checkBytes, "fstree/tree.go", text, 1)
	wantFindings(t, checkBytes, "blobstor/storagetest/suite.go", text, 1)
	wantFindings(t, checkBytes, "fstree/memory.go", text, 1)
	wantFindings(t, checkBytes, "fstree/footer.go", text, 0)
	wantFindings(t, checkBytes, "examples/plugin/main.go", text, 0)
}
