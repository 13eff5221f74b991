package bolt

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"

	"github.com/granary-store/granary/internal/durable"
)

const ballastName = "ballast"

// ballast is a file that holds room on the disk, and is removed when a commit finds none. All but missing belongs to
// the writer.
type ballast struct {
	size    int64 // 0 or less: there is none
	missing atomic.Bool
	log     *slog.Logger
}

// open takes over the file that is there, or makes it.
func (b *ballast) open(d *durable.Dir, size int64, log *slog.Logger) {
	b.size, b.log = size, log
	if size <= 0 {
		if err := d.Remove(ballastName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("ballast stays", "err", err)
		}
		return
	}
	if have, err := d.Stat(ballastName); err != nil || have != size {
		b.missing.Store(true)
		b.retake(d)
	}
}

// retake makes a missing ballast if there is room for it, and as much again: else the next commit that grows the file
// would meet a full disk at once. What goes wrong is only logged: the next commit tries again.
func (b *ballast) retake(d *durable.Dir) {
	if !b.missing.Load() {
		return
	}
	if free, err := d.Free(); err != nil || free < 2*b.size {
		return
	}
	if err := b.make(d); err != nil {
		b.log.Warn("ballast not retaken", "err", err)
		return
	}
	b.missing.Store(false)
}

// make reserves the file before it gets its name, so one that has its name and length is whole. The name is not
// synced: if it is lost Open makes it again.
func (b *ballast) make(d *durable.Dir) error {
	t, err := d.Temp()
	if err != nil {
		return err
	}
	if err = t.Reserve(b.size); err == nil {
		err = t.Datasync()
	}
	if err == nil {
		err = t.Replace(ballastName)
	}
	if err != nil {
		return errors.Join(err, t.Discard())
	}
	return t.Close()
}

// drop gives the room to the commits that follow.
func (b *ballast) drop(d *durable.Dir) {
	if b.size <= 0 {
		return
	}
	b.missing.Store(true)
	if err := d.Remove(ballastName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Error("ballast not given up", "err", err)
	}
}
