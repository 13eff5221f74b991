package crashtest

import (
	"sync/atomic"

	"github.com/granary-store/granary/internal/durable"
)

// Steps counts the operations that change something, and calls a function before a chosen one. A test runs its
// scenario with At at 1, 2, 3 and so on, until Count stays below, and thereby cuts the power, or panics, or kills
// the process, at every moment that could matter.
type Steps struct {
	Next durable.Tap // may be nil
	At   int         // call Do before this step, the first is 1; 0 for none
	Do   func()      // runs in the goroutine of the step while others go on

	count atomic.Int64
}

// Count returns how many steps were begun so far, also those that failed.
func (s *Steps) Count() int { return int(s.count.Load()) }

// Before counts the operation.
func (s *Steps) Before(op durable.Op, path string, f *durable.File) error {
	if mutates(op) && s.count.Add(1) == int64(s.At) && s.Do != nil {
		s.Do()
	}
	if s.Next != nil {
		return s.Next.Before(op, path, f)
	}
	return nil
}

// After passes on.
func (s *Steps) After(op durable.Op, path string, f *durable.File) {
	if s.Next != nil {
		s.Next.After(op, path, f)
	}
}

func mutates(op durable.Op) bool { return op != durable.OpOpen && op != durable.OpRead }
