package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var wide = Limits{MaxOps: 1000, MaxBytes: 1 << 20}

// commitTime is how long a commit takes in the bubble's time.
const commitTime = time.Second

// recorder returns a committer of ints whose commits take commitTime, and the groups it saw.
func recorder(limits Limits, outcome func(group []*Op[int]) error) (*Committer[int], *[][]int) {
	groups := new([][]int)
	return New(limits, func(group []*Op[int]) error {
		var values []int
		for _, op := range group {
			values = append(values, op.Value)
		}
		*groups = append(*groups, values)
		time.Sleep(commitTime)
		if outcome == nil {
			return nil
		}
		return outcome(group)
	}, nil), groups
}

// start calls Do(1..n) in this order, each in a goroutine of its own, and returns their errors by value.
func start(c *Committer[int], n int) func() []error {
	errs := make([]error, n+1)
	var wg sync.WaitGroup
	for i := 1; i <= n; i++ {
		wg.Go(func() { errs[i] = c.Do(context.Background(), i, 1) })
		synctest.Wait()
	}
	return func() []error { wg.Wait(); return errs }
}

func TestIdleCallerWaitsForOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, groups := recorder(wide, nil)
		begin := time.Now()
		if err := c.Do(context.Background(), 7, 1); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(begin); got != commitTime || len(*groups) != 1 {
			t.Errorf("took %v and %d commits, want one commit of %v", got, len(*groups), commitTime)
		}
	})
}

func TestLeaderTakesWhatQueuedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, groups := recorder(wide, nil)
		for i, err := range start(c, 6)() {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		if got, want := fmt.Sprint(*groups), "[[1] [2 3 4 5 6]]"; got != want {
			t.Errorf("groups %v, want %v", got, want)
		}
	})
}

func TestLimitsBoundAGroup(t *testing.T) {
	for _, tc := range []struct {
		limits Limits
		want   string
	}{
		{Limits{MaxOps: 2, MaxBytes: 100}, "[[1] [2 3] [4 5] [6]]"},
		{Limits{MaxOps: 9, MaxBytes: 3}, "[[1] [2 3 4] [5 6]]"},
		{Limits{MaxOps: 9, MaxBytes: 0}, "[[1] [2] [3] [4] [5] [6]]"}, // too large operations go alone
	} {
		synctest.Test(t, func(t *testing.T) {
			c, groups := recorder(tc.limits, nil)
			start(c, 6)()
			if got := fmt.Sprint(*groups); got != tc.want {
				t.Errorf("%+v: groups %v, want %v", tc.limits, got, tc.want)
			}
		})
	}
}

func TestOperationFailsAloneAndCommitFailsAll(t *testing.T) {
	alone, all := errors.New("alone"), errors.New("all")
	synctest.Test(t, func(t *testing.T) {
		c, _ := recorder(wide, func(group []*Op[int]) error {
			for _, op := range group {
				if op.Value == 3 {
					op.Err = alone
				}
			}
			if len(group) > 1 {
				return all
			}
			return nil
		})
		errs := start(c, 4)()
		if want := []error{nil, nil, all, alone, all}; !slices.Equal(errs, want) {
			t.Errorf("errors %v, want %v", errs, want)
		}
	})
}

func TestContextWithdrawsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, groups := recorder(wide, nil)
		ctx, cancel := context.WithCancel(context.Background())
		first := start(c, 1)
		var queued, after error
		var wg sync.WaitGroup
		wg.Go(func() { queued = c.Do(ctx, 2, 1) })
		synctest.Wait()
		wg.Go(func() { after = c.Do(context.Background(), 3, 1) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(queued, context.Canceled) {
			t.Errorf("queued operation: %v, want it withdrawn while the commit runs", queued)
		}
		first()
		wg.Wait()
		if after != nil {
			t.Error(after)
		}
		if got, want := fmt.Sprint(*groups), "[[1] [3]]"; got != want {
			t.Errorf("groups %v, want %v", got, want)
		}
		if err := c.Do(ctx, 4, 1); !errors.Is(err, context.Canceled) || len(*groups) != 2 {
			t.Errorf("cancelled before: %v, %d groups", err, len(*groups))
		}
	})
}

// A caller whose operation was taken, as leader or follower, gets its outcome and not its context's error.
func TestContextIsIgnoredOnceTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, groups := recorder(wide, nil)
		ctx, cancel := context.WithCancel(context.Background())
		first := start(c, 1)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = c.Do(ctx, i+2, 1) })
			synctest.Wait()
		}
		time.Sleep(commitTime + commitTime/2) // in the middle of the second commit
		cancel()
		first()
		wg.Wait()
		if errs[0] != nil || errs[1] != nil {
			t.Errorf("errors %v, want none", errs)
		}
		if got, want := fmt.Sprint(*groups), "[[1] [2 3]]"; got != want {
			t.Errorf("groups %v, want %v", got, want)
		}
	})
}

