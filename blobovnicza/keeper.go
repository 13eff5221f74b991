package blobovnicza

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// keeper is the tree's goroutine in the background: it writes index files, sets space aside and compacts.
type keeper struct {
	ctx    context.Context // ends when the tree closes
	cancel context.CancelFunc
	wake   chan struct{}
	done   chan struct{}
}

func (t *Tree) initKeeper() {
	t.keeper.ctx, t.keeper.cancel = context.WithCancel(context.Background())
	t.turns.taken = make(chan struct{}, 1)
	t.keeper.wake, t.keeper.done = make(chan struct{}, 1), make(chan struct{})
}

func (t *Tree) startKeeper() {
	if t.opts.ReadOnly {
		close(t.keeper.done)
		return
	}
	t.wakeKeeper()
	go t.keep()
}

// wakeKeeper tells the keeper that there may be something to do.
func (t *Tree) wakeKeeper() {
	select {
	case t.keeper.wake <- struct{}{}:
	default:
	}
}

// stopKeeper ends what runs in the background, explicit compactions included.
func (t *Tree) stopKeeper() {
	t.keeper.cancel()
	<-t.keeper.done
	t.jobs.Wait()
}

func (t *Tree) keep() {
	defer close(t.keeper.done)
	for {
		select {
		case <-t.keeper.ctx.Done():
			return
		case <-t.keeper.wake:
		}
		if err := t.upkeep(t.keeper.ctx); err != nil && t.keeper.ctx.Err() == nil {
			t.log.Warn("upkeep", "err", err)
			t.tellFault("upkeep", err)
		}
	}
}

// noticeDead wakes the keeper when so much was replaced since it was last that it may be time to compact.
func (t *Tree) noticeDead(p place) {
	if p.file != 0 && t.newlyDead.Add(p.size()) > t.used.Load()/256 {
		t.newlyDead.Store(0)
		t.wakeKeeper()
	}
}

// upkeep does what there is to do. What fails is tried again when the keeper is woken next.
func (t *Tree) upkeep(ctx context.Context) error {
	err := t.unlessReadOnly(t.replaceAside)
	for _, l := range t.leaves {
		if ctx.Err() == nil && l.open.Load() {
			err = errors.Join(err, t.unlessReadOnly(l.saveIndexes))
		}
	}
	if !t.opts.Compact.Off {
		err = errors.Join(err, t.compactInBackground(ctx))
	}
	if noSpace(err) {
		return nil // it is the normal state of a full disk
	}
	return err
}

// replaceAside sets aside what is not: first what deletes need, then what compaction does.
func (t *Tree) replaceAside() (err error) {
	for _, l := range t.leaves {
		if l.open.Load() {
			err = errors.Join(err, l.ensureReserve())
		}
	}
	if err = errors.Join(err, t.ensureSpare()); noSpace(err) {
		t.pressed.Store(true)
		return nil
	}
	return err
}

// unlessReadOnly runs a step of the background's that writes. SetReadOnly waits for it.
func (t *Tree) unlessReadOnly(step func() error) error {
	t.writing.RLock()
	defer t.writing.RUnlock()
	if t.readOnly.Load() {
		return blobstor.ErrReadOnly
	}
	return step()
}

// turns let one compaction of a file run at a time. One in the background may be slow on purpose, so it gives way to a
// call of Compact.
type turns struct {
	taken chan struct{} // of capacity 1

	mu      sync.Mutex // guards what is below
	calls   int        // of Compact that run
	giveWay func()     // ends what runs in the background
}

// take waits for a turn, which ends with end.
func (t *turns) take(ctx context.Context) error {
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turns) end() { <-t.taken }

// call begins or, by -1, ends a call of Compact.
func (t *turns) call(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls += n
	if t.giveWay != nil && t.calls > 0 {
		t.giveWay()
	}
}

// background returns a context that ends when a call of Compact begins.
func (t *turns) background(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	t.giveWay = cancel
	t.mu.Unlock()
	t.call(0)
	return ctx, cancel
}

// pace keeps a compaction to a rate.
type pace struct {
	rate  int64 // bytes a second, 0 for no limit
	begin time.Time
	bytes int64
}

// wait waits until n more bytes may be moved.
func (p *pace) wait(ctx context.Context, n int64) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	if p.begin.IsZero() {
		p.begin = time.Now()
	}
	p.bytes += n
	due := p.begin.Add(time.Duration(float64(p.bytes) / float64(p.rate) * float64(time.Second)))
	return sleep(ctx, time.Until(due))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
