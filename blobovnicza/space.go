package blobovnicza

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
)

const relaxFree = 4 << 20

var (
	errQuota = &refusal{"the store has reached its size limit"}
	errTight = &refusal{"the disk is full"}
)

// refusal is a reason to match ErrNoSpace.
type refusal struct{ text string }

func (r *refusal) Error() string        { return blobstor.ErrNoSpace.Error() + ": " + r.text }
func (r *refusal) Is(target error) bool { return target == blobstor.ErrNoSpace }
func (r *refusal) Fault() bool          { return false }

// need says what a leaf's next file is for.
type need int

const (
	never   need = iota // there is no need
	normal              // puts, which a full disk may refuse
	copying             // compaction, which may use the spare
	urgent              // tombstones, the revocation of a failed commit: whatever there is
)

func (o *op) need() need {
	switch {
	case o.isPut():
		return normal
	case o.move: // the reserve is for deletes
		return copying
	}
	return urgent
}

// storeWithoutRoom deals with a commit that met a full disk: its puts fail, the others get what space there is.
// Those that are stale are left out of what it returns.
func (l *leaf) storeWithoutRoom(ops []*op, cause error) ([]*op, time.Duration, error) {
	if errors.Is(cause, syscall.EFBIG) {
		return nil, 0, l.endTooBig(ops, cause)
	}
	l.tree.pressed.Store(true)
	if slices.ContainsFunc(ops, func(o *op) bool { return !o.move }) { // else the keeper would wake itself, for ever
		l.tree.wakeKeeper()
	}
	rest := refusePuts(ops, cause)
	if len(rest) == 0 {
		return nil, 0, nil
	}
	if len(rest) < len(ops) {
		spent, err := l.store(rest)
		if !noSpace(err) {
			return rest, spent, err
		}
	}
	markStale(rest)
	l.refused = true
	defer func() { l.refused = false }()
	return nil, 0, l.startNext(neediest(rest))
}

// endTooBig deals with a commit that the system does not let the file grow by: the next file takes it. If that is a
// new file already, the largest put fails, and the others are tried again.
func (l *leaf) endTooBig(ops []*op, cause error) error {
	markStale(ops)
	if l.held.records.Load() > 1 {
		return l.startNext(neediest(ops))
	}
	var largest *op
	for _, o := range ops {
		if o.isPut() && (largest == nil || o.hdr.length > largest.hdr.length) {
			largest = o
		}
	}
	if largest == nil {
		return cause
	}
	largest.err = cause
	return nil
}

func neediest(ops []*op) (most need) {
	for _, o := range ops {
		most = max(most, o.need())
	}
	return most
}

// refusePuts fails the puts of a commit for want of space and returns the rest.
func refusePuts(ops []*op, err error) []*op {
	rest := ops[:0:len(ops)]
	for _, o := range ops {
		if o.isPut() {
			o.err = err
			continue
		}
		rest = append(rest, o)
	}
	return rest
}

func markStale(ops []*op) {
	for _, o := range ops {
		o.stale = true
	}
}

// next makes the leaf's next file. If it is one that was set aside, space is what it has. Where the disk has just
// refused a write, a new file would only take the last of it.
func (l *leaf) next(list []listed, how need) (f *file, space int64, err error) {
	t := l.tree
	var copies int64 // for what would come to nothing, neither the last of the disk nor the spare is used
	if victim := l.victim.Load(); how == copying && victim != nil {
		copies = victim.toCopy()
	}
	create := func(dir *durable.Dir) error {
		if free, err := dir.Free(); err == nil && free < copies {
			return errTight
		}
		f, err = l.create(dir, list)
		return err
	}
	reserve := func(dir *durable.Dir) error {
		f, space, err = l.promote(&l.reserve, dir, dir, reserveName, list)
		return err
	}
	spare := func(dir *durable.Dir) error {
		if t.spare.room() < copies {
			return errTight
		}
		f, space, err = l.promote(&t.spare, t.store.Dir, dir, spareName, list)
		return err
	}
	ways := []func(*durable.Dir) error{create}
	switch {
	case how == copying && l.refused:
		ways = append(ways[:0], spare)
	case how == copying:
		ways = append(ways, spare)
	case how == urgent && l.refused:
		ways = append(ways[:0], reserve, spare, create)
	case how == urgent:
		ways = append(ways, reserve, spare)
	}
	err = l.inDir(func(dir *durable.Dir) error { return l.firstWay(dir, ways) })
	return f, space, err
}

// firstWay tries one way after the other, as long as it is space that they lack. The error is that of the first.
func (l *leaf) firstWay(dir *durable.Dir, ways []func(*durable.Dir) error) (first error) {
	for _, way := range ways {
		err := way(dir)
		if err == nil {
			return nil
		}
		if first = firstOf(first, err); !noSpace(first) {
			break
		}
	}
	return first
}

// relax tries to let puts in again: if there is room for some of them, what was set aside is replaced first.
func (l *leaf) relax() {
	if !l.tree.hasRoom() {
		return
	}
	err := errors.Join(l.ensureReserve(), l.tree.ensureSpare())
	if err == nil && l.tree.hasRoom() {
		err = l.startNext(normal)
	}
	if err != nil {
		l.tree.log.Debug("disk is still full", "leaf", l.id, "err", err)
	}
}

// hasRoom reports whether the disk has room for so many puts that it is worth a new file.
func (t *Tree) hasRoom() bool {
	free, err := t.store.Dir.Free()
	return err == nil && free >= min(t.fileLimit()/4, relaxFree)
}

// mayGrow reports whether a leaf's active file may grow by n bytes of puts under the quota. The last part of it is
// left for compaction.
func (t *Tree) mayGrow(n int64) bool {
	limit := t.opts.MaxSize
	if limit == 0 {
		return true
	}
	if room := limit - t.headroom(); t.used.Load()+n <= room {
		return true
	}
	t.pressed.Store(true)
	t.wakeKeeper()
	return false
}

// shortOfSpace reports whether puts are refused, or soon will be.
func (t *Tree) shortOfSpace() bool {
	const near = 2 // files
	limit := t.opts.MaxSize
	return t.pressed.Load() || limit > 0 && t.used.Load() > limit-t.headroom()-near*t.fileLimit()
}

// headroom is the part of the quota that only compaction and tombstones use.
func (t *Tree) headroom() int64 { return min(t.fileLimit(), t.opts.MaxSize/16) }
