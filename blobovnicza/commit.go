package blobovnicza

import (
	"errors"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/durable"
	"github.com/granary-store/granary/internal/groupcommit"
)

const (
	// groupOps and groupBytes bound one commit. More than a thousand waiting callers gain nothing from one
	// sync, and what a group writes after a crash is torn or whole at once.
	groupOps   = 1024
	groupBytes = 8 << 20
)

// writer is the state of a leaf's committer. Only the leader touches it, and replay before the first one.
type writer struct {
	commit      uint64        // number of the last attempt
	synced      int64         // the active file is synced up to here
	nextNumber  uint32        // of the next file
	limit       int64         // bytes at which the active file is full
	namesSynced bool          // the names that Open found are durable
	tight       bool          // the disk is full, and what was set aside for that is in use: no puts
	refused     bool          // the disk has just refused a write
	held        *file         // the active file, in a leader's turn
	w           *durable.File // it, open
	zeroed      atomic.Int64  // the active file has zeros up to here, or 0
	noRoom      bool          // zeroing ahead failed
	unproven    bool          // records were written since the last manifest
	indexed     int64         // the active file's index file covers as much of it
	failed      error         // why the active file takes no writes; the next file lifts it
	broken      atomic.Bool   // failed is set; for the eyes of callers

	out  appender
	ops  []*op               // accepted of the group
	keys map[uint64]struct{} // theirs
}

// request is what one caller commits: a record, or the records of a batch for this leaf.
type request struct {
	ops    []op
	task   func() error // instead of operations: something to do in the leader's turn
	look   func()       // instead of either: it only looks at the leaf between two commits, whatever state that is in
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
	move  bool // compaction's: a put or tombstone that stays what it is
	found hit  // what the caller's look-up told; the record is written only if that still holds

	off   int64 // where it was written
	stale bool  // refused: look again
	err   error
}

// commitGroup is the commit function of the leaf: write, sync, publish.
func (l *leaf) commitGroup(group []*groupcommit.Op[*request]) error {
	if group = lookAround(group); len(group) == 0 {
		return nil
	}
	if l.failed != nil {
		if err := l.startNext(urgent); err != nil {
			return blobstor.Failed(errors.Join(l.failed, err))
		}
	}
	if err := l.takeActive(); err != nil {
		return err
	}
	if !l.namesSynced && !l.tree.opts.NoSync {
		if err := l.inDir(l.syncNames); err != nil {
			return err
		}
	}
	err := l.commitOps(group)
	for _, g := range group {
		switch {
		case g.Value.task == nil:
		case l.failed != nil: // nothing may be written into the file
			g.Err = blobstor.Failed(l.failed)
		case err == nil:
			g.Err = g.Value.task()
		}
	}
	return err
}

// afterGroup ends the leader's turn.
func (l *leaf) afterGroup() {
	if l.held != nil {
		l.zeroAhead()
		l.releaseActive()
	}
}

// takeActive opens the active file for the rest of the leader's turn.
func (l *leaf) takeActive() (err error) {
	f := l.active()
	if l.held == f {
		return nil
	}
	l.releaseActive()
	l.w, err = f.data.pin()
	if err == nil {
		l.held = f
	}
	return err
}

func (l *leaf) releaseActive() {
	if l.held != nil {
		l.held.data.unpin()
		l.held, l.w = nil, nil
	}
}

func (l *leaf) commitOps(group []*groupcommit.Op[*request]) error {
	begin := time.Now()
	if l.tight && hasPuts(group) {
		l.relax()
	}
	ops, full := l.accept(group)
	if len(ops) == 0 {
		if full == never {
			return nil
		}
		return l.startNext(full)
	}
	before := l.held.end.Load()
	spent, err := l.store(ops)
	if noSpace(err) {
		if ops, spent, err = l.storeWithoutRoom(ops, err); len(ops) == 0 {
			return err
		}
	}
	if err != nil {
		return err
	}
	l.publish(ops)
	if bits.Len64(uint64(before)) != bits.Len64(uint64(l.held.end.Load())) {
		l.tree.wakeKeeper() // the file may have outgrown the spare
	}
	l.note(group[0].Value, commitReport{len(ops), l.out.written, begin.Sub(group[0].Value.queued), spent})
	return nil
}

func hasPuts(group []*groupcommit.Op[*request]) bool {
	for _, g := range group {
		for i := range g.Value.ops {
			if g.Value.ops[i].isPut() {
				return true
			}
		}
	}
	return false
}

// isPut reports whether the operation wants room for more than there was before: it is refused first.
func (o *op) isPut() bool { return o.hdr.kind == kindPut && !o.move }

