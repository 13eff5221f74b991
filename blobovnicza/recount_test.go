package blobovnicza

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// recount compares every counter of every file with what the records say, and the bytes used with the disk.
func recount(t testing.TB, s *Tree) {
	t.Helper()
	for _, l := range s.leaves {
		check(t, l.use())
		recountLeaf(t, l)
	}
}

func recountLeaf(t testing.TB, l *leaf) {
	t.Helper()
	files := l.version.Load().files
	newest := map[blobstor.Address]place{}
	scans := map[*file]*scan{}
	for _, f := range files {
		if f.data.name == "" {
			continue
		}
		s, err := scanFile(f, 0, f.end.Load(), 0)
		check(t, err)
		scans[f] = s
		for _, r := range s.records {
			if r.kind == kindPut || r.kind == kindTombstone {
				newest[r.address] = makeEntry(r.kind, r.off, r.length).in(f.number)
			}
		}
	}
	for f, s := range scans {
		want := f.number
		var got, is listed
		got = f.listing()
		is = listed{number: want, end: got.end, records: uint32(len(s.records))}
		for _, r := range s.records {
			switch live := newest[r.address] == makeEntry(r.kind, r.off, r.length).in(f.number); {
			case r.kind == kindManifest:
			case r.kind == kindPut && live:
				is.objects++
				is.live += r.size()
			case r.kind == kindTombstone && live:
				is.tombstones++
			default:
				is.dead += r.size()
			}
		}
		if got != is {
			t.Errorf("leaf %d: counted %+v, want %+v", l.id, got, is)
		}
	}
}

// onDisk returns how many data files there are below a directory, and the bytes of all files.
func onDisk(t testing.TB, dir string) (files int, size int64) {
	t.Helper()
	check(t, filepath.WalkDir(filepath.Join(dir, treeDir), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, dataSuffix) {
			files++
		}
		size += info.Size()
		return nil
	}))
	if info, err := os.Stat(filepath.Join(dir, spareName)); err == nil {
		size += info.Size()
	}
	return files, size
}
