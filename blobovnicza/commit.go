package blobovnicza

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/groupcommit"
)

const (
	// groupOps and groupBytes bound one commit. More than a thousand waiting callers gain nothing from one
	// sync, and what a group writes after a crash is torn or whole at once.
	groupOps   = 1024
	groupBytes = 4 << 20
)

// writer is the state of a leaf's committer. Only the leader touches it, and replay before the first one.
type writer struct {
	commit   uint64       // number of the last attempt
	synced   int64        // the active file is synced up to here
	next     uint32       // number of the next file
	limit    int64        // bytes at which the active file is full
	zeroed   atomic.Int64 // the active file has zeros up to here, or 0
	noRoom   bool         // zeroing ahead failed
	unproven bool         // records were written since the last manifest
	failed   error        // why the active file takes no writes; the next file lifts it
	broken   atomic.Bool  // failed is set; for the eyes of callers

	out  appender
	ops  []*op               // accepted of the group
	keys map[uint64]struct{} // theirs
}

// request is what one caller commits: a record, or the records of a batch for this leaf.
type request struct {
	ops    []op
	one    [1]op
	queued time.Time      // zero without a Commit hook
	led    []commitReport // of the commits that this request's caller led
}

// commitReport is what the Commit hook is told.
type commitReport struct {
	ops   int
	bytes int64
	wait  time.Duration
	sync  time.Duration
}

// op is one record to write.
type op struct {
	hdr   header // the caller fills kind, address and length
	key   uint64
	data  []byte
	found hit // what the caller's look-up told; the record is written only if that still holds

	off   int64 // where it was written
	stale bool  // refused: look again
	err   error
}

// commitGroup is the commit function of the leaf: write, sync, publish.
func (l *leaf) commitGroup(group []*groupcommit.Op[*request]) (err error) {
	begin := time.Now()
	if l.failed != nil {
		if err := l.startNext(); err != nil {
			return blobstor.Failed(errors.Join(l.failed, err))
		}
	}
	ops, full := l.accept(group)
	if len(ops) == 0 {
		if full {
			err = l.startNext()
		}
		return err
	}
	spent, err := l.store(ops)
	if noSpace(err) {
		if ops = refusePuts(ops, err); len(ops) > 0 {
			spent, err = l.store(ops)
		}
	}
	if err != nil {
		return err
	}
	l.publish(ops)
	l.note(group[0].Value, commitReport{len(ops), l.out.written, begin.Sub(group[0].Value.queued), spent})
	return nil
}

// accept picks the operations whose look-up still holds: the active file's index says what it said then, and no
// operation before it in the group has the same key. All others are stale, and so are those for which the
// active file has no room.
func (l *leaf) accept(group []*groupcommit.Op[*request]) (ops []*op, full bool) {
	f := l.active()
	if l.keys == nil {
		l.keys = map[uint64]struct{}{} // without a size: to clear a large one costs more than a small group
	}
	clear(l.keys)
	ops = l.ops[:0]
	end, records := f.end.Load(), f.records.Load()
	for _, g := range group {
		for i := range g.Value.ops {
			o := &g.Value.ops[i]
			_, touched := l.keys[o.key]
			o.stale = touched || o.found.active != f.number || o.found.entry != f.index.get(o.key, &o.hdr.address)
			if o.stale {
				continue
			}
			end += o.hdr.size()
			if records++; records > 2 && (end > l.limit || records > l.recordLimit()) { // manifest, and one at least
				o.stale, full = true, true
				continue
			}
			l.keys[o.key] = struct{}{}
			ops = append(ops, o)
		}
	}
	l.ops = ops
	return ops, full
}

// recordLimit bounds the index of a file as its size bounds the data: 1 Mi records per 4 GiB.
func (l *leaf) recordLimit() int64 { return max(256<<10, l.limit>>12) }

// store writes and syncs one commit. On error nothing of it is, or ever will be, there.
func (l *leaf) store(ops []*op) (spent time.Duration, err error) {
	f := l.active()
	start := f.end.Load()
	l.commit++
	l.unproven = true
	end, err := l.write(f, ops, start)
	if err != nil {
		return 0, l.cutBack(f, start, err)
	}
	if l.tree.opts.NoSync {
		f.end.Store(end)
		return 0, nil
	}
	begin := time.Now()
	if err := f.f.Datasync(); err != nil {
		return 0, l.revoke(err)
	}
	l.synced = end
	f.end.Store(end)
	return time.Since(begin), nil
}

// write encodes the records and writes them from off on. It returns where they end.
func (l *leaf) write(f *file, ops []*op, off int64) (end int64, err error) {
	out := &l.out
	out.start(f.f, off)
	for _, o := range ops {
		h := &o.hdr
		h.synced, h.commit, h.replaced = l.synced, l.commit, o.found.newest
		o.off = off
		if err := out.record(h, f.seed, off, o.data); err != nil {
			return 0, err
		}
		off += h.size()
	}
	return off, out.flush()
}

// cutBack undoes a write that failed and returns its cause. If that cannot be done the file is given up.
func (l *leaf) cutBack(f *file, start int64, cause error) error {
	err := f.f.Truncate(start)
	l.zeroed.Store(0)
	if err == nil && !l.tree.opts.NoSync {
		err = f.f.Datasync()
	}
	if err != nil {
		return l.revoke(errors.Join(cause, err))
	}
	return cause
}

// revoke gives the active file up: the next one's manifest says where it ends, before the failed commit. Until
// there is a next one the leaf takes no writes.
func (l *leaf) revoke(cause error) error {
	l.giveUp(cause)
	if err := l.startNext(); err != nil {
		l.tree.log.Error("leaf takes no writes", "leaf", l.id, "err", errors.Join(cause, err))
	}
	if errors.Is(cause, blobstor.ErrFailed) {
		return cause
	}
	return blobstor.Failed(cause)
}

// publish makes durable records visible.
func (l *leaf) publish(ops []*op) {
	files := *l.files.Load()
	f := files[len(files)-1]
	for _, o := range ops {
		f.records.Add(1)
		o.found.stored = place{file: f.number, off: o.off, length: o.hdr.length}
		l.apply(files, f, o.key, &o.hdr, o.off, o.found.clash)
	}
}

// refusePuts fails the puts of a commit for want of space and returns the rest: a tombstone may still fit.
func refusePuts(ops []*op, err error) []*op {
	rest := ops[:0]
	for _, o := range ops {
		if o.hdr.kind == kindPut {
			o.err = err
			continue
		}
		rest = append(rest, o)
	}
	if len(rest) == len(ops) {
		return nil // the tombstones themselves did not fit
	}
	return rest
}

func noSpace(err error) bool {
	return err != nil && errors.Is(&blobstor.Error{Err: err}, blobstor.ErrNoSpace) && !errors.Is(err, blobstor.ErrFailed)
}

// note counts a commit, and leaves it with the leader's request if there is a hook to be told.
func (l *leaf) note(leader *request, r commitReport) {
	t := l.tree
	t.commits.Add(1)
	t.records.Add(int64(r.ops))
	t.syncTime.Add(int64(r.sync))
	if t.opts.Hooks.Commit != nil {
		leader.led = append(leader.led, r)
	}
}

// report tells the Commit hook of the commits that a caller led, when it has left the store.
func (t *Tree) report(req *request) {
	for _, r := range req.led {
		t.opts.Hooks.Commit(r.ops, r.bytes, r.wait, r.sync)
	}
}