// accept picks the operations whose look-up still holds: the active file's index says what it said then, and no
// operation before it in the group has the same key. All others are stale, and so are those for which the
// active file has no room: full says how badly they need the next one. Puts beyond the quota are refused, and all that
// came too late for a store that is read-only now.
func (l *leaf) accept(group []*groupcommit.Op[*request]) (ops []*op, full need) {
	f := l.active()
	if l.keys == nil {
		l.keys = map[uint64]struct{}{} // without a size: to clear a large one costs more than a small group
	}
	clear(l.keys)
	ops = l.ops[:0]
	start, records := f.end.Load(), f.records.Load()
	end := start
	for _, g := range group {
		for i := range g.Value.ops {
			o := &g.Value.ops[i]
			_, touched := l.keys[o.key]
			o.stale = touched || o.found.active != f.number || o.found.entry != f.recent().get(o.key, &o.hdr.address)
			if o.stale {
				continue
			}
			if o.err = l.refusal(o, end+o.hdr.size()-start); o.err != nil {
				continue
			}
			end += o.hdr.size()
			if records++; records > 2 && (end > l.limit || records > l.recordLimit()) { // manifest, and one at least
				o.stale, full = true, max(full, o.need())
				continue
			}
			l.keys[o.key] = struct{}{}
			ops = append(ops, o)
		}
	}
	l.ops = ops
	return ops, full
}

// refusal is why an operation may not be done that lets the active file grow by that much in all, nil if it may. That
// the store is read-only is asked again here, for the call may have spent a while with its look-up.
func (l *leaf) refusal(o *op, growth int64) error {
	switch {
	case o.move: // SetReadOnly waits for it
		return nil
	case l.tree.readOnly.Load():
		return blobstor.ErrReadOnly
	case !o.isPut():
		return nil
	case l.tight:
		return errTight
	case !l.tree.mayGrow(growth):
		return errQuota
	}
	return nil
}

// recordLimit bounds the index of a file as its size bounds the data: 1 Mi records per 4 GiB.
func (l *leaf) recordLimit() int64 {
	if n := l.tree.opts.FileRecords; n > 0 {
		return int64(n)
	}
	return max(256<<10, l.limit>>12)
}

// store writes and syncs one commit. On error nothing of it is, or ever will be, there.
func (l *leaf) store(ops []*op) (spent time.Duration, err error) {
	f := l.held
	start := f.end.Load()
	l.commit++
	l.unproven = true
	end, err := l.write(f, ops, start)
	if err != nil {
		return 0, l.cutBack(start, err)
	}
	if l.tree.opts.NoSync {
		l.extend(f, end)
		return 0, nil
	}
	begin := time.Now()
	if err := l.w.Datasync(); err != nil {
		return 0, l.revoke(err)
	}
	l.synced = end
	l.extend(f, end)
	return time.Since(begin), nil
}

// extend moves the end of the active file, for readers and for the quota.
func (l *leaf) extend(f *file, end int64) {
	l.tree.used.Add(end - f.end.Load())
	f.commit.Store(l.commit)
	f.end.Store(end)
}

// write encodes the records and writes them from off on. It returns where they end.
func (l *leaf) write(f *file, ops []*op, off int64) (end int64, err error) {
	out := &l.out
	out.start(l.w, off)
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
func (l *leaf) cutBack(start int64, cause error) error {
	err := l.w.Truncate(start)
	l.zeroed.Store(0)
	if err == nil && !l.tree.opts.NoSync {
		err = l.w.Datasync()
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
	if err := l.startNext(urgent); err != nil {
		l.tree.log.Error("leaf takes no writes", "leaf", l.id, "err", errors.Join(cause, err))
	}
	if errors.Is(cause, blobstor.ErrFailed) {
		return cause
	}
	return blobstor.Failed(cause)
}

// publish makes durable records visible.
func (l *leaf) publish(ops []*op) {
	files := l.version.Load().files
	f := files[len(files)-1]
	for _, o := range ops {
		f.records.Add(1)
		if o.hdr.kind == kindManifest {
			f.manifest.Store(o.off)
			continue
		}
		o.found.stored = place{file: f.number, off: o.off, length: o.hdr.length}
		l.apply(files, f, o.key, &o.hdr, o.off, true)
		l.tree.noticeDead(o.hdr.replaced)
	}
}

func noSpace(err error) bool {
	return err != nil && errors.Is(&blobstor.Error{Err: err}, blobstor.ErrNoSpace) && !errors.Is(err, blobstor.ErrFailed)
}

// note counts a commit, and leaves it with the leader's request if there is a hook to be told.
func (l *leaf) note(leader *request, r commitReport) {
	t := l.tree
	t.commits.Add(1)
	t.records.Add(int64(r.ops))
	t.batches[min(bits.Len(uint(r.ops))-1, len(t.batches)-1)].Add(1)
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