func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, groups := recorder(wide, nil)
		wait := start(c, 3)
		c.Close()
		if got, want := fmt.Sprint(*groups), "[[1] [2 3]]"; got != want {
			t.Errorf("Close returned after groups %v, want %v", got, want)
		}
		for i, err := range wait() {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := c.Do(context.Background(), 4, 1); err != ErrClosed {
			t.Errorf("Do after Close: %v, want ErrClosed", err)
		}
		c.Close()
	})
}

func TestCommitThatPanicsFailsItsGroupAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := recorder(Limits{MaxOps: 2, MaxBytes: 100}, func(group []*Op[int]) error {
			if len(group) > 1 {
				panic("planted")
			}
			return nil
		})
		errs := make([]error, 5)
		var recovered atomic.Value
		var wg sync.WaitGroup
		for i := 1; i < len(errs); i++ { // [1] [2 3] and 4 queued behind
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						recovered.Store(p)
					}
				}()
				errs[i] = c.Do(context.Background(), i, 1)
			})
			synctest.Wait()
		}
		wg.Wait()
		if recovered.Load() != "planted" {
			t.Errorf("the leader recovered %v, want the panic", recovered.Load())
		}
		if errs[1] != nil || errs[3] != errDied || errs[4] != ErrClosed {
			t.Errorf("errors %v", errs)
		}
		if err := c.Do(context.Background(), 5, 1); err != ErrClosed {
			t.Errorf("Do after the panic: %v, want ErrClosed", err)
		}
		c.Close()
	})
}

// Tidy runs when the group has its outcome, and before the next commit. A panic there closes the committer.
func TestTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		c := New(Limits{MaxOps: 2, MaxBytes: 100}, func(group []*Op[int]) error {
			log = append(log, fmt.Sprint("commit ", len(group)))
			time.Sleep(commitTime)
			return nil
		}, func() {
			time.Sleep(commitTime)
			if log = append(log, "tidy"); len(log) == 4 {
				panic("planted")
			}
		})
		var errs [5]error
		var wg sync.WaitGroup
		for i := 1; i <= 4; i++ { // 1, then 2 and 3, and 4 behind them
			wg.Go(func() {
				defer func() { recover() }()
				errs[i] = c.Do(context.Background(), i, 1)
			})
			synctest.Wait()
		}
		wg.Wait()
		if got, want := fmt.Sprint(log), "[commit 1 tidy commit 2 tidy]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if errs[3] != nil || errs[4] != ErrClosed {
			t.Errorf("errors %v", errs)
		}
	})
}

// Every operation is committed exactly once, whatever the scheduler does.
func TestStorm(t *testing.T) {
	const callers, each = 32, 300
	var committed sync.Map
	c := New(Limits{MaxOps: 7, MaxBytes: 50}, func(group []*Op[int]) error {
		for _, op := range group {
			if _, twice := committed.LoadOrStore(op.Value, true); twice {
				op.Err = errors.New("committed twice")
			}
		}
		return nil
	}, nil)
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for i := range each {
				ctx, cancel := context.WithCancel(context.Background())
				if i%5 == 0 {
					go cancel()
				}
				value := g*each + i
				err := c.Do(ctx, value, int64(i%20))
				_, done := committed.Load(value)
				if withdrawn := errors.Is(err, context.Canceled); withdrawn == done || err != nil && !withdrawn {
					t.Errorf("operation %d: %v, committed: %v", value, err, done)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	c.Close()
}

func BenchmarkDo(b *testing.B) {
	c := New(wide, func(group []*Op[int]) error { return nil }, nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Do(context.Background(), 1, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// A yield that takes long ends the gathering, and the next groups do without; then it is tried again.
func TestSlowYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(wide, func([]*Op[int]) error { return nil }, nil)
		yields := 0
		c.yield = func() { yields++; time.Sleep(slowYield + 1) }
		for range 2 * (hurried + 1) {
			c.crowd = 10 // as if so many had just been served
			if err := c.Do(context.Background(), 1, 1); err != nil {
				t.Fatal(err)
			}
		}
		if yields != 2 {
			t.Errorf("%d yields in %d groups, want 2", yields, 2*(hurried+1))
		}
		c.yield = func() { yields++ }
		yields, c.crowd = 0, 10
		if err := c.Do(context.Background(), 1, 1); err != nil || yields != patience {
			t.Errorf("%d quick yields, %v, want %d", yields, err, patience)
		}
	})
}
