package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// origin is what a directory and all that is opened below it share.
type origin struct {
	tap   Tap
	nonce string      // 16 hex digits: temporaries that bear it are this open's, all others are stale
	named bool        // temporaries get names even where the system could do without
	perm  fs.FileMode // of new files
	seq   atomic.Uint64

	probe sync.Mutex // serialises finding out the mode
	mode  atomic.Uint32
}

func newOrigin(tap Tap) *origin {
	var nonce [8]byte
	rand.Read(nonce[:]) // It never fails: the program would have ended.
	return &origin{tap: tap, nonce: hex.EncodeToString(nonce[:]), perm: 0o600}
}

// dirPerm returns the permissions of new directories: who may read one may also enter it.
func (o *origin) dirPerm() fs.FileMode { return o.perm | o.perm&0o444>>2 }

const tempPrefix = "tmp-"

// tempName returns a name that no other temporary has: tmp-<nonce>-<number>.
func (o *origin) tempName() string {
	var room [len(tempPrefix) + 33]byte
	b := append(append(append(room[:0], tempPrefix...), o.nonce...), '-')
	return string(strconv.AppendUint(b, o.seq.Add(1), 16))
}

// isTemp reports whether name is one that tempName makes, and whose nonce it bears.
func isTemp(name string) (nonce string, ok bool) {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	if !ok || len(rest) < 18 || rest[16] != '-' {
		return "", false
	}
	const digits = "0123456789abcdef"
	if strings.Trim(rest[:16], digits) != "" || strings.Trim(rest[17:], digits) != "" {
		return "", false
	}
	return rest[:16], true
}

// Temp is a file that is being written and has no final name yet. It is not safe for concurrent use. It must be
// ended by Link, Replace or Discard; after a successful one of them Close just releases the file.
type Temp struct {
	*File
	inDir string // its temporary name in d, "" if it has none
}

// Temp makes an empty file without a final name. If the process dies the file is gone, or has a temporary name
// that [Dir.Sweep] removes.
func (d *Dir) Temp() (*Temp, error) {
	name := d.o.tempName()
	if err := d.o.before(OpCreate, d, name, nil); err != nil {
		return nil, err
	}
	t, err := d.newTemp(name)
	if err != nil {
		return nil, pathError("create", "a temporary file", err)
	}
	d.o.after(OpCreate, d, name, t.File)
	return t, nil
}

func (d *Dir) namedTemp(name string) (*Temp, error) {
	f := &File{o: d.o, d: d, name: name}
	if err := d.h.open(name, exclusive, f); err != nil {
		return nil, err
	}
	return &Temp{File: f, inDir: name}, nil
}

// Link gives the file its final name in its directory, in one step and without replacing: if the name is there
// the error matches fs.ErrExist. The caller calls Datasync before and Dir.Sync after.
func (t *Temp) Link(name string) error { return t.LinkIn(t.d, name) }

// LinkIn is Link for another directory of the same OpenDir or OpenStore; that directory is the one to sync.
func (t *Temp) LinkIn(d *Dir, name string) error {
	if err := errors.Join(checkName(name), t.Err()); err != nil {
		return err
	}
	if err := t.o.before(OpLink, d, name, t.File); err != nil {
		return err
	}
	if err := t.link(d, name); err != nil {
		return pathError("link", name, err)
	}
	t.name, t.d = name, d
	t.o.after(OpLink, d, name, t.File)
	return nil
}

// Replace gives the file its final name in its directory, in one step, taking the place of what had it.
func (t *Temp) Replace(name string) error { return t.ReplaceIn(t.d, name) }

// ReplaceIn is Replace for another directory, as LinkIn is for Link.
func (t *Temp) ReplaceIn(d *Dir, name string) error {
	if t.inDir == "" || t.d != d {
		temp := t.o.tempName()
		if err := t.LinkIn(d, temp); err != nil {
			return err
		}
		if err := d.Rename(temp, name); err != nil {
			return errors.Join(err, d.Remove(temp))
		}
		t.name = name
		return nil
	}
	if err := t.Err(); err != nil {
		return err
	}
	if err := d.Rename(t.inDir, name); err != nil {
		return err
	}
	t.inDir, t.name = "", name
	return nil
}

// Discard removes the file. It is for Temps that got no name.
func (t *Temp) Discard() error {
	err := t.Close()
	if t.inDir != "" {
		err = errors.Join(err, t.d.Remove(t.inDir))
		t.inDir = ""
	}
	return err
}

// link moves or links the file to its final name. Where the temporary name cannot be removed a sweep does it.
func (t *Temp) link(d *Dir, name string) error {
	if t.inDir == "" {
		return t.linkUnnamed(d, name)
	}
	if _, err := t.d.h.renameNew(t.inDir, d.h, name); err != nil {
		return err
	}
	t.inDir = ""
	return nil
}

// WriteFile writes a whole small file under name, replacing what was there. When it returns nil the file is
// durable; otherwise either the old content is there or the new.
func (d *Dir) WriteFile(name string, data []byte) error {
	t, err := d.Temp()
	if err != nil {
		return err
	}
	if _, err = t.Write(data); err == nil {
		err = t.Datasync()
	}
	if err == nil {
		err = t.Replace(name)
	}
	if err != nil {
		return errors.Join(err, t.Discard())
	}
	return errors.Join(d.Sync(), t.Close())
}

// Sweep removes the temporaries that another open left behind, and reports how many. It must run only while no
// other process writes here.
func (d *Dir) Sweep() (int, error) {
	names, err := d.Names()
	swept := 0
	for _, name := range names {
		nonce, ok := isTemp(name)
		if !ok || nonce == d.o.nonce {
			continue
		}
		if e := d.Remove(name); e != nil {
			err = errors.Join(err, e)
			continue
		}
		swept++
	}
	return swept, err
}
