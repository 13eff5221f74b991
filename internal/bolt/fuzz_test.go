package bolt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// FuzzFile damages a file with edits of 4 bytes, a page, an offset of two and a value, and gives the metas right
// checksums. The walk must end in a typed error or in nil, and then bbolt must be able to read the file.
func FuzzFile(f *testing.F) {
	sound := sampleOf(f, 100)
	f.Logf("%d pages", len(sound)/pageSize)
	dir := sound.store(f, "")
	f.Add([]byte{})
	f.Add([]byte{0, 0, 32, 1})
	f.Add([]byte{3, 0, 10, 255, 3, 0, 11, 255})
	f.Add([]byte{4, 0, 12, 1})
	f.Fuzz(func(t *testing.T, edits []byte) {
		m := sound.clone()
		for ; len(edits) >= 4; edits = edits[4:] {
			m.at(uint64(edits[0]) % m.meta(t).end)[(int(edits[1])<<8|int(edits[2]))%pageSize] = edits[3]
			m.seal()
			if _, _, err := readMetas(bytes.NewReader(m), int64(len(m))); err != nil {
				break
			}
		}
		for _, trusted := range []trust{trustClosed, trustCommits} {
			typed(t, verifyFile(bytes.NewReader(m), int64(len(m)), trusted))
		}
		err := verifyFile(bytes.NewReader(m), int64(len(m)), trustNothing)
		typed(t, err)
		if err != nil {
			return
		}
		check(t, os.WriteFile(filepath.Join(dir, fileName), m, 0o600))
		os.Remove(filepath.Join(dir, markClean))
		db, err := Open(dir, options(Options{NoSync: true}))
		if err != nil {
			typed(t, err) // A bucket may be missing.
			return
		}
		defer db.Close()
		contents(t, db, apples)
		contents(t, db, pears)
		if err := db.Update(putting(0, 120, 10)); err != nil {
			t.Fatal(err)
		}
	})
}

func typed(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, blobstor.ErrCorrupt) && !errors.Is(err, blobstor.ErrLayout) {
		t.Fatal(err)
	}
}
